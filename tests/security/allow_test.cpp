#include "batchrpc/call/allow.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

// ExposeOptions::allow: which nodes may call a function.

namespace allow_test {

class Safe {
 public:
  int open() { return 42; }
};

}  // namespace allow_test

namespace batchrpc {
namespace allow_test {

using ::allow_test::Safe;
using Catch::Contains;
using test::outcome;
using test::VirtualWorld;

bool allows(const Allow& allow, const std::string& name) {
  return allow.allows({.name = name, .rank = 1, .incarnation = 1});
}

TEST_CASE("names of callers are matched by patterns") {
  CHECK(allows({}, "anyone"));
  CHECK(allows(Allow{"learner", "actor*"}, "learner"));
  CHECK(allows(Allow{"learner", "actor*"}, "actor"));
  CHECK(allows(Allow{"learner", "actor*"}, "actor17"));
  CHECK_FALSE(allows(Allow{"learner", "actor*"}, "learner2"));
  CHECK_FALSE(allows(Allow{"learner", "actor*"}, "my-actor"));
  CHECK(allows(Allow{"a?c"}, "abc"));
  CHECK_FALSE(allows(Allow{"a?c"}, "ac"));
  CHECK(allows(Allow{"*-7-*"}, "node-7-7-x"));
  CHECK(allows(Allow{"*ab"}, "aabab"));
  CHECK(allows(Allow{"**"}, ""));
  CHECK_FALSE(allows(Allow{"?"}, ""));
  CHECK_FALSE(allows(Allow{"a*"}, "A1"));
  CHECK_THROWS_WITH(Allow({"learner", ""}), Contains("a pattern is empty"));
  CHECK_THROWS_WITH(Allow(Allow::Rule()), Contains("an empty function"));
}

TEST_CASE("a pattern of many stars does not take long") {
  std::string stars;
  for (int i = 0; i < 100; ++i)
    stars += "*a";
  CHECK_FALSE(allows(Allow{stars}, std::string(255, 'a') + "b"));
}

TEST_CASE("a rule decides by the caller, and one that throws allows nothing") {
  CHECK(allows([](const PeerIdentity& caller) { return caller.rank == 1; }, "x"));
  CHECK_FALSE(allows([](const PeerIdentity& caller) { return caller.rank == 0; }, "x"));
  CHECK_FALSE(allows([](const PeerIdentity&) -> bool { throw std::runtime_error("no"); }, "x"));
}

TEST_CASE("a caller that may not call a function is refused before its arguments are read") {
  const VirtualWorld world;
  const Node root = world.root();
  int ran = 0;
  root.expose("set", [&ran](const std::vector<int>&) { ++ran; }, {.allow = {"learner"}});
  const Node learner = world.join("learner");
  const Node actor = world.join("actor");
  learner.call<void(std::vector<int>)>("root", "set", std::vector<int>{1}).get();
  const auto denied =
      outcome(actor.call<void(std::vector<int>)>("root", "set", std::vector<int>{1}));
  CHECK(denied.code() == ErrorCode::permission_denied);
  CHECK_FALSE(test::may_have_run(denied.error()));
  CHECK_THAT(denied.message(), Contains("root does not let actor call 'set'"));
  CHECK_THAT(explain(denied), Contains("PermissionDenied") && Contains("change the rule"));
  CHECK(world.log.contain("root does not let actor call 'set'"));
  const Bytes large = Bytes::allocate(1 << 20);
  root.expose("take", [&ran](const Bytes&) { ++ran; }, {.allow = {"learner"}});
  CHECK(outcome(actor.call<void(Bytes)>("root", "take", large)).code() ==
        ErrorCode::permission_denied);
  actor.peer("root").notify<void(std::vector<int>)>("set", std::vector<int>{1});
  world.run_for(std::chrono::seconds(1));
  CHECK(ran == 1);
  CHECK(root.metrics().answered.errors.of(ErrorCode::permission_denied) == 3);
}

TEST_CASE("batchers have callers that may call them, and classes have nodes that may create") {
  const VirtualWorld world;
  const Node root = world.root();
  Batcher<double(double)> twice({.max_size = 4}, [](std::vector<double> rows) {
    for (double& row : rows)
      row *= 2;
    return rows;
  });
  root.expose("twice", twice, {.allow = {"actor*"}});
  root.expose_class<Safe()>({"owner"});
  root.expose<&Safe::open>();
  const Node actor = world.join("actor1");
  const Node owner = world.join("owner");
  CHECK(actor.call<double(double)>("root", "twice", 2.0).get() == 4.0);
  CHECK(outcome(owner.call<double(double)>("root", "twice", 2.0)).code() ==
        ErrorCode::permission_denied);
  const RRef<Safe> denied = actor.create<Safe>("root");
  CHECK(outcome(denied.ready()).code() == ErrorCode::permission_denied);
  CHECK(outcome(denied.call<&Safe::open>()).code() == ErrorCode::permission_denied);
  const RRef<Safe> safe = owner.create<Safe>("root");
  CHECK(safe.call<&Safe::open>().get() == 42);
}

}  // namespace allow_test
}  // namespace batchrpc
