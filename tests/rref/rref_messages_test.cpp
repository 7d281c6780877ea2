#include "rref/rref_messages.hpp"

#include <malloc.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node/node_core.hpp"
#include "node/raw_frames.hpp"
#include "node/raw_peer.hpp"
#include "peers/member.hpp"
#include "rref/objects.hpp"

// What nodes tell each other of references comes late, again, or from somebody who makes it up.

namespace batchrpc {
namespace rref_messages_test {

using namespace std::chrono_literals;
using detail::Fork;
using detail::HoldUpdate;
using detail::ObjectId;
using objects::Counter;
using test::ObjectWorld;
using test::outcome;
using Updates = std::vector<HoldUpdate>;

void notify(const Node& from, const Updates& updates, const std::string& owner = "owner") {
  from.peer(owner).notify<void(Updates)>(detail::kHold, updates);
}

HoldUpdate update(HoldUpdate::Kind kind, std::uint64_t number, const ObjectId& object = {}) {
  return {.object = object, .kind = kind, .fork = {}, .parent = {}, .number = number};
}

/// In place of the library's own function of that name.
template <class Function>
void expose(const Node& node, std::string_view name, Function function) {
  detail::NodeAccess::core(node)->functions().remove(name);
  detail::NodeAccess::core(node)->expose(
      std::make_shared<detail::TypedFunction<Function, detail::FunctionTraits<Function>>>(
          std::string(name), std::move(function), ExposeOptions{.short_handler = true}));
}

/// How many objects of the owner's that node holds, as the owner knows.
std::size_t held_by(const std::string& node, const Node& owner) {
  std::size_t objects = 0;
  for (const OwnedRRefs& owned : rref_report(owner).owned) {
    for (const RRefHolder& holder : owned.holders) {
      if (holder.node == node) objects += holder.objects;
    }
  }
  return objects;
}

std::size_t awaited(const Node& owner) {
  std::size_t objects = 0;
  for (const OwnedRRefs& owned : rref_report(owner).owned) {
    if (owned.type.empty()) objects += owned.objects;
  }
  return objects;
}

/// Objects of the user's, and what the third node says of them.
struct TellingWorld : ObjectWorld {
  TellingWorld() { b.ready().get(); }

  RRef<Counter> a = user.create<Counter>("owner", 1);
  RRef<Counter> b = user.create<Counter>("owner", 2);
  ObjectId id_a = detail::RRefAccess::reference(a).object();
  ObjectId id_b = detail::RRefAccess::reference(b).object();
};

TEST_CASE("R7: a node that only guesses an object's id does not reach the object") {
  TellingWorld world;
  ObjectId guessed = world.id_a;
  CHECK(guessed.key != 0);
  CHECK(guessed.key != world.id_b.key);
  ++guessed.key;
  const auto called = outcome(world.third.call<int(ObjectId, int)>(
      "owner", "batchrpc.method:objects::Counter::add", guessed, 5));
  CHECK_FALSE(called);
  CHECK(world.a.call<&Counter::add>(1).get() == 2);
}

TEST_CASE("R1: what a holder tells again, or what comes late, changes nothing") {
  const TellingWorld nodes;
  const auto hold_a = update(HoldUpdate::hold, 1, nodes.id_a);
  const auto hold_b = update(HoldUpdate::hold, 2, nodes.id_b);
  const auto release_b = update(HoldUpdate::release, 3, nodes.id_b);
  notify(nodes.third, {hold_a, hold_b, release_b});
  notify(nodes.third, {hold_a, hold_b, release_b});
  nodes.settle();
  CHECK(held_by("third", nodes.owner) == 1);
  notify(nodes.third, {hold_b});
  nodes.settle();
  CHECK(held_by("third", nodes.owner) == 1);
  notify(nodes.third, {update(HoldUpdate::release, 5, nodes.id_a)});
  nodes.settle();
  CHECK(held_by("third", nodes.owner) == 0);
  notify(nodes.third, {hold_a});  // though nothing is held any more
  nodes.settle();
  CHECK(held_by("third", nodes.owner) == 0);
}

TEST_CASE("R6: what was told over a session that has ended does not undo the list over the next") {
  TellingWorld nodes;
  notify(nodes.third, {update(HoldUpdate::hold, 1, nodes.id_a)});
  // The list says that it holds the other one, and what it told before comes now.
  notify(nodes.third, {update(HoldUpdate::list_begins, 5), update(HoldUpdate::hold, 6, nodes.id_b),
                       update(HoldUpdate::list_ends, 7)});
  notify(nodes.third,
         {update(HoldUpdate::hold, 2, nodes.id_a), update(HoldUpdate::release, 3, nodes.id_b)});
  nodes.world.run_for(3s);
  CHECK(held_by("third", nodes.owner) == 1);
  nodes.a = nodes.b = {};
  nodes.world.run_for(3s);
  CHECK(Counter::alive == 1);
  CHECK(
      nodes.third
          .call<int(ObjectId, int)>("owner", "batchrpc.method:objects::Counter::add", nodes.id_b, 1)
          .get() == 3);
}

TEST_CASE("R3: a fork is not asked after while it is being confirmed") {
  const TellingWorld nodes;
  nodes.third.expose("drop", [](const RRef<Counter>& /*handle*/) {});
  const auto pass = [&nodes] {
    nodes.user.call<void(RRef<Counter>)>("third", "drop", nodes.a).get();
  };
  pass();
  int asked = 0;
  expose(nodes.third, detail::kAsk, [&asked](const std::vector<detail::ForkQuestion>& forks) {
    asked += static_cast<int>(forks.size());
    return std::vector<Fork>();
  });
  nodes.world.network->set_link("third", "owner", {.latency = 400ms});
  for (int i = 0; i < 10; ++i) {  // at any moment between two ticks
    pass();
    nodes.world.run_for(700ms);
  }
  CHECK(asked == 0);
  CHECK(rref_report(nodes.user).in_flight == 0);
}

TEST_CASE("R6: what a list does not name is released within a second, and nothing else is") {
  const TellingWorld nodes;
  const auto c = nodes.user.create<Counter>("owner", 3);
  c.ready().get();
  const ObjectId id_c = detail::RRefAccess::reference(c).object();
  notify(nodes.third, {update(HoldUpdate::hold, 1, nodes.id_a),
                       update(HoldUpdate::hold, 2, nodes.id_b), update(HoldUpdate::list_begins, 3),
                       update(HoldUpdate::hold, 4, nodes.id_a), update(HoldUpdate::list_ends, 5)});
  notify(nodes.third, {update(HoldUpdate::hold, 6, id_c)});  // since the list
  nodes.world.run_for(1100ms);
  CHECK(held_by("third", nodes.owner) == 2);
  // A second list, of one object, begins before the first was looked at: it counts, at its end.
  notify(nodes.third,
         {update(HoldUpdate::list_begins, 7), update(HoldUpdate::list_ends, 8),
          update(HoldUpdate::list_begins, 9), update(HoldUpdate::hold, 10, nodes.id_a)});
  nodes.world.run_for(1100ms);
  CHECK(held_by("third", nodes.owner) == 2);
  notify(nodes.third, {update(HoldUpdate::list_ends, 11)});
  nodes.world.run_for(1100ms);
  CHECK(held_by("third", nodes.owner) == 1);
}

TEST_CASE("R6: lists cost no more than they are long, however many objects there are") {
  const TellingWorld nodes;
  Updates updates;
  std::uint64_t number = 0;
  for (int i = 0; i < 8192; ++i) {
    ++number;
    updates.push_back(update(HoldUpdate::hold, number,
                             {.owner = nodes.id_a.owner, .creator = 5, .number = number}));
  }
  notify(nodes.third, updates);
  nodes.world.run_for(10ms);
  REQUIRE(awaited(nodes.owner) == 8192);
  updates.clear();
  for (int i = 0; i < 10'000; ++i) {
    updates.push_back(update(HoldUpdate::list_begins, ++number));
    updates.push_back(update(HoldUpdate::list_ends, ++number));
  }
  const std::clock_t before = std::clock();  // of this process, which does nothing else
  notify(nodes.third, updates);
  nodes.world.run_for(10ms);
  CHECK(std::clock() - before < 2 * CLOCKS_PER_SEC);
  nodes.world.run_for(1100ms);
  CHECK(held_by("third", nodes.owner) == 0);
}

TEST_CASE("R2: a hold that could not be noted is not confirmed, and calls are told of the limit") {
  const TellingWorld nodes;
  int arrived = 0;
  expose(nodes.third, detail::kArrived,
         [&arrived](const std::vector<Fork>& forks) { arrived += static_cast<int>(forks.size()); });
  const ObjectId other{.owner = nodes.id_a.owner, .creator = 6, .number = 1};
  std::uint64_t number = 0;
  Updates updates;
  const auto add = [&](const ObjectId& object) {
    ++number;
    updates.push_back(update(HoldUpdate::hold, number, object));
    updates.back().fork = {detail::NodeAccess::core(nodes.third)->incarnation(), number};
    updates.back().parent = "third";
  };
  for (std::uint64_t i = 1; i <= 8192; ++i)
    add({.owner = nodes.id_a.owner, .creator = 5, .number = i});
  notify(nodes.third, updates);
  nodes.settle();
  CHECK(arrived == 8192);
  updates.clear();
  add(other);
  add(nodes.id_a);
  notify(nodes.third, updates);
  nodes.settle();
  CHECK(arrived == 8193);
  const auto call = [&nodes](const ObjectId& object) {
    return outcome(nodes.third.call<int(ObjectId, int)>(
        "owner", "batchrpc.method:objects::Counter::add", object, 1));
  };
  CHECK(call(other).code() == ErrorCode::overloaded);
  CHECK(call(nodes.id_a).value() == 2);
}

TEST_CASE("R8: nobody waits for an object that its owner itself has not made") {
  const TellingWorld nodes;
  const auto own = nodes.owner.own(std::make_shared<Counter>(1));
  ObjectId next = detail::RRefAccess::reference(own).object();
  ++next.number;
  notify(nodes.third, {update(HoldUpdate::hold, 1, next)});
  const auto called = outcome(nodes.third.call<int(ObjectId, int)>(
      "owner", "batchrpc.method:objects::Counter::add", next, 1));
  CHECK(called.code() == ErrorCode::rref_expired);
  CHECK(nodes.world.time() < 1s);
  CHECK(awaited(nodes.owner) == 0);
  nodes.world.run_for(12s);
  const auto after = nodes.owner.own(std::make_shared<Counter>(2));
  REQUIRE(detail::RRefAccess::reference(after).object().number == next.number);
  CHECK(after.call<&Counter::add>(1).get() == 3);
  nodes.third.expose("add",
                     [](const RRef<Counter>& handle) { return handle.call<&Counter::add>(1); });
  CHECK(nodes.owner.call<int(RRef<Counter>)>("third", "add", after).get() == 4);
}

TEST_CASE("R8: what its creator has abandoned is not made by a creation that comes late") {
  const ObjectWorld nodes;
  const ObjectId object{detail::NodeAccess::core(nodes.owner)->incarnation(),
                        detail::NodeAccess::core(nodes.third)->incarnation(), 9};
  const auto abandon = [&] {
    nodes.third.peer("owner").notify<void(detail::NoObject)>(
        detail::kAbandon,
        detail::no_object(object, std::make_exception_ptr(NotSent("it was not sent"))));
  };
  abandon();
  abandon();
  const auto created = outcome(nodes.third.call<void(ObjectId, int)>(
      "owner", "batchrpc.create:objects::Counter", object, 1));
  CHECK(created.code() == ErrorCode::not_found);
  CHECK_FALSE(test::may_have_run(created.error()));
  CHECK(Counter::alive == 0);
}

TEST_CASE("R8: an object that lives is not abandoned, however often that is said") {
  const TellingWorld nodes;
  for (int i = 0; i < 2; ++i) {
    nodes.user.peer("owner").notify<void(detail::NoObject)>(
        detail::kAbandon,
        detail::no_object(nodes.id_a, std::make_exception_ptr(NotSent("it was not sent"))));
  }
  nodes.settle();
  CHECK(nodes.a.call<&Counter::add>(1).get() == 2);
}

TEST_CASE("R8: a fork is not ended by who is neither its receiver nor the owner") {
  const ObjectWorld nodes;
  nodes.third.expose("keep", [](const RRef<Counter>& /*handle*/) {});
  const auto own = nodes.user.own(std::make_shared<Counter>(1));
  nodes.world.network->set_link("user", "third", {.latency = 1s});
  nodes.user.peer("third").notify<void(RRef<Counter>)>("keep", own);
  Updates updates;
  std::vector<Fork> forks;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    forks.push_back({detail::NodeAccess::core(nodes.user)->incarnation(), i});
    updates.push_back(update(HoldUpdate::hold, i, detail::RRefAccess::reference(own).object()));
    updates.back().fork = forks.back();
    updates.back().parent = "user";
  }
  notify(nodes.owner, updates, "user");
  nodes.owner.peer("user").notify<void(std::vector<Fork>)>(detail::kArrived, forks);
  nodes.world.run_for(100ms);
  CHECK(rref_report(nodes.user).in_flight == 1);
  nodes.world.run_for(15s);
  CHECK(rref_report(nodes.user).in_flight == 0);
}

TEST_CASE("R7: that objects are gone may be said again, and by their owner only") {
  const TellingWorld nodes;
  using None = detail::NoObject;
  const auto gone = [](const ObjectId& object) {
    return detail::no_object(object, std::make_exception_ptr(RRefExpired("it is gone")));
  };
  const auto none = [&](const Node& from, const ObjectId& object) {
    for (int i = 0; i < 2; ++i) {
      from.peer("user").notify<void(std::vector<None>)>(detail::kNone,
                                                        std::vector<None>{gone(object)});
    }
    nodes.settle();
  };
  none(nodes.third, nodes.id_a);
  CHECK(nodes.a.call<&Counter::add>(1).get() == 2);
  none(nodes.owner, nodes.id_a);
  CHECK(outcome(nodes.a.call<&Counter::add>(1)).code() == ErrorCode::rref_expired);
  CHECK(nodes.b.call<&Counter::add>(1).get() == 3);
}

TEST_CASE("a peer that tells of objects without end, and reads nothing, fills no memory") {
  const test::VirtualWorld world;
  const ObjectWorld::LastTasks last_tasks{world};
  NodeOptions options = world.options("root");
  options.limits.max_outstanding_bytes = 64 * 1024;
  const Node root(options);
  test::expose_objects(root);
  world.network->set_link("raw", "root", {.capacity = 4096});
  test::RawPeer raw(world);
  raw.say_hello();
  raw.send(test::define(0, "batchrpc.join", signature<JoinReply, Member, std::int32_t>()));
  raw.send(test::define(1, std::string(detail::kHold), signature<void, Updates>()));
  Encoder join(wire::kEnvelopeWords);
  encode_struct<Member, std::int32_t>(
      join, wire::kBodyPointer,
      Member{.name = "raw", .incarnation = 1, .host = {}, .addresses = {"inproc://raw"}}, 0);
  wire::finish_frame(join, {.kind = wire::FrameKind::call, .id = 1});
  raw.send(join.words());
  REQUIRE(root.peers().size() == 1);
  std::uint64_t number = 0;
  for (int message = 0; message < 100; ++message) {
    Updates updates;
    for (int i = 0; i < 1000; ++i) {
      ++number;
      updates.push_back(
          update(HoldUpdate::hold, number, {.owner = 4711, .creator = 5, .number = number}));
    }
    raw.send(test::call_frame(
        {.flags = wire::kNoReply, .number = 1, .id = static_cast<std::uint64_t>(message)},
        updates));
    world.run_for(1ms);
  }
  std::size_t bytes = 0;
  for (const std::string& line : detail::NodeAccess::core(root)->peers().pending())
    bytes = std::max(bytes, static_cast<std::size_t>(std::strtoull(line.c_str(), nullptr, 10)));
  CHECK(bytes > 0);
  CHECK(bytes < 2'000'000);
}

TEST_CASE("nothing is kept of owners that nobody knows, when their handles are gone") {
  struct Handle {
    std::string owner{};
    ObjectId object{};
    std::string parent{};
    std::pair<std::uint64_t, std::uint64_t> fork{};
  };
  const ObjectWorld nodes;
  nodes.owner.expose("drop", [](const std::vector<RRef<Counter>>& /*handles*/) {});
  const auto drop = [&](std::uint64_t first) {
    std::vector<Handle> handles;
    for (std::uint64_t i = first; i < first + 10'000; ++i) {
      handles.push_back(
          {.owner = "nobody of that name at all " + std::to_string(i), .object = {i, i, 1}});
    }
    nodes.third.call<void(std::vector<Handle>)>("owner", "drop", handles).get();
    nodes.world.run_for(3s);
  };
  const auto allocated = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  drop(1'000'000);
  const auto before = allocated();
  for (std::uint64_t i = 2; i < 6; ++i)
    drop(i * 1'000'000);
  CHECK(allocated() <= before + 1'000'000);
}

}  // namespace rref_messages_test
}  // namespace batchrpc
