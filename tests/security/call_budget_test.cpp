#include "session/call_budget.hpp"

#include <malloc.h>

#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "largest_allocation.hpp"
#include "node/raw_target.hpp"

// What the calls of a peer may take at a node, whatever the peer keeps to.

namespace batchrpc {
namespace call_budget_test {

using namespace std::chrono_literals;
using detail::ByteBudget;
using detail::ByteCharge;
using test::define;
using test::RawPeer;
using wire::FrameKind;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kCredit = 64 * 1024;
constexpr std::size_t kLimit = kCredit + 256 * kMiB;

/// A call whose payload of so many bytes is announced.
std::vector<Word> announced(wire::FrameHeader header, std::uint64_t size) {
  auto words = test::call_frame(header, Bytes::allocate(20'000));
  words.back() = size;
  return words;
}

/// A chunk, with its bytes.
std::vector<Word> chunk(std::uint64_t id, std::size_t size) {
  auto words = wire::plain_frame({.kind = FrameKind::chunk, .id = id, .value = size});
  words.resize(words.size() + wire::padded(size) / sizeof(Word));
  return words;
}

/// A node with little credit, and a peer that keeps to nothing.
struct Greedy {
  explicit Greedy(Duration expose_within = Duration::zero())
      : root([&] {
          NodeOptions options = world.options("root");
          options.limits.max_outstanding_bytes = kCredit;
          options.limits.max_payload_bytes = std::uint64_t{1} << 40;
          options.expose_within = expose_within;
          return Node(options);
        }()) {
    root.expose("twice", test::twice);
    root.expose("keep", [this](const Bytes&) { return never.emplace_back().get_future(); });
    root.expose("text", [this](const std::string&) { return never.emplace_back().get_future(); });
    peer.say_hello();
    peer.send(define(0, "keep", signature<int, Bytes>()));
    peer.send(define(1, "text", signature<int, std::string>()));
  }

  /// The errors that have come, by their code.
  std::size_t refused() {
    std::size_t count = 0;
    for (const auto& words : peer.frames()) {
      const auto frame = wire::parse_frame(words);
      if (frame.header.kind != FrameKind::error) continue;
      CHECK(wire::read_error(frame).code == static_cast<std::uint16_t>(ErrorCode::overloaded));
      ++count;
    }
    return count;
  }

  test::VirtualWorld world;
  std::vector<Promise<int>> never;
  Node root;
  RawPeer peer{world};
};

TEST_CASE("a budget counts what calls take, and lets in one that is larger than its half") {
  const detail::Ref<ByteBudget> budget(new ByteBudget(1000));
  {
    ByteCharge charge(*budget);
    charge.set(300);
    charge.set(400);
    CHECK(budget->used() == 400);
    CHECK(budget->fits(500));
    CHECK(budget->fits(std::uint64_t{1} << 63));
    ByteCharge other(*budget);
    other.set(200);
    CHECK(budget->fits(400));
    CHECK_FALSE(budget->fits(401));
    CHECK_FALSE(budget->fits(std::uint64_t{1} << 63));
    charge = std::move(other);
    CHECK(budget->used() == 200);
    charge.release();
    CHECK(budget->used() == 0);
    charge.set(7);
  }
  CHECK(budget->used() == 0);
  ByteCharge().set(5);  // counts nowhere
}

TEST_CASE("a charge outlives its peer's session") {
  ByteCharge charge;
  {
    const CallBudget budget{NodeLimits()};
    charge = ByteCharge(budget.of(true));
    charge.set(5);
  }
  charge.release();
}

TEST_CASE("a byte of each of many large payloads takes little, and too many are refused") {
  Greedy greedy;
  const std::size_t before = test::allocated_bytes();
  for (std::uint64_t id = 1; id <= 200; ++id) {
    greedy.peer.send(announced({.number = 0, .id = id}, 4 * kMiB));
    greedy.peer.send(chunk(id, 1));
  }
  CHECK(greedy.refused() == 200 - 64);  // 64 fit
  CHECK(test::allocated_bytes() < before + 8 * kMiB);
  CHECK_FALSE(greedy.peer.closed());
  test::another_peer_is_served(greedy.world);
  // What a refused call still sends is dropped. What is cancelled makes room.
  greedy.peer.send(chunk(200, 100'000));
  greedy.peer.send(wire::plain_frame({.kind = FrameKind::cancel, .id = 200}));
  greedy.peer.send(wire::plain_frame({.kind = FrameKind::cancel, .id = 1}));
  greedy.peer.send(announced({.number = 0, .id = 201}, 2 * kMiB));
  CHECK(greedy.refused() == 0);
  CHECK_FALSE(greedy.peer.closed());
  greedy.peer.send(chunk(200, 1));
  CHECK(greedy.peer.closed());
}

TEST_CASE("the rest of a refused call may come as a whole, and then its id is free") {
  Greedy greedy;
  greedy.peer.send(announced({.number = 0, .id = 1}, kLimit - kMiB));
  greedy.peer.send(announced({.number = 0, .id = 2}, 2 * kMiB));
  CHECK(greedy.refused() == 1);
  greedy.peer.send(chunk(2, kMiB));
  greedy.peer.send(chunk(2, kMiB));
  greedy.peer.send(wire::plain_frame({.kind = FrameKind::cancel, .id = 1}));
  greedy.peer.send(test::call_frame({.number = 0, .id = 2}, Bytes::allocate(100'000)));
  greedy.peer.send(chunk(2, 100'000));
  CHECK(greedy.never.size() == 1);
  CHECK_FALSE(greedy.peer.closed());
}

TEST_CASE("one call may be larger than all that a peer may have here, if little else is") {
  Greedy greedy;
  greedy.peer.send(announced({.number = 0, .id = 1}, kLimit / 2));
  greedy.peer.send(announced({.number = 0, .id = 2}, 1000 * kLimit));
  CHECK(greedy.refused() == 1);
  greedy.peer.send(wire::plain_frame({.kind = FrameKind::cancel, .id = 1}));
  greedy.peer.send(announced({.number = 0, .id = 3}, 1000 * kLimit));
  CHECK(greedy.refused() == 0);
  greedy.peer.send(announced({.number = 0, .id = 4}, kMiB));
  CHECK(greedy.refused() == 1);
}

TEST_CASE("calls that wait or run count until they are answered, those without a reply too") {
  const bool wants_reply = GENERATE(true, false);
  Greedy greedy;
  const std::uint16_t flags = wants_reply ? std::uint16_t{0} : wire::kNoReply;
  const auto send = [&](std::uint64_t id) {
    greedy.peer.send(
        test::call_frame({.flags = flags, .number = 1, .id = id}, std::string(8 * kMiB, 'x')));
  };
  const std::size_t before = test::allocated_bytes();
  for (std::uint64_t id = 1; id <= 40; ++id)
    send(id);
  CHECK(greedy.never.size() == 32);
  CHECK(greedy.refused() == (wants_reply ? 8 : 0));
  CHECK(greedy.world.log.contain("a notification from raw was dropped: 'text' was not run") ==
        !wants_reply);
  CHECK(test::allocated_bytes() < before + 2 * kLimit + 24 * kMiB);  // each is also decoded
  CHECK_FALSE(greedy.peer.closed());
  test::another_peer_is_served(greedy.world);
  greedy.never.front().set_value(1);
  send(41);
  CHECK(greedy.never.size() == 33);
  send(42);
  CHECK(greedy.never.size() == 33);
}

TEST_CASE("the sessions of one peer share its budget") {
  Greedy greedy;
  greedy.peer.send(announced({.number = 0, .id = 1}, kLimit - kMiB));
  RawPeer second(greedy.world);
  second.send(wire::hello_frame({.incarnation = 1, .session = 2, .joins = true, .name = "raw"}));
  second.send(define(0, "keep", signature<int, Bytes>()));
  second.send(announced({.number = 0, .id = 1}, 2 * kMiB));
  const auto error = second.frame(FrameKind::error);
  REQUIRE(error);
  CHECK(wire::read_error(wire::parse_frame(*error)).code ==
        static_cast<std::uint16_t>(ErrorCode::overloaded));
  greedy.peer.send(wire::plain_frame({.kind = FrameKind::cancel, .id = 1}));
  second.send(announced({.number = 0, .id = 2}, 2 * kMiB));
  CHECK_FALSE(second.frame(FrameKind::error));
}

TEST_CASE("a refusal says what the peer takes here, and the limit") {
  Greedy greedy;
  greedy.peer.send(announced({.number = 0, .id = 1}, kLimit - kMiB));
  greedy.peer.send(announced({.number = 0, .id = 2}, 2 * kMiB));
  const auto error = greedy.peer.frame(FrameKind::error);
  REQUIRE(error);
  const auto body = wire::read_error(wire::parse_frame(*error));
  CHECK_THAT(body.message,
             Catch::Contains("'keep' was not run: the unfinished calls of raw take") &&
                 Catch::Contains(std::to_string(kLimit)) &&
                 Catch::Contains("NodeOptions::limits.max_outstanding_bytes"));
  CHECK_FALSE(body.may_have_run);
}

TEST_CASE("calls of functions that are not there take no more than others while they wait") {
  Greedy greedy(60s);
  greedy.peer.send(define(2, "nothing", std::string(60'000, 'i')));
  const std::size_t before = test::allocated_bytes();
  for (std::uint64_t id = 1; id <= 2000; ++id)
    greedy.peer.send(test::call_frame({.number = 2, .id = id}, std::string("x")));
  CHECK(test::allocated_bytes() < before + 4 * kMiB);
  for (std::uint64_t id = 2001; id <= 2040; ++id)
    greedy.peer.send(test::call_frame({.number = 2, .id = id}, std::string(8 * kMiB, 'x')));
  CHECK(greedy.refused() >= 9);
  for (std::uint64_t id = 1; id <= 2040; ++id)
    greedy.peer.send(wire::plain_frame({.kind = FrameKind::cancel, .id = id}));
  CHECK(test::allocated_bytes() < before + 2 * kMiB);
  test::another_peer_is_served(greedy.world);
}

TEST_CASE("small calls that wait take no more than is counted for them, wherever they wait") {
  const std::string where = GENERATE("admitted", "admitted, with deadlines", "exclusive", "parked");
  CAPTURE(where);
  test::VirtualWorld world;
  NodeOptions options = world.options("root");
  options.expose_within = 60s;
  if (where.starts_with("admitted")) options.limits.calls.running = 1;
  std::deque<Promise<int>> never;
  const Node root(options);
  const auto mutex = std::make_shared<AsyncMutex>();
  const auto keep = [&never](int) { return never.emplace_back().get_future(); };
  if (where == "exclusive") {
    root.expose("keep", keep, {.exclusive = mutex});
  } else if (where != "parked") {
    root.expose("keep", keep);
  }
  RawPeer peer(world);
  peer.say_hello();
  peer.send(define(0, "keep", signature<int, int>()));
  const std::uint64_t deadline = where.ends_with("deadlines") ? 60'000'000 : 0;
  constexpr std::uint64_t kCalls = 4000;
  const auto send = [&](std::uint64_t first) {
    for (std::uint64_t id = first; id < first + kCalls; ++id)
      peer.send(test::call_frame({.number = 0, .id = id, .value = deadline}, 1));
  };
  send(1);
  const auto allocated = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const std::size_t before = allocated();
  send(1 + kCalls);
  const std::size_t each = (allocated() - before) / kCalls;
  const std::size_t message = test::call_frame({.number = 0, .id = 1}, 1).size() * sizeof(Word);
  CHECK(each <= detail::bytes_of_kept_call(message, 0, 0));
  CHECK_FALSE(peer.frame(FrameKind::error));
}

TEST_CASE("messages of the library in numbers that no honest peer sends cost the connection") {
  Greedy greedy(60s);
  greedy.peer.send(define(2, "batchrpc.nothing", signature<int, Bytes>()));
  for (std::uint64_t id = 1; id <= 3; ++id)
    greedy.peer.send(
        announced({.flags = wire::kNoReply, .number = 2, .id = id}, kLimit - 50 * kMiB));
  greedy.peer.send(announced({.number = 2, .id = 4}, kMiB));
  CHECK(greedy.refused() == 1);
  CHECK_FALSE(greedy.peer.closed());
  greedy.peer.send(announced({.flags = wire::kNoReply, .number = 2, .id = 5}, kMiB));
  CHECK(greedy.peer.closed());
  CHECK(greedy.world.log.contain("are beyond the limit of 268435456 for messages of the library"));
  test::another_peer_is_served(greedy.world);
}

TEST_CASE("a notification that is refused does not wait for credit for ever") {
  Greedy greedy;
  greedy.peer.send(announced({.number = 0, .id = 1}, kLimit - kMiB));
  (void)greedy.peer.frames();
  greedy.peer.send(announced({.flags = wire::kNoReply, .number = 0, .id = 2}, 2 * kMiB));
  const auto credit = greedy.peer.frame(FrameKind::credit);
  REQUIRE(credit);
  CHECK(wire::parse_frame(*credit).header.value == wire::kAllCredit);
}

}  // namespace call_budget_test
}  // namespace batchrpc
