#include "scale_benchmark/sections.hpp"

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <batchrpc/batchrpc.hpp>
#include <batchrpc/transport/inproc.hpp>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "common/node_pair.hpp"
#include "common/resident_memory.hpp"
#include "common/sockets.hpp"

namespace rpc = batchrpc;

namespace scale_benchmark {

std::int32_t twice(std::int32_t x) { return 2 * x; }

std::uint64_t size_of(const rpc::Bytes& bytes) { return bytes.size(); }

class Counter {
 public:
  Counter() { alive.fetch_add(1, std::memory_order_relaxed); }
  ~Counter() { alive.fetch_sub(1, std::memory_order_relaxed); }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  std::int32_t add(std::int32_t number) { return sum_ += number; }

  static inline std::atomic<std::size_t> alive{0};

 private:
  std::int32_t sum_ = 0;
};

/// Holds all calls until it is opened.
class Gate {
 public:
  rpc::Future<std::int32_t> pass() {
    rpc::Promise<std::int32_t> promise;
    auto future = promise.get_future();
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(promise));
    return future;
  }
  std::uint64_t waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  void open() {
    std::vector<rpc::Promise<std::int32_t>> waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting.swap(waiting_);
    }
    for (auto& promise : waiting)
      promise.set_value(1);
  }

 private:
  std::mutex mutex_;
  std::vector<rpc::Promise<std::int32_t>> waiting_;
};

namespace {

using batchrpc_benchmarks::Transport;
using batchrpc_examples::allocated_bytes;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Two nodes of one process over a Unix socket.
struct Pair {
  Pair()
      : server(batchrpc_benchmarks::server_options(Transport::unix_socket)),
        client(batchrpc_benchmarks::start_client(batchrpc_benchmarks::client_options(
            Transport::unix_socket,
            batchrpc_benchmarks::join_address(server, Transport::unix_socket), "client"))) {}
  rpc::Node server;
  rpc::Node client;
};
constexpr const char* kServer = batchrpc_benchmarks::kServer;

/// A thread that runs many nodes.
struct Context {
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::thread thread{[this] { io.run(); }};
  ~Context() {
    work.reset();
    io.stop();
    thread.join();
  }
};

/// A hub node and `count` nodes that have joined it. One thread runs all except the hub.
struct Star {
  Star(Transport transport, std::size_t count)
      : network(transport == Transport::inproc ? rpc::InprocNetwork::make() : nullptr),
        hub(patient(batchrpc_benchmarks::server_options(transport, network))) {
    const std::string address = batchrpc_benchmarks::join_address(hub, transport);
    while (nodes.size() < count) {
      constexpr std::size_t kAtOnce = 32;  // a node accepts at most 64 unidentified connections
      std::vector<rpc::Future<rpc::Node>> joining;
      for (std::size_t i = nodes.size(); i < std::min(count, nodes.size() + kAtOnce); ++i) {
        rpc::NodeOptions options = patient(batchrpc_benchmarks::client_options(
            transport, address, "peer" + std::to_string(i), network));
        options.io_context = &context.io;
        joining.push_back(rpc::Node::start(options));
      }
      for (auto& node : joining)
        nodes.push_back(std::move(node).get());
    }
  }

  // One thread may answer late for so many nodes.
  static rpc::NodeOptions patient(rpc::NodeOptions options) {
    options.join_timeout = std::chrono::minutes(5);
    options.liveness.dead_after = std::chrono::minutes(1);
    options.logging.level = rpc::LogLevel::error;
    return options;
  }

  const std::shared_ptr<rpc::InprocNetwork> network;
  const std::int64_t memory_before = allocated_bytes();
  const rpc::Node hub;
  Context context;
  std::vector<rpc::Node> nodes;
};

/// Measures one round of `all` after a warm-up round, and the memory that it and the star take.
template <class Round>
Point measure_rounds(const Star& star, Round&& all) {
  all();
  const std::int64_t memory = allocated_bytes() - star.memory_before;
  const std::size_t rounds = std::max<std::size_t>(5, 2000 / star.nodes.size());
  const auto begin = Clock::now();
  for (std::size_t round = 0; round < rounds; ++round)
    all();
  return {.size = static_cast<double>(star.nodes.size()),
          .seconds = seconds_since(begin) / static_cast<double>(rounds),
          .bytes = static_cast<double>(memory)};
}

// One node calls `size` other nodes, each once, over existing connections.
Point call_peers(Transport transport, double size) {
  const Star star(transport, static_cast<std::size_t>(size));
  std::vector<std::string> names;
  for (const rpc::Node& node : star.nodes) {
    node.expose<&twice>({.short_handler = true});
    names.push_back(node.name());
  }
  return measure_rounds(star, [&] {
    for (auto& answer : rpc::when_all_settled(star.hub.each(names).call<&twice>(21)).get())
      if (*answer != 42) throw std::runtime_error("a call's result is wrong");
  });
}

// `size` nodes call one node, which answers all of them with one batch.
Point batch_observers(double size) {
  const Star star(Transport::unix_socket, static_cast<std::size_t>(size));
  const std::size_t count = star.nodes.size();
  const rpc::Batcher<std::int32_t(std::int32_t)> act({.max_size = count, .min_size = count},
                                                     [](std::vector<std::int32_t> states) {
                                                       for (std::int32_t& state : states)
                                                         state *= 2;
                                                       return states;
                                                     });
  star.hub.expose("act", act);
  return measure_rounds(star, [&] {
    std::vector<rpc::Future<std::int32_t>> actions;
    for (const rpc::Node& node : star.nodes)
      actions.push_back(node.call<std::int32_t(std::int32_t)>(kServer, "act", 21));
    for (auto& action : actions)
      if (std::move(action).get() != 42) throw std::runtime_error("an action is wrong");
  });
}

Point call_peers_inproc(double size) { return call_peers(Transport::inproc, size); }
Point call_peers_sockets(double size) { return call_peers(Transport::unix_socket, size); }

// `size` calls are made, wait at the same time, and are answered.
Point hold_calls(double size) {
  const auto count = static_cast<std::size_t>(size);
  const Pair pair;
  const auto gate = std::make_shared<Gate>();
  pair.server.expose<&Gate::pass>(gate, {.short_handler = true});
  pair.server.expose<&Gate::waiting>(gate, {.short_handler = true});
  pair.server.expose<&Gate::open>(gate);
  pair.client.call<&Gate::waiting>(kServer).get();
  std::vector<rpc::Future<std::int32_t>> calls;
  calls.reserve(count);
  const std::int64_t before = allocated_bytes();
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < count; ++i)
    calls.push_back(pair.client.call<&Gate::pass>(kServer));
  while (pair.client.call<&Gate::waiting>(kServer).get() < count) {
  }
  const std::int64_t memory = allocated_bytes() - before;
  pair.client.call<&Gate::open>(kServer).get();
  for (auto& call : calls)
    std::move(call).get();
  return {.size = size, .seconds = seconds_since(begin), .bytes = static_cast<double>(memory)};
}

// `size` objects are created in another node, each is called, and all are dropped.
Point hold_objects(double size) {
  const auto count = static_cast<std::size_t>(size);
  const Pair pair;
  pair.server.expose_class<Counter()>();
  pair.server.expose<&Counter::add>();
  std::vector<rpc::RRef<Counter>> handles;
  handles.reserve(count);
  const std::int64_t before = allocated_bytes();
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < count; ++i)
    handles.push_back(pair.client.create<Counter>(kServer));
  handles.back().call<&Counter::add>(1).get();
  const std::int64_t memory = allocated_bytes() - before;
  handles.clear();
  while (Counter::alive.load() > 0)
    std::this_thread::yield();
  return {.size = size, .seconds = seconds_since(begin), .bytes = static_cast<double>(memory)};
}

// A payload of `size` bytes is sent to another node.
Point send_bytes(double size) {
  const Pair pair;
  pair.server.expose<&size_of>({.short_handler = true});
  const rpc::Bytes payload = rpc::Bytes::allocate(static_cast<std::size_t>(size));
  std::memset(payload.mutable_data(), 1, payload.size());
  const auto send = [&] {
    if (pair.client.call<&size_of>(kServer, payload).get() != payload.size())
      throw std::runtime_error("a payload was truncated");
  };
  send();
  send();
  const int rounds = size < (64 << 20) ? 50 : 3;
  const auto begin = Clock::now();
  for (int round = 0; round < rounds; ++round)
    send();
  return {.size = size, .seconds = seconds_since(begin) / rounds};
}

}  // namespace

const std::vector<Section>& sections() {
  static const std::vector<Section> kSections{
      {"peers",
       "a peer",
       "one node calls all of its peers, in-process network",
       {2, 10, 30, 100, 300, 1000},
       &call_peers_inproc},
      {"socket_peers",
       "a peer",
       "the same, over Unix sockets",
       {2, 10, 30, 100, 300},
       &call_peers_sockets},
      {"observers",
       "an observer",
       "many nodes call one, which answers all with one batch, Unix sockets",
       {1, 2, 4, 8, 16, 32, 64},
       &batch_observers},
      {"calls", "a call", "calls in flight at once", {1e2, 1e3, 1e4, 1e5, 1e6}, &hold_calls},
      {"rrefs",
       "an object",
       "objects in another node, created and dropped",
       {1e2, 1e3, 1e4, 1e5, 1e6},
       &hold_objects},
      {"bytes",
       "a byte",
       "a payload sent to another node",
       {1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30},
       &send_bytes},
  };
  return kSections;
}

}  // namespace scale_benchmark
