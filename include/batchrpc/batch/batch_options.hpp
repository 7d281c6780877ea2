#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// What becomes of a row for which there is no room.
enum class OnFull : unsigned char {
  /// It fails with Overloaded, whose retry_after() says when there may be room.
  reject,
  /// Its caller's reply is held back until there is room: no thread waits. As many rows as
  /// `max_queue` are held, and none beyond `max_queue_bytes`; then it is as with `reject`.
  wait,
};

/// What is done with a batch whose handler throws.
enum class Isolate : unsigned char {
  none,  ///< every row fails with what was thrown
  /// The batch is run again in halves until those rows alone have failed whose presence makes the
  /// handler throw; for handlers that may be run again. Rows are copied.
  bisect,
};

/// What an adaptive batcher aims at: that this share of the rows is answered within `latency`,
/// counted from their arrival at the batcher to the end of their handler.
struct LatencyTarget {
  Duration latency{};        ///< zero: the batcher does not adapt
  double percentile = 0.99;  ///< above 0, below 1
};

/// When a batch starts, what goes into it, how it runs, and how much may wait. docs/batching.md
/// says how to choose each. All but `short_handler` and `executor` can be changed while the batcher
/// runs (Batcher::set_options).
///
/// With neither `max_wait`, `min_size`, `all_of` nor `latency_target`, a batch starts as soon as
/// the handler is idle, with what has gathered meanwhile: batches form by themselves under load,
/// and a lone caller waits for nobody. Otherwise it starts when the first of
/// these is true: `max_size` rows are there, or the largest of `preferred_sizes`; `min_size` rows
/// are there; every live member of the group has a row that waits, of whatever key; its oldest row
/// has waited for `max_wait`; a call finds no room in the queue while nothing runs that would make
/// some.
struct BatchOptions {
  // --- when

  /// Most rows of one batch, and so of one call; at least 1. (Where there are preferred_sizes, the
  /// largest of them.) Calls that wait and have more when it becomes smaller fail with
  /// InvalidArgument.
  std::size_t max_size = 64;

  /// Longest wait of a batch's oldest row, counted from its arrival; zero: no such wait.
  Duration max_wait{};

  /// With so many rows a batch starts, when the handler is idle; 1: as if it were not there. At
  /// most as many as a batch has.
  std::size_t min_size = 1;

  /// Names of peers: when each of those that live has a row that waits, of whatever key, all that
  /// waits starts. A peer that dies is not waited for, from the moment when that is noticed; one
  /// that joins (again) is. Rows of this process go along, and are waited for where the names have
  /// the node's own. In a group of a fixed size all names must be those of its nodes; in an open
  /// one, a name that nobody has is waited for when somebody with it has joined. At most as many
  /// names as a batch has rows.
  std::vector<std::string> all_of{};

  /// Sizes that the handler is compiled for, ascending, the last at most max_size: a batch is cut
  /// at one of them, or padded up to one with copies of its last row, whose results nobody gets. It
  /// is padded when more than half of the larger size is filled, or nothing fits the smaller one.
  std::vector<std::size_t> preferred_sizes{};

  /// Lets the batcher choose the wait and the size itself, from the rate of arrivals and the
  /// handler's measured costs; max_size stays the bound. Excludes max_wait, min_size and groups.
  LatencyTarget latency_target{};

  // --- what goes together

  /// Rows lie in the order of their callers' ranks, and each caller's in the order of their
  /// arrival, so that a run can be repeated exactly. Off: in the order of their arrival; tensors
  /// that were received side by side in that in which they began to arrive.
  bool order_by_peer = false;

  /// By how many calls that came later, of the same key and of higher priority, a call is overtaken
  /// at the most; those that are dropped meanwhile count.
  std::size_t max_overtaking = 256;

  // --- how much waits

  /// Rows that may wait, those of running batches not counted. At least max_size.
  std::size_t max_queue = 1024;

  /// Bytes that the arguments of waiting rows may take, held rows included; about.
  std::size_t max_queue_bytes = std::size_t{1} << 30;

  /// What becomes of a row beyond that. When what is full is full of one caller's rows, those of
  /// others still find their share of it: the newest of that caller's give way, and fail with
  /// Overloaded. With `wait` the callers of held rows come in turn.
  OnFull on_full = OnFull::reject;

  // --- how it runs

  /// How many batches run at once; with 1 the handler never runs concurrently. Handlers that are
  /// not asynchronous need as many threads: those of the node's workers, or of `executor`. A
  /// batcher that is exposed with a lock (ExposeOptions::exclusive) has one.
  std::size_t parallelism = 1;

  /// What is done with a batch whose handler throws.
  Isolate isolate = Isolate::none;

  /// Of batches of tensors: where the handler gets them, such as "cuda:0"; empty: where the rows
  /// are. For a GPU, rows are received into pinned memory.
  std::string device{};

  /// The handler is short (docs/threading.md): it runs on the driving thread, after the messages
  /// that are there have been read, or, of a batch that takes no more rows, with the last of its
  /// rows. Without a node: on whatever thread makes a batch start, by a row, by the end of the
  /// batch before, or by flush() and its kin; on the batcher's own when a wait is over.
  bool short_handler = false;

  /// Where the handler runs; null: on the workers of the node that the batcher is exposed on, else
  /// on a thread of the batcher's own. It runs each task or, when it stops, destroys it, which ends
  /// the batcher: rows fail with ShutDown. Its last handle may go on one of its own threads.
  std::shared_ptr<Executor> executor{};
};

}  // namespace batchrpc
