#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// Estimates how long calls run, from those that have ended. The first calls may be slow because
/// nothing is cached, or may end at once with an error, so the lower median of them counts. After
/// that it is an exponential mean with a weight of one sixteenth. Not thread-safe.
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
  /// Zero if no call has ended yet.
  [[nodiscard]] Duration expected() const noexcept { return expected_; }

 private:
  static constexpr std::size_t kFirst = 16;

  std::array<Duration, kFirst> first_{};  // sorted
  std::size_t measured_ = 0;              // at most kFirst
  Duration expected_{};
};

}  // namespace batchrpc
