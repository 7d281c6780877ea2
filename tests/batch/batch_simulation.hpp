#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc::test {

/// A batcher in virtual time whose handler takes fixed + per_row · rows, and those who call it: an
/// open loop, whose rows come at random whatever is answered, or a closed one of callers each of
/// which thinks after its answer. What it measures is counted between two calls of `measure`.
class BatchSimulation {
 public:
  struct Cost {
    double fixed_us = 1000;
    double per_row_us = 10;
    double noise =
        0;  // relative; every fiftieth batch takes three times as long where there is any
  };
  enum class Think { constant, uniform, exponential };

  BatchSimulation(const BatchOptions& options, const Cost& of_handler, std::uint64_t seed = 1)
      : cost(of_handler),
        random_(seed),
        batcher(options, [this](std::vector<int> rows) { return run(std::move(rows)); }) {
    node_.expose("work", batcher);
  }
  // What runs finishes: a batch that its handler never answers would keep loop and batcher.
  ~BatchSimulation() {
    stop();
    world.run_for(std::chrono::seconds(5));
  }
  BatchSimulation(const BatchSimulation&) = delete;
  BatchSimulation& operator=(const BatchSimulation&) = delete;

  /// Rows come at random, so many a second; until stop(), or another rate.
  void open_loop(double rows_per_second) {
    ++era_;
    gap_us_ = 1e6 / rows_per_second;
    next_row(era_);
  }
  void closed_loop(std::size_t callers, double think_us, Think how = Think::exponential) {
    ++era_;
    think_us_ = think_us;
    how_ = how;
    for (std::size_t i = 0; i < callers; ++i)
      think(era_);
  }
  void stop() { ++era_; }

  /// Until so many more rows have been answered.
  void run_rows(std::size_t rows) {
    const std::size_t end = answered_ + rows;
    while (answered_ < end)
      world.run_for(std::chrono::milliseconds(1));
  }
  void run_batches(std::size_t count) {
    const std::size_t end = batches + count;
    while (batches < end)
      world.run_for(std::chrono::microseconds(100));
  }

  struct Measured {
    double rows_per_second = 0;
    std::vector<double> latencies_us;  // sorted
    double rows_per_batch = 0;
    [[nodiscard]] double quantile(double p) const {
      const auto at =
          static_cast<std::size_t>(std::ceil(p * static_cast<double>(latencies_us.size())));
      return latencies_us.empty() ? 0 : latencies_us[std::max<std::size_t>(at, 1) - 1];
    }
  };
  Measured measure(std::size_t rows) {
    latencies_us_.clear();
    const Duration begin = world.time();
    const std::size_t batches_before = batches;
    run_rows(rows);
    Measured measured;
    const std::chrono::duration<double> took = world.time() - begin;
    measured.rows_per_second = static_cast<double>(latencies_us_.size()) / took.count();
    measured.rows_per_batch =
        static_cast<double>(latencies_us_.size()) / static_cast<double>(batches - batches_before);
    measured.latencies_us = latencies_us_;
    std::sort(measured.latencies_us.begin(), measured.latencies_us.end());
    return measured;
  }

  Cost cost;
  test::VirtualWorld world;
  std::size_t batches = 0;

 private:
  using Microseconds = std::chrono::duration<double, std::micro>;

  void after(double us, Task task) {
    world.loop->schedule(world.loop->now() + std::chrono::duration_cast<Duration>(Microseconds(us)),
                         std::move(task));
  }
  double exponential(double mean) { return std::exponential_distribution<>(1 / mean)(random_); }

  Future<std::vector<int>> run(std::vector<int> rows) {
    ++batches;
    Promise<std::vector<int>> promise;
    auto future = promise.get_future();
    double us = cost.fixed_us + cost.per_row_us * static_cast<double>(rows.size());
    if (cost.noise > 0) {
      us *= std::uniform_real_distribution<>(1 - cost.noise, 1 + cost.noise)(random_);
      if (batches % 50 == 0) us *= 3;
    }
    after(us, [promise = std::move(promise), rows = std::move(rows)]() mutable {
      promise.set_value(std::move(rows));
    });
    return future;
  }

  template <class Then>
  void send(Then then) {
    batcher(1).then([this, sent = world.loop->now(), then](Result<int> result) {
      if (!result) return;
      ++answered_;
      latencies_us_.push_back(Microseconds(world.loop->now() - sent).count());
      then();
    });
  }
  void next_row(int era) {
    if (era != era_) return;
    send([] {});
    after(exponential(gap_us_), [this, era] { next_row(era); });
  }
  void think(int era) {
    if (era != era_) return;
    const double us = how_ == Think::constant ? think_us_
                      : how_ == Think::uniform
                          ? think_us_ * std::uniform_real_distribution<>(0.5, 1.5)(random_)
                          : exponential(think_us_);
    after(us, [this, era] {
      if (era == era_) send([this, era] { think(era); });
    });
  }

  std::mt19937_64 random_;
  double gap_us_ = 0;
  double think_us_ = 0;
  Think how_ = Think::exponential;
  int era_ = 0;
  std::size_t answered_ = 0;
  std::vector<double> latencies_us_;
  Node node_ = world.root();

 public:
  Batcher<int(int)> batcher;
};

}  // namespace batchrpc::test
