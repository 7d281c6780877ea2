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

/// What a batcher has done since it was made: a copy, which does not change any more.
///
/// A row that came is one of: waiting (`queued`, `held`), running, done (`answered`, `failed`), or
/// one that the handler never saw (`rejected`, `invalid`, `expired`, `cancelled`, `left`,
/// `dropped`).
struct BatchStatistics {
  std::uint64_t rows = 0;      ///< that came, whatever became of them
  std::uint64_t rejected = 0;  ///< with Overloaded: there was no room, or another's row took it
  /// That do not fit: refused by BatchRules, larger than a batch or the queue, or unlike most
  /// others of their key; and those of a batcher that cannot begin.
  std::uint64_t invalid = 0;
  std::uint64_t expired = 0;    ///< whose deadline had passed before they started
  std::uint64_t cancelled = 0;  ///< whose caller had taken them back
  std::uint64_t left = 0;       ///< whose caller had died or left
  /// With ShutDown: waited at close() or the end (a reducer may have accumulated them), or came
  /// later.
  std::uint64_t dropped = 0;
  std::uint64_t answered = 0;  ///< that got their result
  std::uint64_t failed = 0;    ///< that got an error of the handler's, or had no result

  std::uint64_t batches = 0;       ///< that have ended
  std::uint64_t handler_runs = 0;  ///< of these, with those of Isolate::bisect
  std::uint64_t padding = 0;       ///< rows that only filled up a preferred size
  /// Why the batches started, by BatchReason.
  std::array<std::uint64_t, kBatchReasons> reasons{};

  Histogram sizes{};         ///< rows of each batch, without padding
  Histogram queue_wait{};    ///< ns from a call's arrival to the start of its batch
  Histogram handler_time{};  ///< ns from a batch's start until its results were there
  Histogram latency{};       ///< ns from a call's arrival until its batch's results were there

  double rows_per_second = 0;  ///< started in the last ten seconds, or since the first row

  std::size_t queued = 0;        ///< rows that wait now
  std::size_t queued_bytes = 0;  ///< what they take, held ones included
  std::size_t held = 0;          ///< rows whose callers are held back now
  std::size_t running = 0;       ///< batches that run now

  std::uint64_t bytes_copied = 0;   ///< of tensor rows, to bring them together
  std::uint64_t rows_copied = 0;    ///< rows that were
  std::uint64_t rows_in_place = 0;  ///< rows that were received where the batch is

  /// What is in force of BatchOptions::max_wait, max_size and min_size: what the options say, or
  /// what the batcher has chosen for BatchOptions::latency_target.
  /// @{
  Duration wait{};
  std::size_t size = 0;
  std::size_t min_size = 1;
  /// @}
};

/// The same as one of NodeMetrics::batchers, without a name.
[[nodiscard]] BATCHRPC_EXPORT BatcherMetrics metrics_of(const BatchStatistics& statistics);

/// A table of several lines for people.
[[nodiscard]] BATCHRPC_EXPORT std::string to_string(const BatchStatistics& statistics);

}  // namespace batchrpc
