#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/histogram.hpp"
#include "batchrpc/batch/batch_info.hpp"
#include "batchrpc/metrics/node_metrics.hpp"

namespace batchrpc {

/// Statistics of a batcher since it was created. This is a copy that does not change any more.
///
/// Each row that arrived is counted in one of these: waiting (`queued`, `held`), running, done
/// (`answered`, `failed`), or never seen by the handler (`rejected`, `invalid`, `expired`,
/// `cancelled`, `left`, `dropped`).
struct BatchStatistics {
  std::uint64_t rows = 0;      ///< all rows that arrived, whatever their outcome
  std::uint64_t rejected = 0;  ///< failed with Overloaded: no room, or displaced by another's row
  /// Rows that do not fit: refused by BatchRules, larger than a batch or the queue, or unlike most
  /// others of their key. Also all rows of a batcher that cannot start.
  std::uint64_t invalid = 0;
  std::uint64_t expired = 0;    ///< their deadline passed before they started
  std::uint64_t cancelled = 0;  ///< cancelled by their caller before they started
  std::uint64_t left = 0;       ///< their caller died or left before they started
  /// Failed with ShutDown: they waited when the batcher was closed or ended (a reducer may have
  /// accumulated them), or arrived later.
  std::uint64_t dropped = 0;
  std::uint64_t answered = 0;  ///< got their result
  std::uint64_t failed = 0;    ///< got an error of the handler, or no result

  std::uint64_t batches = 0;       ///< batches that have ended
  std::uint64_t handler_runs = 0;  ///< runs of the handler, including those of Isolate::bisect
  std::uint64_t padding = 0;       ///< rows that only filled up a preferred size
  /// The number of batches that started for each BatchReason.
  std::array<std::uint64_t, kBatchReasons> reasons{};

  Histogram sizes{};         ///< rows of each batch, without padding
  Histogram queue_wait{};    ///< ns from a call's arrival to the start of its batch
  Histogram handler_time{};  ///< ns from a batch's start until its results were complete
  Histogram latency{};       ///< ns from a call's arrival until its batch's results were complete

  double rows_per_second = 0;  ///< rows started in the last ten seconds, or since the first row

  std::size_t queued = 0;        ///< rows that wait now
  std::size_t queued_bytes = 0;  ///< their bytes, including rows that are held back
  std::size_t held = 0;          ///< rows whose callers are held back now
  std::size_t running = 0;       ///< batches that run now

  std::uint64_t bytes_copied = 0;   ///< bytes of tensor rows copied to bring them together
  std::uint64_t rows_copied = 0;    ///< rows that were copied to bring them together
  std::uint64_t rows_in_place = 0;  ///< rows that were received directly into the batch's memory

  /// The values in force of BatchOptions::max_wait, max_size and min_size: the options' own, or
  /// those that the batcher has chosen for BatchOptions::latency_target.
  /// @{
  Duration wait{};
  std::size_t size = 0;
  std::size_t min_size = 1;
  /// @}
};

/// Converts to an element of NodeMetrics::batchers, without a name.
[[nodiscard]] BATCHRPC_EXPORT BatcherMetrics metrics_of(const BatchStatistics& statistics);

/// Returns a table of several lines for people to read.
[[nodiscard]] BATCHRPC_EXPORT std::string to_string(const BatchStatistics& statistics);

}  // namespace batchrpc
