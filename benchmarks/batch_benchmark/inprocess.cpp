#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "batch_benchmark/sections.hpp"
#include "common/seconds_between.hpp"
#include "common/statistics.hpp"

namespace batch_benchmark {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCyclesBetweenLooks = 16;
constexpr double kGoalOfBatch = 250;
constexpr double kGoalOfLone = 1000;

std::vector<int> same(std::vector<int> rows) { return rows; }

/// Does by hand, on the same futures, what a batcher does; for comparison.
class ByHand {
 public:
  batchrpc::Future<int> operator()(int row) {
    batchrpc::Promise<int> promise;
    batchrpc::Future<int> future = promise.get_future();
    std::vector<int> rows;
    std::vector<batchrpc::Promise<int>> promises;
    {
      const std::lock_guard lock(mutex_);
      rows_.push_back(row);
      promises_.push_back(std::move(promise));
      if (rows_.size() < kBatch) return future;
      rows.swap(rows_);
      promises.swap(promises_);
    }
    const std::vector<int> results = same(std::move(rows));
    for (std::size_t i = 0; i < results.size(); ++i)
      promises[i].set_value(results[i]);
    return future;
  }

 private:
  std::mutex mutex_;
  std::vector<int> rows_;
  std::vector<batchrpc::Promise<int>> promises_;
};

template <class Submit>
void fill_and_take(Submit& submit, std::vector<batchrpc::Future<int>>& futures) {
  for (std::size_t i = 0; i < futures.size(); ++i)
    futures[i] = submit(static_cast<int>(i));
  for (std::size_t i = 0; i < futures.size(); ++i) {
    if (std::move(futures[i]).get() != static_cast<int>(i)) throw std::runtime_error("wrong row");
  }
}

/// Nanoseconds per row over all threads. Each thread submits a batch's worth of rows and takes
/// their results, so together they never leave a partial batch behind.
template <class Submit>
double ns_a_row(Submit& submit, std::size_t rows, int threads, double seconds) {
  std::vector<std::thread> others;
  std::vector<std::uint64_t> done(static_cast<std::size_t>(threads), 0);
  const Clock::time_point begin = Clock::now();
  const Clock::time_point end = begin + batchrpc_examples::duration_of(seconds);
  const auto work = [&](std::size_t thread) {
    std::vector<batchrpc::Future<int>> futures(rows);
    std::uint64_t count = 0;
    while (Clock::now() < end) {
      for (int i = 0; i < kCyclesBetweenLooks; ++i)
        fill_and_take(submit, futures);
      count += rows * kCyclesBetweenLooks;
    }
    done[thread] = count;
  };
  for (std::size_t thread = 1; thread < done.size(); ++thread)
    others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others)
    other.join();
  const std::chrono::duration<double, std::nano> passed = Clock::now() - begin;
  std::uint64_t all = 0;
  for (const std::uint64_t count : done)
    all += count;
  return passed.count() / static_cast<double>(all);
}

double batcher_ns(batchrpc::BatchOptions options, std::size_t rows, int threads, double seconds) {
  const batchrpc::Batcher<int(int)> batcher(std::move(options), same);
  return ns_a_row(batcher, rows, threads, seconds);
}

}  // namespace

nlohmann::json measure_inprocess(const Run& run) {
  const batchrpc::BatchOptions full{.max_size = kBatch, .min_size = kBatch, .short_handler = true};
  const batchrpc::BatchOptions idle{.max_size = kBatch, .short_handler = true};
  const double seconds = run.options.seconds;
  struct Row {
    const char* name;
    double goal;  // 0: none
    std::function<double()> measure;
    std::vector<double> ns{};
  };
  std::vector<Row> rows{
      {"batch of 64, one thread", kGoalOfBatch,
       [&] { return batcher_ns(full, kBatch, 1, seconds); }},
      {"batch of 64, 2 threads", 0, [&] { return batcher_ns(full, kBatch, 2, seconds); }},
      {"batch of 64, 4 threads", 0, [&] { return batcher_ns(full, kBatch, 4, seconds); }},
      {"batch of 64, by hand", 0,
       [&] {
         ByHand by_hand;
         return ns_a_row(by_hand, kBatch, 1, seconds);
       }},
      {"a lone row", kGoalOfLone, [&] { return batcher_ns(idle, 1, 1, seconds); }},
  };
  for (int round = 0; round < run.options.rounds; ++round) {
    for (Row& row : rows) {
      run.interrupts.check();
      row.ns.push_back(row.measure());
    }
  }

  run.out << "\ninprocess: to gather and scatter a row, int to int, handler on the submitting "
             "thread\n";
  nlohmann::json entries = nlohmann::json::array();
  for (const Row& row : rows) {
    const double ns = batchrpc_examples::median(row.ns);
    run.out << text_of("  %-26s %8.0f ns a row", row.name, ns);
    nlohmann::json entry{{"case", row.name}, {"ns_a_row", rounds_json(row.ns)}};
    if (row.goal > 0) {
      run.out << text_of("   goal %.0f%s", row.goal, verdict(ns <= row.goal));
      entry["goal_ns"] = row.goal;
      entry["met"] = ns <= row.goal;
    }
    run.out << std::endl;
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace batch_benchmark
