#pragma once

#include <cstddef>
#include <string>

#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {

/// Collects the mismatches for an error message, one per line.
class Complaints {
 public:
  void add(const std::string& what) {
    ++count_;
    if (count_ <= kShown) text_ += "\n  " + what;
  }
  /// Throws InvalidArgument with `head` and the lines, if there are any.
  void throw_if_any(const std::string& head) const {
    if (count_ == 0) return;
    std::string text = head + ":" + text_;
    if (count_ > kShown) text += "\n  and " + std::to_string(count_ - kShown) + " more";
    throw InvalidArgument(text);
  }

 private:
  static constexpr std::size_t kShown = 20;
  std::size_t count_ = 0;
  std::string text_;
};

}  // namespace batchrpc::detail
