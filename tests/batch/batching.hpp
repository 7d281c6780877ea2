#pragma once

#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc::test {

using Batches = std::vector<std::vector<int>>;

inline std::vector<int> doubled(std::vector<int> xs) {
  for (int& x : xs)
    x *= 2;
  return xs;
}

/// A batcher over a node in virtual time, whose handler notes each batch and when it began.
struct Batching {
  explicit Batching(const BatchOptions& options)
      : batcher(options, [this](std::vector<int> xs) {
          batches.push_back(xs);
          times.push_back(world.time());
          return doubled(std::move(xs));
        }) {
    node.expose("double", batcher);
  }
  /// Queues rows now; their futures are kept.
  void add(const std::vector<int>& xs) {
    for (const int x : xs)
      rows.push_back(batcher(x));
  }

  test::VirtualWorld world;
  Node node = world.root();
  std::vector<std::vector<int>> batches;
  std::vector<Duration> times;
  Batcher<int(int)> batcher;
  std::vector<Future<int>> rows;
};

}  // namespace batchrpc::test
