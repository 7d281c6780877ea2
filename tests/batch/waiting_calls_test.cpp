#include "batch/waiting_calls.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace batchrpc::detail {
namespace waiting_calls_test {

using namespace std::chrono_literals;

struct SomeCall : BatchCall {
  void fail(const std::exception_ptr& /*error*/, bool /*began*/) noexcept override {}
};

std::unique_ptr<BatchCall> call_of(std::shared_ptr<const PeerIdentity> caller, std::size_t rows = 1,
                                   std::size_t bytes = 0) {
  auto call = std::make_unique<SomeCall>();
  call->caller = std::move(caller);
  call->rows = rows;
  call->bytes = bytes;
  return call;
}

std::shared_ptr<const PeerIdentity> peer(std::string name) {
  return std::make_shared<const PeerIdentity>(PeerIdentity{std::move(name), 1, 1});
}

bool everybody(std::string_view /*name*/) { return true; }

/// Has a queue of four rows.
struct Waiting : WaitingCalls {
  explicit Waiting(OnFull on_full = OnFull::reject) {
    configure({.max_size = 4, .max_queue = 4, .on_full = on_full}, everybody);
  }
};

TEST_CASE("a call finds room up to the bound, and is then refused, or held where calls wait") {
  Waiting rejects;
  for (int i = 0; i < 4; ++i) {
    CHECK_FALSE(rejects.room_for(*call_of(nullptr), false).refused);
    (void)rejects.add(call_of(nullptr));
  }
  const auto full = rejects.room_for(*call_of(nullptr), false);
  CHECK(full.refused);
  CHECK_THAT(full.limit, Catch::Contains("4 rows, BatchOptions::max_queue"));

  Waiting holds(OnFull::wait);
  (void)holds.add(call_of(nullptr, 4));
  const auto room = holds.room_for(*call_of(nullptr), false);
  CHECK_FALSE(room.refused);
  CHECK(room.held);
}

TEST_CASE("who is held comes in when calls have been taken, and nobody overtakes him") {
  Waiting waiting(OnFull::wait);
  BatchLane& lane = waiting.add(call_of(nullptr, 3));
  waiting.hold(call_of(nullptr, 2));
  CHECK(waiting.room_for(*call_of(nullptr, 1), false).held);  // though there is a row left
  waiting.admit_held();
  CHECK(waiting.held_rows() == 2);
  const BatchCalls taken = waiting.take(lane, 3, 0);
  CHECK(taken.size() == 1);
  waiting.admit_held();
  CHECK(waiting.held_rows() == 0);
  CHECK(waiting.queued_rows() == 2);
  CHECK_FALSE(waiting.room_for(*call_of(nullptr, 1), false).held);
}

TEST_CASE("the bytes of a call that was let in already have room") {
  WaitingCalls waiting;
  waiting.configure({.max_queue_bytes = 100}, everybody);
  (void)waiting.add(call_of(nullptr, 1, 40));
  CHECK_FALSE(waiting.room_for(*call_of(nullptr, 1, 60), false).refused);
  const auto full = waiting.room_for(*call_of(nullptr, 1, 61), false);
  CHECK(full.refused);
  CHECK_THAT(full.limit, Catch::Contains("max_queue_bytes"));
  CHECK_FALSE(waiting.room_for(*call_of(nullptr, 1, 61), true).refused);
}

TEST_CASE(
    "the newest calls of the caller that has most give way, and one that is pinned does not") {
  Waiting waiting;
  const auto hog = peer("hog");
  for (int i = 0; i < 4; ++i)
    (void)waiting.add(call_of(hog));
  const auto newcomer = call_of(peer("other"));
  const auto room = waiting.room_for(*newcomer, false);
  REQUIRE_FALSE(room.refused);
  REQUIRE(room.giving_way.size() == 1);
  CHECK(room.giving_way.front()->place == 3);

  WaitingCalls pinned;
  pinned.configure({.max_size = 1, .max_queue = 1}, everybody);
  auto only = call_of(hog, 2);
  only->pinned = true;
  (void)pinned.add(std::move(only));
  CHECK(pinned.room_for(*newcomer, false).refused);
}

TEST_CASE("a group is complete when each live member has a call in the queue, however it goes") {
  WaitingCalls waiting;
  std::vector<std::string> dead;
  const auto is_live = [&dead](std::string_view name) {
    return std::find(dead.begin(), dead.end(), name) == dead.end();
  };
  waiting.be_of("self");
  waiting.configure({.max_size = 4, .all_of = {"a", "self"}, .max_queue = 4}, is_live);
  CHECK_FALSE(waiting.group_complete());
  BatchLane& lane = waiting.add(call_of(nullptr));
  CHECK_FALSE(waiting.group_complete());
  waiting.hold(call_of(peer("a")));
  CHECK_FALSE(waiting.group_complete());  // it is not in the queue
  waiting.admit_held();
  CHECK(waiting.group_complete());
  CHECK(waiting.remove_if([](const BatchCall& call) { return call.caller != nullptr; }).size() ==
        1);
  CHECK_FALSE(waiting.group_complete());
  dead.emplace_back("a");
  waiting.refresh(is_live);
  CHECK(waiting.group_complete());
  CHECK(waiting.take(lane, 1, 0).size() == 1);
  CHECK_FALSE(waiting.group_complete());
  waiting.configure({}, is_live);
  CHECK_FALSE(waiting.group_complete());
}

TEST_CASE("calls expire in the queue and where they are held") {
  Waiting waiting(OnFull::wait);
  CHECK(waiting.earliest_deadline() == TimePoint::max());
  auto queued = call_of(nullptr);
  queued->deadline = TimePoint(2s);
  auto held = call_of(nullptr);
  held->deadline = TimePoint(1s);
  (void)waiting.add(std::move(queued));
  waiting.hold(std::move(held));
  CHECK(waiting.earliest_deadline() == TimePoint(1s));
  CHECK(waiting.remove_expired(TimePoint(999ms)).empty());
  CHECK(waiting.remove_expired(TimePoint(1s)).size() == 1);
  CHECK(waiting.held_rows() == 0);
  CHECK(waiting.earliest_deadline() == TimePoint(2s));
  CHECK(waiting.remove_expired(TimePoint(2s)).size() == 1);
  CHECK(waiting.empty());
}

}  // namespace waiting_calls_test
}  // namespace batchrpc::detail
