#include <atomic>
#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "future/virtual_wait.hpp"
#include "node/node_core.hpp"
#include "node/real_nodes.hpp"
#include "node/virtual_world.hpp"
#include "session/session.hpp"

// The end of a node: it refuses, drains, names what is left, and never hangs.

namespace endings {
int add(int a, int b) { return a + b; }
/// Answers after 3 ms.
class Asked {
 public:
  explicit Asked(std::shared_ptr<batchrpc::Loop> loop) : loop_(std::move(loop)) {}
  batchrpc::Future<int> ask() {
    batchrpc::Promise<int> promise;
    auto answer = promise.get_future();
    loop_->schedule(loop_->now() + std::chrono::milliseconds(3),
                    [promise = std::move(promise)]() mutable { promise.set_value(1); });
    return answer;
  }

 private:
  std::shared_ptr<batchrpc::Loop> loop_;
};
}  // namespace endings

namespace batchrpc {
namespace shutdown_test {

using namespace std::chrono_literals;
using test::may_have_run;
using test::outcome;
using test::RealPair;

struct Pair : test::NodePair {
  std::vector<Promise<int>> open;

  Pair() {
    b.expose<&endings::add>();
    for (const Node* node : {&a, &b}) {
      node->expose("slow", [this] {
        open.emplace_back();
        return open.back().get_future();
      });
    }
  }
};

TEST_CASE("a call that meets a session which the end of its own node has closed gets ShutDown") {
  Pair pair;
  const std::shared_ptr<NodeCore> core = detail::NodeAccess::core(pair.a);
  const auto session =
      std::make_shared<Session>(core, core->loop(), std::make_shared<test::VirtualWait>(), "b", 1);
  const auto call = [&] {  // by a thread that found the session before it was closed
    return detail::send_call<int, int, int>(
        [&](const detail::FunctionKey& function, detail::OutgoingOptions&& options,
            Encoder& encoder, detail::ReplyHandler&& handler) {
          session->outgoing().submit(function, std::move(options), encoder, std::move(handler));
        },
        detail::function_key("endings::add", "int(int, int)"),
        detail::outgoing(CallOptions{}, core.get()), 1, 2);
  };
  session->outgoing().close();
  CHECK(outcome(call()).code() == ErrorCode::not_sent);
  CHECK(outcome(session->outgoing().wait_for_credit(1)).code() == ErrorCode::not_sent);
  pair.a.shutdown(1s);
  CHECK(outcome(call()).code() == ErrorCode::shut_down);
  CHECK(outcome(session->outgoing().wait_for_credit(1)).code() == ErrorCode::shut_down);
}

TEST_CASE("a call ends at its deadline also while the fate of its broken session is open") {
  Pair pair;
  const std::shared_ptr<NodeCore> core = detail::NodeAccess::core(pair.a);
  auto call = pair.a.peer("b").with({.timeout = 500ms}).call<int()>("slow");
  pair.world.run_for(1ms);
  core->peers().session("b")->outgoing().close();  // as when it breaks, and before it is settled
  pair.world.run_for(498ms);
  CHECK_FALSE(call.ready());
  pair.world.run_for(10ms);
  REQUIRE(call.ready());
  CHECK(outcome(std::move(call)).code() == ErrorCode::timed_out);
  pair.open[0].set_value(1);
}

TEST_CASE("a shutdown waits for calls under way, and leaves nothing") {
  Pair pair;
  auto answer = pair.a.call<int()>("b", "slow");
  pair.world.run_for(1ms);
  pair.world.loop->schedule(pair.world.loop->now() + 300ms, [&] { pair.open[0].set_value(5); });
  const TimePoint start = pair.world.loop->now();
  CHECK(pair.a.shutdown(10s).empty());
  CHECK(pair.world.loop->now() - start >= 300ms);
  CHECK(pair.world.loop->now() - start < 310ms);
  CHECK(answer.get() == 5);
}

TEST_CASE("a shutdown waits for the calls of others that are being answered") {
  Pair pair;
  auto answer = pair.a.call<int()>("b", "slow");
  pair.world.run_for(1ms);
  pair.world.loop->schedule(pair.world.loop->now() + 300ms, [&] { pair.open[0].set_value(5); });
  CHECK(pair.b.shutdown(10s).empty());
  CHECK(answer.get() == 5);
}

TEST_CASE("a shutdown waits for what peers have sent that are gone meanwhile", "[threads]") {
  RealPair pair(1);
  std::atomic<int> ran{0};
  pair.a.expose("slow", [&ran] {
    std::this_thread::sleep_for(1ms);
    ++ran;
  });
  for (int i = 0; i < 50; ++i)
    pair.b.peer("a").notify<void()>("slow");
  CHECK(pair.b.shutdown(30s).empty());
  pair.a.call<void()>("a", "slow").get();  // the notifications were read before
  CHECK(pair.a.shutdown(30s).empty());
  CHECK(ran == 51);
}

TEST_CASE("a shutdown ends though a peer goes on calling an object") {
  Pair pair;
  const RRef<endings::Asked> handle = pair.a.own(std::make_shared<endings::Asked>(pair.world.loop));
  pair.a.expose<&endings::Asked::ask>();
  pair.a.expose("handle", [&handle] { return handle; });
  const auto there = pair.b.call<RRef<endings::Asked>()>("a", "handle").get();
  ErrorCode refused{};
  std::function<void()> again = [&] {
    there.call<&endings::Asked::ask>().then([&](const Result<int>& result) {
      if (result) pair.world.loop->schedule(pair.world.loop->now() + 1ms, again);
      if (!result && refused == ErrorCode{}) refused = result.code();
    });
  };
  again();
  pair.world.run_for(2ms);
  again();  // so that one is always under way
  pair.world.run_for(1s);
  const TimePoint start = pair.world.loop->now();
  const auto left = pair.a.shutdown(10s);
  REQUIRE(left.size() == 1);  // no call, but
  CHECK_THAT(left.front(), Catch::StartsWith("b holds 1 RRef to endings::Asked, since "));
  CHECK(pair.world.loop->now() - start < 2s);
  pair.world.run_for(1s);
  CHECK(refused == ErrorCode::shut_down);
}

TEST_CASE("at the deadline the stragglers are named, and their futures end with ShutDown") {
  Pair pair;
  std::vector<Future<int>> answers;
  for (int i = 0; i < 3; ++i)
    answers.push_back(pair.a.call<int()>("b", "slow"));
  auto never_sent = pair.a.call<&endings::add>("b", 1, 2);
  auto incoming = pair.b.call<int()>("a", "slow");
  pair.world.run_for(1ms);
  CHECK(never_sent.get() == 3);
  const TimePoint start = pair.world.loop->now();
  const auto left = pair.a.shutdown(2s);
  CHECK(pair.world.loop->now() - start >= 2s);
  CHECK(pair.world.loop->now() - start < 2010ms);
  CHECK(left ==
        std::vector<std::string>{"b: slow (3 calls)", "1 call from b, not yet answered: slow"});
  CHECK(pair.world.log.contain("shut down while waiting: b: slow (3 calls)"));
  for (auto& answer : answers) {
    REQUIRE(answer.ready());
    const auto result = outcome(std::move(answer));
    CHECK(result.code() == ErrorCode::shut_down);
    CHECK(may_have_run(result.error()));
    CHECK_THAT(result.message(), Catch::Contains("node a was shut down while 'slow'"));
  }
  pair.world.run_for(1s);
  REQUIRE(incoming.ready());
  const auto lost = outcome(std::move(incoming));
  REQUIRE_FALSE(lost);
  CHECK(lost.code() == ErrorCode::peer_lost);
}

TEST_CASE("a shutdown of no time ends at once") {
  Pair pair;
  auto answer = pair.a.call<int()>("b", "slow");
  pair.world.run_for(1ms);
  const TimePoint start = pair.world.loop->now();
  CHECK(pair.a.shutdown(0s).size() == 1);
  CHECK(pair.world.loop->now() == start);
  CHECK(outcome(std::move(answer)).code() == ErrorCode::shut_down);
}

TEST_CASE("a call that was not sent when the node ends has surely not run") {
  Pair pair;
  const Node c = pair.world.join("c");
  pair.world.network->isolate("c");
  auto answer = pair.b.call<&endings::add>("c", 1, 2);
  pair.b.shutdown(0s);
  const auto result = outcome(std::move(answer));
  CHECK(result.code() == ErrorCode::shut_down);
  CHECK_FALSE(may_have_run(result.error()));
  pair.world.run_for(10s);  // what the ended node has left on the loop
}

TEST_CASE("while a node shuts down it refuses new calls of its own and of others") {
  Pair pair;
  pair.a.expose<&endings::add>();
  CHECK(pair.b.call<&endings::add>("a", 1, 2).get() == 3);  // known to both from here on
  auto answer = pair.b.call<int()>("a", "slow");
  pair.world.run_for(1ms);
  std::optional<Result<int>> own;
  std::optional<Result<int>> other;
  pair.world.loop->schedule(pair.world.loop->now() + 100ms, [&] {
    pair.a.call<&endings::add>("b", 1, 2).then([&own](const Result<int>& r) { own = r; });
    pair.b.call<&endings::add>("a", 1, 2).then([&other](const Result<int>& r) { other = r; });
  });
  pair.a.shutdown(1s);
  pair.world.run_for(1s);
  REQUIRE(own);
  REQUIRE(other);
  CHECK(own->code() == ErrorCode::shut_down);
  CHECK_FALSE(may_have_run(own->error()));
  CHECK(other->code() == ErrorCode::shut_down);
  CHECK_FALSE(may_have_run(other->error()));
  CHECK(outcome(std::move(answer)).code() == ErrorCode::peer_lost);
}

TEST_CASE("a second shutdown does nothing") {
  Pair pair;
  CHECK(pair.a.shutdown(1s).empty());
  CHECK(pair.a.shutdown(1s).empty());
}

TEST_CASE("a node that has ended exposes nothing any more, and says so") {
  Pair pair;
  pair.a.shutdown(0s);
  CHECK_THROWS_AS(pair.a.expose<&endings::add>(), ShutDown);
}

TEST_CASE("peers are told of the end at once, with its reason") {
  Pair pair;
  std::string reason;
  pair.b.on_membership([&reason](const MembershipChange& change) { reason = change.reason; });
  pair.a.shutdown(1s);
  pair.world.run_for(0s);
  CHECK_THAT(reason, Catch::Contains("node a has shut down"));
}

TEST_CASE("two nodes that wait for each other's calls end all the same") {
  Pair pair;
  auto first = pair.a.call<int()>("b", "slow");
  auto second = pair.b.call<int()>("a", "slow");
  pair.world.run_for(1ms);
  CHECK_FALSE(pair.a.shutdown(1s).empty());
  CHECK(outcome(std::move(first)).code() == ErrorCode::shut_down);
  pair.world.run_for(0s);
  CHECK(outcome(std::move(second)).code() == ErrorCode::peer_lost);
}

TEST_CASE("what a node has exposed is destroyed with its end, and never used afterwards") {
  test::VirtualWorld world;
  auto alive = std::make_shared<int>(1);
  const std::weak_ptr<int> weak = alive;
  {
    const Node node = world.root();
    node.expose("f", [alive = std::move(alive)] { return *alive; });
    CHECK(node.call<int()>("root", "f").get() == 1);
  }
  CHECK(weak.expired());
}

}  // namespace shutdown_test
}  // namespace batchrpc
