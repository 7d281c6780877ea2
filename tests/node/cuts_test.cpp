#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "cutting_proxy.hpp"
#include "long_tests.hpp"
#include "node/virtual_world.hpp"
#include "node_sockets.hpp"

// Promise 1: a call runs at most once and its future completes exactly once, over any number of
// connections.
namespace batchrpc {
namespace cuts_test {

using namespace std::chrono_literals;

/// Calls from one node to the other, so many at a time; each says which it is. Some are answered in
/// place, some later.
struct Traffic {
  Traffic(const Node& caller, const Node& callee, std::size_t calls)
      : from(caller), to(callee.name()), ran(calls), ended(calls) {
    callee.expose("now-for-" + from.name(), [this](std::uint64_t call, const Bytes& bytes) {
      ++ran[call];
      return call + bytes.size();
    });
    callee.expose("later-for-" + from.name(), [this](std::uint64_t call, const Bytes& bytes) {
      ++ran[call];
      Promise<std::uint64_t> promise;
      auto future = promise.get_future();
      std::vector<Answer> answers;
      {
        const std::lock_guard lock(mutex);
        waiting.push_back({std::move(promise), call + bytes.size()});
        // After the last call none will come that answers this one.
        const std::size_t most = next < ended.size() ? 16 : 0;
        while (waiting.size() > most) {
          answers.push_back(std::move(waiting.front()));
          waiting.pop_front();
        }
      }
      answer(answers);
      return future;
    });
  }

  void start(std::size_t outstanding) {
    for (std::size_t i = 0; i < outstanding; ++i)
      call_next();
  }

  void call_next() {
    const std::uint64_t call = next++;
    if (call >= ended.size()) {
      std::deque<Answer> last;
      {
        const std::lock_guard lock(mutex);
        last.swap(waiting);
      }
      answer(last);
      return;
    }
    const std::size_t size = call % 64 == 0 ? 40'000 : call % 8 == 0 ? 3'000 : 10;
    const std::string name = (call % 4 == 1 ? "later-for-" : "now-for-") + from.name();
    from.peer(to)
        .with({.timeout = Duration::max()})
        .call<std::uint64_t(std::uint64_t, Bytes)>(name, call, payload(size))
        .then([this, call, size](const Result<std::uint64_t>& result) {
          ++ended[call];
          if (!result || *result != call + size) ++wrong;
          ++done;
          call_next();
        });
  }

  static Bytes payload(std::size_t size) {
    static const Bytes kAll = Bytes::allocate(40'000);
    return Bytes(kAll.owner(), kAll.span().first(size));
  }

  [[nodiscard]] bool is_over() const { return done == ended.size(); }

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

  struct Answer {
    Promise<std::uint64_t> promise;
    std::uint64_t result = 0;
  };
  template <class Answers>
  static void answer(Answers& answers) {
    for (Answer& each : answers)
      each.promise.set_value(each.result);
  }

  const Node& from;
  const std::string to;
  std::vector<std::atomic<unsigned char>> ran;
  std::vector<std::atomic<unsigned char>> ended;
  std::mutex mutex;
  std::deque<Answer> waiting;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  std::atomic<std::size_t> wrong{0};
};

constexpr auto kExactlyOnce = "0 lost, 0 twice, 0 unresolved, 0 wrong";

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
  const auto calls = static_cast<std::size_t>(test::less_if_sanitized(50'000));  // each way
  Traffic there(a, b, calls);
  Traffic back(b, a, calls);
  there.start(32);
  back.start(32);
  for (int i = 0; i < 3000 && !(there.is_over() && back.is_over()); ++i)
    world.run_for(100ms);
  CHECK(there.faults() == kExactlyOnce);
  CHECK(back.faults() == kExactlyOnce);
  const std::uint64_t cuts = a.peers().front().reconnects;
  std::printf("promise 1: %zu calls over %llu cuts in %lld ms of virtual time\n", 2 * calls,
              static_cast<unsigned long long>(cuts), static_cast<long long>(world.time() / 1ms));
  CHECK(cuts >= calls / 50);
}

TEST_CASE("promise 1: replies arrive in time proportional to the cut") {
  const bool breaks = GENERATE(false, true);  // the connection, or what is sent waits
  for (const Duration cut : {10ms, 30ms, 100ms, 300ms, 1000ms, 2000ms, 4000ms}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      test::VirtualWorld world(seed);
      const Node a = world.root("a");
      world.network->set_link({.latency = 1ms});
      const Node b = world.join("b");
      int ran = 0;
      b.expose("count", [&ran] { return ++ran; });
      CHECK(a.call<int()>("b", "count").get() == 1);
      world.run_for(std::chrono::milliseconds(seed * 13));
      const Duration start = world.time();
      auto call = a.call<int()>("b", "count");
      world.run_for(500us);  // it is on its way
      world.network->partition("a", "b");
      if (breaks) world.network->cut("a", "b");
      world.loop->schedule(world.loop->now() + cut, [&] { world.network->heal("a", "b"); });
      CHECK(call.get() == 2);
      INFO("seed " << seed << ", cut for " << cut / 1ms << " ms, " << (world.time() - start) / 1ms);
      // Tries: within a second, then after at most 1.6 x 1.2 times the pause before.
      CHECK(world.time() - start <= (breaks ? 2 * cut + 1100ms : cut + 20ms));
    }
  }
}

TEST_CASE("promise 1: 10^5 calls through a proxy that cuts real connections run exactly once",
          "[threads]") {
  const std::string name = "batchrpc-cuts-" + std::to_string(::getpid());
  const std::string way = GENERATE("plain TCP", "TCP", "Unix sockets");
  const bool tcp = way != "Unix sockets";
  CAPTURE(way);
  NodeOptions options{
      .name = "root",
      .join = tcp ? "tcp://127.0.0.1:0" : "unix-abstract:" + name,
      .transports = test::transports_of(tcp ? test::Sockets::tcp : test::Sockets::unix_only),
      .liveness = {.dead_after = 30s}};  // on a machine that may be busy
  if (way == "plain TCP") {
    options.security.insecure = true;
    options.logging.level = LogLevel::error;
  }
  Node root(options);
  test::CuttingProxy proxy(
      {.target = Address::parse(root.address()),
       .listen = Address::parse(tcp ? "tcp://127.0.0.1:0" : "unix-abstract:" + name + "-proxy"),
       .seed = 7,
       .mean_bytes = 100'000});
  options.name = "a";
  options.rank = -1;
  options.join = proxy.address().to_string();
  Node a(options);
  const auto calls = static_cast<std::size_t>(
      test::less_if_sanitized(way == "plain TCP" ? 50'000 : 10'000));  // each way
  Traffic there(a, root, calls);
  Traffic back(root, a, calls);
  there.start(32);
  back.start(32);
  for (int i = 0; i < 2000 && !(there.is_over() && back.is_over()); ++i)
    std::this_thread::sleep_for(50ms);
  CHECK(there.faults() == kExactlyOnce);
  CHECK(back.faults() == kExactlyOnce);
  std::printf("promise 1: %zu calls over %llu cuts of real connections\n", 2 * calls,
              static_cast<unsigned long long>(proxy.cuts()));
  // When a cut hits a TLS handshake, the node goes round the proxy, to the root's own address.
  CHECK(proxy.cuts() >= (way == "TCP" ? 1 : calls / 50));
  a.shutdown(Duration::zero());
  root.shutdown(Duration::zero());
}

}  // namespace cuts_test
}  // namespace batchrpc
