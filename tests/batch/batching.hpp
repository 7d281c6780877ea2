#pragma once

#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
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

/// What a batcher of these options is refused with.
inline std::string refusal_of(const BatchOptions& options) {
  try {
    const Batcher<int(int)> batcher(options, doubled);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing was refused";
}

/// A batcher over a node in virtual time, whose handler notes each batch and when it began.
struct Batching {
  explicit Batching(const BatchOptions& options, BatchRules<int> rules = {},
                    const ExposeOptions& how = {})
      : batcher(
            options,
            [this](std::vector<int> xs) {
              batches.push_back(xs);
              times.push_back(world.time());
              return doubled(std::move(xs));
            },
            std::move(rules)) {
    node.expose("double", batcher, how);
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

/// A batcher over a node in virtual time, whose handler holds each batch until it is told to answer
/// it.
struct HeldBatching {
  explicit HeldBatching(const BatchOptions& options, BatchRules<int> rules = {},
                        const ExposeOptions& how = {})
      : batcher(
            options,
            [this](std::vector<int> xs) {
              batches.push_back(std::move(xs));
              return running.emplace_back().get_future();
            },
            std::move(rules)) {
    node.expose("double", batcher, how);
  }
  Future<int>& add(int x) { return rows.emplace_back(batcher(x)); }
  /// Queues a row of a peer's.
  Future<int>& call(const Node& peer, int x) {
    rows.push_back(peer.call<int(int)>("root", "double", x));
    world.run_for(Duration::zero());
    return rows.back();
  }
  /// Answers the batch that began as number `i`.
  void answer(std::size_t i) {
    running[i].set_value(doubled(batches[i]));
    world.run_for(Duration::zero());
  }

  std::vector<Promise<std::vector<int>>> running;
  test::VirtualWorld world;
  Node node = world.root();
  Batches batches;
  Batcher<int(int)> batcher;
  std::deque<Future<int>> rows;
};

/// A batcher over a node in virtual time, whose reducer adds rows up, and refuses negative ones.
struct Summing {
  explicit Summing(BatchOptions options, const ExposeOptions& how = {})
      : batcher(std::move(options), reduce(Reducer{this})) {
    node.expose("sum", batcher, how);
  }
  /// Queues a row, and lets it be added up.
  Future<int> add(int x) {
    auto row = batcher(x);
    world.run_for(Duration::zero());
    return row;
  }

  struct Reducer {
    void begin() {
      if (of->on_begin) of->on_begin();
      sum = 0;
    }
    void accumulate(int x) {
      if (of->on_row) of->on_row();
      if (x < 0) throw std::domain_error("negative");
      sum += x;
    }
    int finish() { return sum; }

    Summing* of;
    int sum = 0;
  };

  std::function<void()> on_begin;  ///< runs when a sum begins
  std::function<void()> on_row;    ///< runs before a row is added
  test::VirtualWorld world;
  Node node = world.root();
  Batcher<int(int)> batcher;
};

/// Keeps tasks until they are asked for.
struct KeptTasks final : Executor {
  void post(Task task) override { waiting.push_back(std::move(task)); }
  void run_next() {
    Task task = std::move(waiting.front());
    waiting.pop_front();
    runs = true;
    task();
    runs = false;
  }
  std::deque<Task> waiting;
  bool runs = false;  // one of them
};

}  // namespace batchrpc::test
