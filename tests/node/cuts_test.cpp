#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "long_tests.hpp"
#include "node/virtual_world.hpp"

// Promise 1: a call runs at most once and its future completes exactly once, over any number of
// connections.
namespace batchrpc {
namespace {

using namespace std::chrono_literals;

/// Calls from one node to the other, so many at a time; each says which it is.
struct Traffic {
  Traffic(const Node& caller, const Node& callee, std::size_t calls)
      : from(caller), to(callee.name()), ran(calls), ended(calls) {
    const std::string name = "run-for-" + from.name();
    callee.expose(name, [this](std::uint64_t call, const Bytes& bytes) {
      ++ran[call];
      return call + bytes.size();
    });
    callee.expose(name + "-later", [this](std::uint64_t call, const Bytes& bytes) {
      ++ran[call];
      Promise<std::uint64_t> promise;
      auto future = promise.get_future();
      if (waiting.size() == 16) {
        waiting.front()();
        waiting.erase(waiting.begin());
      }
      waiting.push_back([promise = std::make_shared<Promise<std::uint64_t>>(std::move(promise)),
                         result = call + bytes.size()] { promise->set_value(result); });
      return future;
    });
  }

  void start(std::size_t outstanding) {
    for (std::size_t i = 0; i < outstanding; ++i)
      call_next();
  }

  void call_next() {
    if (next == ended.size()) {
      for (auto& answer : std::exchange(waiting, {}))
        answer();
      return;
    }
    const std::uint64_t call = next++;
    const std::size_t size = call % 64 == 0 ? 40'000 : call % 8 == 0 ? 3'000 : 10;
    const std::string name = "run-for-" + from.name() + (call % 4 == 1 ? "-later" : "");
    from.call<std::uint64_t(std::uint64_t, Bytes)>(to, name, call, payload(size))
        .then([this, call, size](const Result<std::uint64_t>& result) {
          ++ended[call];
          if (!result || *result != call + size) ++wrong;
          call_next();
        });
  }

  static Bytes payload(std::size_t size) {
    static const Bytes kAll = Bytes::allocate(40'000);
    return Bytes(std::make_shared<Bytes>(kAll), kAll.span().first(size));
  }

  // What is not exactly once.
  [[nodiscard]] std::string faults() const {
    std::size_t lost = 0;
    std::size_t twice = 0;
    std::size_t unresolved = 0;
    for (std::size_t call = 0; call < ended.size(); ++call) {
      lost += ran[call] == 0;
      twice += ran[call] > 1 || ended[call] > 1;
      unresolved += ended[call] == 0;
    }
    return std::to_string(lost) + " lost, " + std::to_string(twice) + " twice, " +
           std::to_string(unresolved) + " unresolved, " + std::to_string(wrong) + " wrong";
  }

  const Node& from;
  const std::string to;
  std::vector<unsigned char> ran;
  std::vector<unsigned char> ended;
  std::vector<std::function<void()>> waiting;
  std::size_t next = 0;
  std::size_t wrong = 0;
};

TEST_CASE("promise 1: 10^5 calls over 1000 cuts at random bytes run exactly once") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(1, 2));
  INFO("seed " << seed);
  test::VirtualWorld world(seed);
  const Node root = world.root();
  const Node a = world.join("a");
  const Node b = world.join("b");
  std::mt19937_64 random(seed);
  // Each connection that is made has another end.
  const auto draw = [&] {
    world.network->set_link("a", "b",
                            {.latency = 50us,
                             .jitter = std::chrono::microseconds(random() % 200),
                             .max_chunk = random() % 4 == 0 ? 1 + random() % 3000 : 1 << 20,
                             .break_after = 300 + random() % 200'000});
  };
  std::function<void()> redraw = [&] {
    draw();
    world.loop->schedule(world.loop->now() + 100us, [&] { redraw(); });
  };
  redraw();
  Traffic there(a, b, 50'000);
  Traffic back(b, a, 50'000);
  there.start(32);
  back.start(32);
  const auto is_over = [](const Traffic& traffic) {
    return traffic.next == traffic.ended.size() && traffic.ended.back() != 0;
  };
  for (int i = 0; i < 3000 && !(is_over(there) && is_over(back)); ++i)
    world.run_for(100ms);
  world.run_for(20s);
  CHECK(there.faults() == "0 lost, 0 twice, 0 unresolved, 0 wrong");
  CHECK(back.faults() == "0 lost, 0 twice, 0 unresolved, 0 wrong");
  const std::uint64_t cuts = a.peers().front().reconnects;
  std::printf("promise 1: 100000 calls over %llu cuts in %lld ms of virtual time\n",
              static_cast<unsigned long long>(cuts), static_cast<long long>(world.time() / 1ms));
  CHECK(cuts >= 1000);
}

}  // namespace
}  // namespace batchrpc
