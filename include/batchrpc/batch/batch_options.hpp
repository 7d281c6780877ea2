#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// When a batch starts, and how much may wait. With neither `max_wait` nor `all_of`, a batch starts
/// as soon as the handler is idle, with what has gathered meanwhile: batches form by themselves
/// under load, and a lone caller waits for nobody. Otherwise it starts when the first of these is
/// true: `max_size` rows are there; every live member of `all_of` has a row in it; its first row
/// has waited for `max_wait`.
struct BatchOptions {
  /// Most rows of one batch; at least 1.
  std::size_t max_size = 64;

  /// Longest wait of a batch's first row, counted from its arrival; zero: see above.
  Duration max_wait{};

  /// Rows that may wait, those of the running batch not counted; one more fails with Overloaded. At
  /// least max_size.
  std::size_t max_queue = 1024;

  /// Names of peers: a batch is complete when each of those that live has a row in it. A peer that
  /// dies is not waited for, from the moment when that is noticed.
  std::vector<std::string> all_of{};

  /// The handler is short (docs/threading.md): run it on the driving thread, after the messages
  /// that are there have been read.
  bool short_handler = false;

  /// Where the handler runs; null: on the workers of the node that the batcher is exposed on, else
  /// on a thread of the batcher's own.
  std::shared_ptr<Executor> executor{};
};

}  // namespace batchrpc
