#pragma once

#include <algorithm>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// For how long calls run, by those that have ended. The first ones find everything cold, or a
/// machine that is still starting: of them the shortest counts. Then it is a mean in which a call
/// counts for a sixteenth, those before it for less and less. Not thread-safe.
class WorkTime {
 public:
  void add(Duration measured) noexcept {
    if (measured_ < kFirst) {
      expected_ = measured_ == 0 ? measured : std::min(expected_, measured);
      ++measured_;
    } else {
      expected_ += (measured - expected_) / kFirst;
    }
  }
  [[nodiscard]] bool is_known() const noexcept { return measured_ > 0; }
  /// Zero while nothing is known.
  [[nodiscard]] Duration expected() const noexcept { return expected_; }

 private:
  static constexpr int kFirst = 16;

  int measured_ = 0;  // kFirst at most
  Duration expected_{};
};

}  // namespace batchrpc
