#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "batchrpc/metrics/node_metrics.hpp"

namespace batchrpc {

/// The latest errors of a node. Thread-safe.
class RecentErrors {
 public:
  static constexpr std::size_t kKept = 32;
  static constexpr std::size_t kLongestText = 256;

  void add(ErrorRecord error);
  /// Returns the errors, oldest first. `now` is used to compute how long ago they were.
  [[nodiscard]] std::vector<ErrorRecord> all(TimePoint now) const;

 private:
  mutable std::mutex mutex_;
  std::array<ErrorRecord, kKept> ring_{};
  std::uint64_t added_ = 0;
};

}  // namespace batchrpc
