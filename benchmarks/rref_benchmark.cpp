// Measures how fast remote references are created and dropped over one connection, and the memory
// of one on either side. It uses two processes and a Unix socket or TCP.
#include <unistd.h>

#include <CLI/App.hpp>
#include <atomic>
#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "common/command_line.hpp"
#include "common/resident_memory.hpp"

namespace rpc = batchrpc;

namespace rref_benchmark {

class Counter {
 public:
  explicit Counter(int start) : value_(start) { alive.fetch_add(1, std::memory_order_relaxed); }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() { alive.fetch_sub(1, std::memory_order_relaxed); }
  int add(int n) { return value_ += n; }

  static inline std::atomic<std::size_t> alive{0};

 private:
  int value_;
};

namespace {

using Clock = std::chrono::steady_clock;
using batchrpc_examples::allocated_bytes;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void run_owner(const std::string& address) {
  const rpc::Node node({.name = "owner", .rank = 0, .world_size = 0, .join = address});
  node.expose_class<Counter(int)>();
  node.expose<&Counter::add>();
  // Not rref_report(), because that looks at all objects.
  node.expose("objects", [] { return Counter::alive.load(); });
  node.expose("memory", [] { return allocated_bytes(); });
  for (;;)
    pause();
}

class User {
 public:
  explicit User(const std::string& address)
      : node_({.name = "user", .rank = -1, .join = address}) {}

  void await_objects(std::size_t count) const {
    while (node_.call<std::size_t()>("owner", "objects").get() != count)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  [[nodiscard]] std::int64_t owner_memory() const {
    return node_.call<std::int64_t()>("owner", "memory").get();
  }

  // Creates all at once, then drops all.
  void measure_many(std::size_t count) const {
    settle();
    const std::int64_t here = allocated_bytes();
    const std::int64_t there = owner_memory();
    auto start = Clock::now();
    std::vector<rpc::RRef<Counter>> handles;
    handles.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      handles.push_back(node_.create<Counter>("owner", static_cast<int>(i)));
    handles.back().call<&Counter::add>(1).get();
    const double made = seconds_since(start);
    await_objects(count);
    settle();
    const double per_handle = 1.0 / static_cast<double>(count);
    const auto of_vector = static_cast<std::int64_t>(count * sizeof(handles[0]));
    std::printf("memory of an RRef: %.0f bytes at the user, %.0f at the owner (object included)\n",
                static_cast<double>(allocated_bytes() - here - of_vector) * per_handle,
                static_cast<double>(owner_memory() - there) * per_handle);
    start = Clock::now();
    std::vector<rpc::RRef<Counter>>().swap(handles);
    await_objects(0);
    const double dropped = seconds_since(start);
    settle();
    std::printf("%zu at once: made in %.2f s, dropped in %.2f s: %.0f made and dropped/s\n", count,
                made, dropped, static_cast<double>(count) / (made + dropped));
    std::printf("left afterwards: %.1f kB at the user, %.1f kB at the owner\n",
                static_cast<double>(allocated_bytes() - here) / 1e3,
                static_cast<double>(owner_memory() - there) / 1e3);
  }

  // Creates and drops one after the other, with some in flight.
  void measure_stream(std::size_t count) const {
    constexpr std::size_t kUnderWay = 4096;
    std::vector<rpc::RRef<Counter>> ring(kUnderWay);
    const auto start = Clock::now();
    for (std::size_t i = 0; i < count; ++i) {
      auto& place = ring[i % kUnderWay];
      if (i % kUnderWay == 0 && place) ring[kUnderWay - 1].ready().get();
      place = node_.create<Counter>("owner", static_cast<int>(i));
    }
    ring.clear();
    await_objects(0);
    std::printf("%zu one after the other: %.0f made and dropped/s\n", count,
                static_cast<double>(count) / seconds_since(start));
  }

 private:
  // Long enough for nodes to free unused memory, which they do once a second.
  static void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(2200)); }

  const rpc::Node node_;
};

int run(int argc, const char* const* argv) {
  const auto parser =
      batchrpc_examples::make_parser("Makes and drops remote references over one connection.");
  CLI::App& app = *parser;
  std::size_t count = 1'000'000;
  std::string transport = "unix";
  app.add_option("--count", count, "how many")->check(CLI::Range(1, 100'000'000));
  app.add_option("--transport", transport)->check(CLI::IsMember({"unix", "tcp"}));
  if (!batchrpc_examples::parse_command_line(app, argc, argv, [] {})) return 0;
  const std::string address = transport == "tcp"
                                  ? "tcp://127.0.0.1:" + std::to_string(20'000 + getpid() % 20'000)
                                  : "unix-abstract:rref-benchmark-" + std::to_string(getpid());
  const pid_t owner = fork();
  if (owner == 0) run_owner(address);
  {
    const User user(address);
    user.measure_many(count);
    user.measure_many(count);
    user.measure_stream(count);
  }
  kill(owner, SIGKILL);
  return 0;
}

}  // namespace
}  // namespace rref_benchmark

int main(int argc, char** argv) {
  return batchrpc_examples::run_program("rref_benchmark", rref_benchmark::run, argc, argv);
}
