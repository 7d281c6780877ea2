#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// Returns the part of a name that matters when names are compared.
using Stem = std::function<std::string_view(std::string_view name)>;

/// Returns those of `candidates` that a person may have meant by `name`, as a text such as "did you
/// mean 'add'?"; empty if there are none. Without `stem`, whole names are compared. However many
/// candidates there are, only the 64 that look most alike are compared letter by letter.
[[nodiscard]] std::string suggest(std::string_view name, const std::vector<std::string>& candidates,
                                  const Stem& stem = {});

/// Limits how often names are suggested to callers: ten at once, then ten a second. A peer can call
/// unknown functions without end, and a suggestion takes the time of hundreds of calls.
/// Thread-safe.
class SuggestionRate {
 public:
  /// Returns whether one may be made now.
  [[nodiscard]] bool take(TimePoint now);

 private:
  static constexpr int kMost = 10;
  static constexpr Duration kPause = std::chrono::seconds(1);

  std::mutex mutex_;  // guards what follows
  int left_ = kMost;
  TimePoint since_{};  // when there were kMost
};

}  // namespace batchrpc
