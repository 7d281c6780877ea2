// Measures how many calls per second two nodes of a SimulatedWorld make to each other on one
// thread. It measures CPU time, so that other load on the machine matters little.
#include <batchrpc/batchrpc.hpp>
#include <batchrpc/testing.hpp>
#include <chrono>
#include <ctime>
#include <functional>
#include <iostream>

namespace rpc = batchrpc;

int twice(int x) { return 2 * x; }

namespace {

/// Keeps `under_way` calls in flight; each answered call is followed by the next.
double calls_per_second(int under_way) {
  constexpr int kCalls = 300'000;
  rpc::SimulatedWorld world;
  world.network().set_link({.latency = std::chrono::microseconds(50)});
  const rpc::Node server(world.options("server"));
  const rpc::Node client(world.options("client"));
  server.expose<&twice>({.short_handler = true});
  client.call<&twice>("server", 1).get();

  int left = kCalls;
  int answered = 0;
  const std::function<void()> next = [&] {
    if (left-- <= 0) return;
    client.call<&twice>("server", left).then([&](int) {
      ++answered;
      next();
    });
  };
  const std::clock_t start = std::clock();
  for (int i = 0; i < under_way; ++i)
    next();
  world.run_until([&] { return answered == kCalls; });
  return kCalls / (static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
}

}  // namespace

int main() {
  for (const int under_way : {1, 16, 256}) {
    std::cout << under_way << " calls in flight: " << static_cast<long>(calls_per_second(under_way))
              << " calls/s\n";
  }
}
