#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// For how long calls run, by those that have ended. Of the first ones, which may find everything
/// cold, or end at once with an error, the lower median counts. Then it is a mean in which a call
/// counts for a sixteenth, those before it for less and less. Not thread-safe.
class WorkTime {
 public:
  void add(Duration measured) noexcept {
    if (measured_ < kFirst) {
      const auto end = first_.begin() + static_cast<std::ptrdiff_t>(measured_);
      const auto at = std::upper_bound(first_.begin(), end, measured);
      std::move_backward(at, end, end + 1);
      *at = measured;
      expected_ = first_[measured_ / 2];
      ++measured_;
    } else {
      expected_ += (measured - expected_) / static_cast<Duration::rep>(kFirst);
    }
  }
  [[nodiscard]] bool is_known() const noexcept { return measured_ > 0; }
  /// Zero while nothing is known.
  [[nodiscard]] Duration expected() const noexcept { return expected_; }

 private:
  static constexpr std::size_t kFirst = 16;

  std::array<Duration, kFirst> first_{};  // in order
  std::size_t measured_ = 0;              // kFirst at most
  Duration expected_{};
};

}  // namespace batchrpc
