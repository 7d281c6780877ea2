#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// What happens to a row that finds no room.
enum class OnFull : unsigned char {
  /// The row fails with Overloaded. Its retry_after() estimates when there will be room.
  reject,
  /// The caller's reply is held back until there is room; no thread waits. At most `max_queue` rows
  /// are held back, and none beyond `max_queue_bytes`. Further rows are rejected.
  wait,
};

/// What happens to a batch whose handler throws.
enum class Isolate : unsigned char {
  none,  ///< every row fails with the error that was thrown
  /// The batch runs again in halves until only the rows that make the handler throw have failed.
  /// Use it only for handlers that may run again. Rows are copied.
  bisect,
};

/// The goal of an adaptive batcher: this share of the rows is answered within `latency`, counted
/// from a row's arrival at the batcher to the end of its handler.
struct LatencyTarget {
  Duration latency{};        ///< zero: the batcher does not adapt
  double percentile = 0.99;  ///< above 0, below 1
};

/// When a batch starts, what goes into it, how it runs, and how much may wait. docs/batching.md
/// explains how to choose each option. All but `short_handler` and `executor` can be changed while
/// the batcher runs (Batcher::set_options).
///
/// Without `max_wait`, `min_size`, `all_of` and `latency_target`, a batch starts as soon as the
/// handler is idle, with all waiting rows. Batches form by themselves under load, and a lone caller
/// never waits for others. Otherwise a batch starts as soon as one of these is true:
///
/// - `max_size` rows are waiting, or the largest of `preferred_sizes`;
/// - `min_size` rows are waiting and the handler is idle;
/// - every live member of the group has a waiting row, of any key;
/// - the oldest row has waited for `max_wait`;
/// - a call finds no room in the queue, and no batch is running that would make room.
struct BatchOptions {
  // --- when a batch starts

  /// Maximum number of rows in a batch, and so in one call; at least 1. With preferred_sizes, the
  /// largest of them is the limit. If you lower it, waiting calls with more rows fail with
  /// InvalidArgument.
  std::size_t max_size = 64;

  /// Longest wait of a batch's oldest row, counted from its arrival. Zero: not used.
  Duration max_wait{};

  /// A batch starts at this number of rows once the handler is idle. 1 has no effect. At most the
  /// maximum size of a batch.
  std::size_t min_size = 1;

  /// Names of peers: when each live one has a waiting row, of any key, all waiting rows start. A
  /// peer that dies is not waited for once its death is detected; one that joins (again) is. Rows
  /// of this process join the batch; they are waited for only if the node's own name is listed. In
  /// a group of a fixed size, all names must be names of its nodes. In an open group, a name counts
  /// once a node with that name has joined. At most as many names as a batch has rows.
  std::vector<std::string> all_of{};

  /// Sizes that the handler is compiled for, ascending; the last is at most max_size. A batch is
  /// cut to one of these sizes, or padded up to one with copies of its last row, whose results are
  /// discarded. It is padded if it fills more than half of the larger size, or if no smaller size
  /// fits.
  std::vector<std::size_t> preferred_sizes{};

  /// Lets the batcher choose the wait and the size from the arrival rate and the measured cost of
  /// the handler. max_size stays the limit. Excludes max_wait, min_size and groups.
  LatencyTarget latency_target{};

  // --- what goes together

  /// Orders rows by their callers' ranks, and each caller's rows by arrival, so that a run can be
  /// repeated exactly. If false, rows are in order of arrival. Tensors that were received side by
  /// side then keep the order in which they began to arrive.
  bool order_by_peer = false;

  /// The maximum number of later calls, of the same key and of higher priority, that may overtake a
  /// call. Overtaking calls that are dropped count too.
  std::size_t max_overtaking = 256;

  // --- how much waits

  /// Maximum number of waiting rows, without those of running batches. At least max_size.
  std::size_t max_queue = 1024;

  /// Approximate maximum number of bytes of the arguments of waiting rows, including rows that are
  /// held back.
  std::size_t max_queue_bytes = std::size_t{1} << 30;

  /// What happens to a row beyond these limits. If one caller's rows fill the queue, other callers
  /// still get their share: that caller's newest rows are dropped, and fail with Overloaded. With
  /// `wait`, the callers whose rows are held back take turns.
  OnFull on_full = OnFull::reject;

  // --- how it runs

  /// Maximum number of batches that run at once; with 1 the handler never runs concurrently.
  /// Handlers that are not asynchronous need as many threads, among the node's workers or in
  /// `executor`. A batcher that is exposed with a lock (ExposeOptions::exclusive) needs 1.
  std::size_t parallelism = 1;

  /// What happens to a batch whose handler throws.
  Isolate isolate = Isolate::none;

  /// For batches of tensors: the device on which the handler gets them, such as "cuda:0". Empty:
  /// the device of the rows. For a GPU, rows are received into pinned memory.
  std::string device{};

  /// Declares the handler short (docs/threading.md). It runs on the driving thread, after all
  /// messages that have arrived have been read, or with the row that completes the batch. Without a
  /// node it runs on the thread that makes a batch start: by a row, by the end of the previous
  /// batch, or by a call such as flush(). When a wait is over it then runs on the batcher's own
  /// thread.
  bool short_handler = false;

  /// Where the handler runs. Null: on the workers of the node on which the batcher is exposed,
  /// otherwise on a thread of the batcher's own. The executor must run each task, or destroy it
  /// when it stops. Destroying one ends the batcher: its rows fail with ShutDown. The last handle
  /// of the executor may be released on one of its own threads.
  std::shared_ptr<Executor> executor{};
};

}  // namespace batchrpc
