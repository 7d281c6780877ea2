#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>

#include "batchrpc/profile.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc::test {

/// Two nodes with 1 ms between them, each way.
struct ProfiledPair {
  explicit ProfiledPair(Duration latency = std::chrono::milliseconds(1)) {
    world.network->set_link({.latency = latency});
    a.emplace(world.root("a"));
    b.emplace(world.join("b"));
    b->expose("slow", [this](int milliseconds) {
      world.loop->advance(std::chrono::milliseconds(milliseconds));
      return milliseconds;
    });
    b->expose("later", [this](int milliseconds) -> Future<int> {
      return delayed(std::chrono::milliseconds(milliseconds)).then([milliseconds] {
        return milliseconds;
      });
    });
    b->expose("bad", [](int) -> int { throw std::out_of_range("too far"); });
    a->call<int(int)>("b", "slow", 0).get();  // connected
  }
  Future<void> delayed(Duration duration) const {
    auto promise = std::make_shared<Promise<void>>();
    Future<void> future = promise->get_future();
    world.loop->schedule(world.loop->now() + duration, [promise] { promise->set_value(); });
    return future;
  }

  VirtualWorld world;
  std::optional<Node> a;
  std::optional<Node> b;
};

/// Of a call between nodes of one clock.
inline CallPhases phases_of(const CallRecord& call) {
  return CallPhases::of(call, Duration::zero());
}

}  // namespace batchrpc::test
