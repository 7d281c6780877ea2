#include "batchrpc/call/receive_plan.hpp"

#include <catch2/catch.hpp>

#include "largest_allocation.hpp"
#include "node/announced_calls.hpp"
#include "node/virtual_world.hpp"

// Functions that say where the payloads of their calls go.

namespace batchrpc {
namespace reception_test {

using namespace std::chrono_literals;
using test::AnnouncedCalls;
using test::outcome;
using test::scribbled;
using test::Swallow;

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Pair : test::NodePair {
  std::shared_ptr<AnnouncedCalls> announced;

  Pair() {
    const test::Swallower swallower;
    announced = swallower.announced;
    b.expose("swallow", swallower, {.short_handler = true});
  }
};

TEST_CASE("the payloads of a call land where its function wants them, and are not copied") {
  Pair pair;
  const Bytes sent = scribbled(4 * kMiB + 3, 1);
  test::reset_largest_allocation();
  CHECK(pair.a.call<Swallow>("b", "swallow", 7, sent).get() == sent.size());
  CHECK(test::largest_allocation() < 5 * kMiB);
  AnnouncedCalls::Call& call = pair.announced->calls.at(7);
  CHECK(call.asked == 1);
  CHECK(call.argument.data() == call.memory.data());
  CHECK(call.argument == sent);
  CHECK(call.kept_until_it_ran);
  CHECK(call.kept.expired());
  CHECK_FALSE(call.target.expired());  // what it gave memory for owns it
  call.argument = {};
  CHECK(call.target.expired());
}

TEST_CASE("a function is told who calls, until when, and of nothing that comes with its call") {
  Pair pair;
  pair.a.peer("b")
      .with({.timeout = 3s})
      .call<Swallow>("swallow", 1, Bytes::allocate(100'000))
      .get();
  CHECK(pair.announced->calls.at(1).caller == "a");
  CHECK(pair.announced->calls.at(1).time_left <= 3s);
  CHECK(pair.announced->calls.at(1).time_left > 2900ms);
  pair.a.call<Swallow>("b", "swallow", 2, Bytes::allocate(10'000)).get();
  CHECK(pair.announced->calls.at(2).ran);
  CHECK(pair.announced->calls.at(2).gate == nullptr);
  CHECK(CallContext::current() == nullptr);
}

TEST_CASE("where a function has no memory, or throws, the library's is taken") {
  Pair pair;
  const Bytes sent = scribbled(300'000, 2);
  pair.announced->has_memory = false;
  CHECK(pair.a.call<Swallow>("b", "swallow", 1, sent).get() == 300'000);
  pair.announced->has_memory = true;
  pair.announced->on_announce = [](int) { throw std::runtime_error("no"); };
  CHECK(pair.a.call<Swallow>("b", "swallow", 2, sent).get() == 300'000);
  CHECK(pair.announced->calls.at(2).asked == 0);
  CHECK(pair.announced->calls.at(2).argument == sent);

  // The same for the target itself.
  struct Clumsy {
    std::size_t operator()(int /*how*/, const Bytes& bytes) const {
      return bytes == scribbled(300'000, 2) ? bytes.size() : 0;
    }
    static detail::ReceivePlan announce(Decoder& arguments,
                                        const std::shared_ptr<detail::TransferGate>& /*gate*/) {
      const auto [how] = decode_struct<int>(arguments, wire::kBodyPointer - 1);
      return {.target = std::make_shared<detail::PayloadTarget>(
                  [how = how, memory = Bytes::allocate(1000)](std::size_t,
                                                              std::size_t) -> std::span<std::byte> {
                    if (how == 0) throw std::bad_alloc();
                    return {memory.mutable_data(), how == 1 ? memory.size() : 0};
                  })};
    }
  };
  pair.b.expose("clumsy", Clumsy{});
  for (const int how : {0, 1, 2})
    CHECK(pair.a.call<Swallow>("b", "clumsy", how, sent).get() == 300'000);
}

TEST_CASE("each of several payloads has memory of its own") {
  struct Three {
    std::shared_ptr<std::vector<std::pair<std::size_t, std::size_t>>> asked;
    std::size_t operator()(const Bytes& a, const Bytes& b, const Bytes& c) const {
      return a.size() + b.size() + c.size();
    }
    [[nodiscard]] detail::ReceivePlan announce(Decoder& /*arguments*/,
                                               const std::shared_ptr<detail::TransferGate>&) const {
      return {.target = std::make_shared<detail::PayloadTarget>(
                  [asked = asked](std::size_t index, std::size_t size) -> std::span<std::byte> {
                    asked->emplace_back(index, size);
                    return {};
                  })};
    }
  };
  Pair pair;
  const Three three{std::make_shared<std::vector<std::pair<std::size_t, std::size_t>>>()};
  pair.b.expose("three", three);
  CHECK(pair.a
            .call<std::size_t(Bytes, Bytes, Bytes)>("b", "three", Bytes::allocate(20'000),
                                                    Bytes::allocate(0), Bytes::allocate(600'000))
            .get() == 620'000);
  CHECK(*three.asked ==
        std::vector<std::pair<std::size_t, std::size_t>>{{0, 20'000}, {1, 600'000}});
}

TEST_CASE("a function that is taken back in the middle of its call lets go of what it was told") {
  Pair pair;
  pair.world.network->set_link({.latency = 10ms});
  const Node c = pair.world.join("c");
  auto size = c.call<Swallow>("b", "swallow", 1, Bytes::allocate(4 * kMiB));
  pair.world.run_for(50ms);
  REQUIRE(pair.announced->calls.contains(1));
  CHECK_FALSE(pair.announced->let_go(1));
  pair.b.unexpose("swallow");
  CHECK(outcome(std::move(size)).code() == ErrorCode::not_found);
  CHECK(pair.announced->calls.at(1).kept.expired());
}

}  // namespace reception_test
}  // namespace batchrpc
