#include "batchrpc/call/refuse_call.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

// A handler may refuse its call before it has done anything.

namespace refusing {

/// Takes one of three.
class Picky {
 public:
  int take(int n) {
    if (++asked % 3 != 0) batchrpc::refuse_call(batchrpc::Overloaded("not now"));
    return n;
  }
  int asked = 0;
};

}  // namespace refusing

namespace batchrpc {
namespace refuse_call_test {

using namespace std::chrono_literals;
using refusing::Picky;
using test::may_have_run;
using test::NodePair;
using test::outcome;

struct RefusingPair : NodePair {
  RefusingPair() {
    b.expose("full", [this]() -> int {
      ++asked;
      refuse_call(Overloaded("the buffer is full"));
    });
    b.expose("full_later", []() -> Future<int> {
      co_await make_ready_future();
      refuse_call(Overloaded("the buffer is full"));
    });
    b.expose("third_time", [this] {
      if (++asked < 3) refuse_call(Overloaded("the buffer is full"));
      return asked;
    });
    b.expose("thrown", []() -> int { throw Overloaded("the buffer is full"); });
    b.expose_class<Picky()>();
    b.expose<&Picky::take>();
  }
  int asked = 0;
};

TEST_CASE("a call that its handler refuses has surely not run") {
  const RefusingPair pair;
  for (const auto* function : {"full", "full_later"}) {
    const auto refused = outcome(pair.a.call<int()>("b", function));
    CHECK(refused.code() == ErrorCode::overloaded);
    CHECK_FALSE(may_have_run(refused.error()));
    CHECK_THAT(test::message_of(refused), Catch::Contains("the buffer is full"));
  }
  CHECK(may_have_run(outcome(pair.a.call<int()>("b", "thrown")).error()));
}

TEST_CASE("a call that its handler refuses is retried, idempotent or not") {
  const RefusingPair pair;
  const CallOptions retrying{.retry = {.attempts = 5}};
  CHECK(pair.a.peer("b").with(retrying).call<int()>("third_time").get() == 3);
}

TEST_CASE("a method may refuse its call") {
  const RefusingPair pair;
  const RRef<Picky> picky = pair.a.create<Picky>("b");
  for (int i = 0; i < 2; ++i) {
    const auto refused = outcome(picky.call<&Picky::take>(1));
    CHECK(refused.code() == ErrorCode::overloaded);
    CHECK_FALSE(may_have_run(refused.error()));
  }
  CHECK(picky.call<&Picky::take>(7).get() == 7);
}

TEST_CASE("outside of a handler a refusal is the error itself") {
  CHECK_THROWS_AS(refuse_call(Overloaded("the buffer is full")), Overloaded);
}

TEST_CASE("a refusal is no error of the handler") {
  test::VirtualWorld world;
  NodeOptions options = world.options("a");
  int errors = 0;
  options.logging.on_handler_error = [&errors](const HandlerError& /*error*/) { ++errors; };
  Node a(std::move(options));
  a.expose("full", [] { refuse_call(Overloaded("the buffer is full")); });
  CHECK_FALSE(outcome(a.call<void()>("a", "full")));
  CHECK(errors == 0);
}

}  // namespace refuse_call_test
}  // namespace batchrpc
