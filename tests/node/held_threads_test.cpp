#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <thread>

#include "node/announced_calls.hpp"
#include "node/real_nodes.hpp"
#include "sanitizers.hpp"

// Held calls over real sockets, with threads.

namespace batchrpc {
namespace held_threads_test {

using namespace std::chrono_literals;
using test::scribbled;

/// Has one slot, which one call at a time may fill; the others are held until it is free. A call
/// that comes all the same, since its sender heard too late that it was to wait, goes elsewhere.
class OneSlot {
 public:
  explicit OneSlot(std::size_t size) : slot_(Bytes::allocate(size)) {}

  std::size_t take(int number, const Bytes& bytes) {
    const bool in_slot = bytes.data() == slot_.data();
    if (bytes == scribbled(bytes.size(), seed_of(number))) ++(in_slot ? good : elsewhere);
    if (in_slot) next();
    return bytes.size();
  }
  detail::ReceivePlan expect(const std::shared_ptr<detail::TransferGate>& gate) {
    const std::lock_guard lock(mutex_);
    const bool free = !std::exchange(busy_, true);
    const auto turn = std::make_shared<Turn>(Turn{free, gate});
    if (!free) waiting_.push_back(turn);
    return {.target = std::make_shared<detail::PayloadTarget>(
                [this, turn](std::size_t, std::size_t size) -> std::span<std::byte> {
                  const std::lock_guard asking(mutex_);
                  if (!turn->has_slot && std::erase(waiting_, turn) > 0) {
                    turn->gate->open();  // for what has not come yet
                  }
                  if (!turn->has_slot || size != slot_.size()) return {};
                  return {slot_.mutable_data(), size};
                }),
            .held = !free};
  }
  static std::uint32_t seed_of(int number) { return static_cast<std::uint32_t>(number); }

  std::atomic<int> good{0};
  std::atomic<int> elsewhere{0};

 private:
  struct Turn {
    bool has_slot;
    std::shared_ptr<detail::TransferGate> gate;
  };
  void next() {
    const std::lock_guard lock(mutex_);
    busy_ = !waiting_.empty();
    if (!busy_) return;
    waiting_.front()->has_slot = true;
    waiting_.front()->gate->open();  // under a lock, as it may be
    waiting_.erase(waiting_.begin());
  }

  const Bytes slot_;
  std::mutex mutex_;
  bool busy_ = false;
  std::vector<std::shared_ptr<Turn>> waiting_;
};

struct ToOneSlot {
  std::shared_ptr<OneSlot> slot;
  std::size_t operator()(int number, const Bytes& bytes) const { return slot->take(number, bytes); }
  [[nodiscard]] detail::ReceivePlan announce(
      Decoder& /*arguments*/, const std::shared_ptr<detail::TransferGate>& gate) const {
    return slot->expect(gate);
  }
};

TEST_CASE("threads of several nodes send large calls into one slot, over real sockets",
          "[threads]") {
  constexpr std::size_t kSize = std::size_t{20} << 20;  // more than is on its way, and set aside
  constexpr int kNodes = 3;
  constexpr int kCalls = BATCHRPC_TEST_TSAN ? 2 : 4;
  for (const test::Sockets transport : {test::Sockets::all, test::Sockets::unix_only}) {
    test::RealPair pair(2, transport);
    const ToOneSlot function{std::make_shared<OneSlot>(kSize)};
    pair.a.expose("fill", function);
    pair.a.expose("twice", [](int x) { return 2 * x; });
    std::vector<std::thread> threads;
    std::atomic<int> failed{0};
    for (int node = 0; node < kNodes; ++node) {
      threads.emplace_back([&pair, &failed, node] {
        try {
          const Node sender(test::real_joining(pair.a, "sender" + std::to_string(node), 2));
          std::vector<Future<std::size_t>> calls;
          for (int i = 0; i < kCalls; ++i) {
            const int number = node * kCalls + i;
            calls.push_back(sender.peer("a")
                                .with({.timeout = 60s})
                                .call<std::size_t(int, Bytes)>(
                                    "fill", number, scribbled(kSize, OneSlot::seed_of(number))));
            if (sender.call<int(int)>("a", "twice", i).get() != 2 * i) ++failed;
          }
          for (auto& call : calls) {
            if (call.get() != kSize) ++failed;
          }
        } catch (...) {
          ++failed;
        }
      });
    }
    for (std::thread& thread : threads)
      thread.join();
    CHECK(failed == 0);
    CHECK(function.slot->good + function.slot->elsewhere == kNodes * kCalls);
    CHECK(function.slot->good > 0);
  }
}

TEST_CASE("gates are opened by many threads while calls come, time out and are cut off",
          "[threads]") {
  test::RealPair pair(2);
  struct Gates {
    std::mutex mutex;
    std::vector<std::shared_ptr<detail::TransferGate>> all;
  };
  struct Held {
    std::shared_ptr<Gates> gates;
    std::size_t operator()(const Bytes& bytes) const { return bytes.size(); }
    [[nodiscard]] detail::ReceivePlan announce(
        Decoder& /*arguments*/, const std::shared_ptr<detail::TransferGate>& gate) const {
      const std::lock_guard lock(gates->mutex);
      gates->all.push_back(gate);
      return {.held = true};
    }
  };
  const auto gates = std::make_shared<Gates>();
  pair.a.expose("hold", Held{gates});
  std::atomic<bool> done{false};
  std::vector<std::thread> openers;
  for (unsigned seed = 0; seed < 3; ++seed) {
    openers.emplace_back([&, seed] {
      for (std::size_t i = seed; !done; i += 3) {
        std::shared_ptr<detail::TransferGate> gate;
        {
          const std::lock_guard lock(gates->mutex);
          if (!gates->all.empty()) gate = gates->all[(i / 2) % gates->all.size()];
        }
        if (gate) gate->open();
        std::this_thread::sleep_for(50us);
      }
    });
  }
  int answered = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<Future<std::size_t>> calls;
    for (int i = 0; i < 10; ++i) {
      calls.push_back(pair.b.peer("a")
                          .with({.timeout = i % 3 == 0 ? 1ms : Duration(30s)})
                          .call<std::size_t(Bytes)>("hold", Bytes::allocate(500'000)));
    }
    for (auto& call : calls) {
      try {
        if (call.get() == 500'000) ++answered;
      } catch (const TimedOut&) {
      }
    }
  }
  done = true;
  for (std::thread& opener : openers)
    opener.join();
  CHECK(answered >= 120);
  CHECK(pair.b.shutdown(30s).empty());
}

}  // namespace held_threads_test
}  // namespace batchrpc
