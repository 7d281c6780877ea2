#include "call_benchmark/overload.hpp"

#include <atomic>
#include <batchrpc/batchrpc.hpp>
#include <cstdio>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "call_benchmark/child.hpp"
#include "call_benchmark/functions.hpp"
#include "call_benchmark/nodes.hpp"
#include "call_benchmark/report.hpp"
#include "common/statistics.hpp"

namespace call_benchmark {

namespace {

using namespace std::chrono_literals;

constexpr int kWorkers = 4;
constexpr auto kWork = 2ms;  // of a worker's time but not of CPU time, which the clients need
constexpr auto kTimeout = 800ms;
constexpr double kOverload = 5;

struct Tally {
  std::uint64_t offered = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> timed_out = 0;
  std::atomic<std::uint64_t> under_way = 0;
  std::mutex mutex;
  std::vector<double> answered_ms;  // guarded by mutex
  std::exception_ptr failed;        // errors other than the two above; guarded by mutex
  std::size_t in_the_meantime = 0;  // calls answered while calls were still offered
  double seconds = 0;               // for which calls were offered

  void count(const batchrpc::Result<void>& result, Clock::duration passed) {
    if (result) {
      const std::lock_guard lock(mutex);
      answered_ms.push_back(std::chrono::duration<double, std::milli>(passed).count());
    } else if (result.code() == batchrpc::ErrorCode::overloaded) {
      ++refused;
    } else if (result.code() == batchrpc::ErrorCode::timed_out) {
      ++timed_out;
    } else {
      const std::lock_guard lock(mutex);
      failed = result.error();
    }
    --under_way;
  }

  void call(const batchrpc::Node& client) {
    ++offered;
    ++under_way;
    client.peer(kServer)
        .with({.timeout = kTimeout})
        .call<&slow_work>()
        .then([this, begin = Clock::now()](const batchrpc::Result<void>& result) {
          count(result, Clock::now() - begin);
        });
  }

  /// Waits until all offered calls have ended.
  void finish(Interrupt& interrupt) {
    while (under_way > 0) {
      interrupt.check();
      std::this_thread::sleep_for(1ms);
    }
    const std::lock_guard lock(mutex);
    if (failed) std::rethrow_exception(failed);
  }
};

/// The calls per second that are answered if one more than can run is always waiting.
double capacity(const batchrpc::Node& client, double seconds, Interrupt& interrupt) {
  const Clock::time_point begin = Clock::now();
  const Stretch stretch(interrupt, seconds);
  std::vector<std::future<int>> callers;
  for (int i = 0; i < 2 * kWorkers; ++i) {
    callers.push_back(std::async(std::launch::async, [&] {
      int calls = 0;
      for (; !stretch.over(); ++calls)
        client.call<&slow_work>(kServer).get();
      return calls;
    }));
  }
  int answered = 0;
  for (std::future<int>& calls : callers)
    answered += calls.get();
  interrupt.check();
  return answered / std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Offers `rate` calls per second.
void offer(const batchrpc::Node& client, Tally& tally, double rate, double seconds,
           Interrupt& interrupt) {
  const Stretch stretch(interrupt, seconds);
  const Clock::time_point begin = Clock::now();
  while (!stretch.over()) {
    std::this_thread::sleep_for(500us);
    const auto due = static_cast<std::uint64_t>(
        std::chrono::duration<double>(Clock::now() - begin).count() * rate);
    while (tally.offered < due && !stretch.over())
      tally.call(client);
  }
  {
    const std::lock_guard lock(tally.mutex);
    tally.in_the_meantime = tally.answered_ms.size();
    tally.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  tally.finish(interrupt);
}

}  // namespace

nlohmann::json measure_overload(const Options& options, std::ostream& out, Interrupt& interrupt) {
  nlohmann::json entries = nlohmann::json::array();
  char line[160];
  out << "Calls answered in time (" << kTimeout.count() << " ms) by " << kWorkers
      << " workers, a call " << kWork.count() << " ms, at " << kOverload
      << " times what they can do, over tcp, " << options.seconds << " s\n";
  std::snprintf(line, sizeof line, "%-11s %10s %10s %10s %10s %10s %8s %8s\n", "call_limits",
                "capacity/s", "offered/s", "x capacity", "refused", "timed out", "p50 ms",
                "p99 ms");
  out << line << std::flush;
  for (int round = 0; round < options.rounds; ++round) {
    for (const bool limits : {true, false}) {
      Child server(Role::overloaded_server, Transport::tcp, {}, limits ? 1 : 0);
      Tally tally;  // must outlive the calls that it counts
      const batchrpc::Node client =
          start_client(Transport::tcp, server.read_line(interrupt), "client");
      const double able = capacity(client, options.seconds / 4, interrupt);
      offer(client, tally, kOverload * able, options.seconds, interrupt);
      const std::size_t answered = tally.answered_ms.size();
      if (answered == 0) tally.answered_ms.push_back(0);
      const auto ms = batchrpc_examples::percentiles(tally.answered_ms, {50, 99});
      const double goodput = static_cast<double>(tally.in_the_meantime) / tally.seconds / able;
      const double offered = static_cast<double>(tally.offered) / tally.seconds;
      std::snprintf(line, sizeof line, "%-11s %10.0f %10.0f %10.2f %10llu %10llu %8.1f %8.1f\n",
                    limits ? "yes" : "none", able, offered, goodput,
                    static_cast<unsigned long long>(tally.refused),
                    static_cast<unsigned long long>(tally.timed_out), ms[0], ms[1]);
      out << line << std::flush;
      entries.push_back({{"system", "batchrpc"},
                         {"case", "overload"},
                         {"call_limits", limits},
                         {"transport", "tcp"},
                         {"seconds", options.seconds},
                         {"capacity_per_s", able},
                         {"offered", tally.offered},
                         {"answered", answered},
                         {"refused", tally.refused.load()},
                         {"timed_out", tally.timed_out.load()},
                         {"to_capacity", goodput},
                         {"answered_ms", {{"p50", ms[0]}, {"p99", ms[1]}}},
                         {"machine", machine()}});
    }
  }
  return entries;
}

void slow_work() { std::this_thread::sleep_for(kWork); }

batchrpc::Node start_overloaded_server(bool limits) {
  batchrpc::NodeOptions options = node_options(Transport::tcp);
  options.name = kServer;
  options.logging.level = batchrpc::LogLevel::error;  // it refuses calls all the time
  options.num_worker_threads = kWorkers;
  if (limits) options.limits.calls = {.accepted = 1000, .running = kWorkers};
  batchrpc::Node node(std::move(options));
  node.expose<&slow_work>();
  return node;
}

}  // namespace call_benchmark
