// What a handler knows of its own node: CallContext::node().
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace handler_node {

std::shared_ptr<const batchrpc::Node> here() { return batchrpc::CallContext::current()->node(); }

std::string name() { return here()->name(); }
std::string name_there(const std::string& peer) { return here()->call<&name>(peer).get(); }
batchrpc::Future<std::string> both(std::string peer) {
  const std::string there = co_await here()->call<&name>(peer);
  co_return there + here()->call<&name>(peer).get();
}

struct Thing {
  Thing() : made_on(name()) {}
  explicit Thing(std::string on) : made_on(std::move(on)) {}
  [[nodiscard]] std::string where() const { return made_on + name(); }
  std::string made_on;
};
Thing make() { return Thing("by a factory on " + name() + ", "); }

}  // namespace handler_node

namespace batchrpc::test {
namespace handler_node_test {

using namespace std::chrono_literals;
namespace h = handler_node;

TEST_CASE("functions, coroutines, constructors, methods and factories reach their node") {
  NodePair pair;
  pair.a.expose<&h::name>();
  pair.b.expose<&h::name>({.short_handler = true});
  pair.b.expose<&h::name_there>();
  pair.b.expose<&h::both>();
  pair.b.expose_class<h::Thing()>();
  pair.b.expose_factory<&h::make>();
  pair.b.expose<&h::Thing::where>();
  CHECK(pair.a.call<&h::name>("b").get() == "b");
  CHECK(pair.a.call<&h::name_there>("b", "a").get() == "a");
  CHECK(pair.a.call<&h::both>("b", "a").get() == "aa");
  CHECK(pair.a.create<h::Thing()>("b").call<&h::Thing::where>().get() == "bb");
  CHECK(pair.a.create<&h::make>("b").call<&h::Thing::where>().get() == "by a factory on b, b");
}

TEST_CASE("a callback of a handler reaches the handler's node, whichever node has read the reply") {
  NodePair pair;
  pair.a.expose<&h::name>();
  std::string seen;
  pair.b.expose("ask", [&] {
    return pair.a.call<&h::name>("a").then(
        [&](const std::string&) { seen = CallContext::current()->node()->name(); });
  });
  pair.a.call<void()>("b", "ask").get();
  CHECK(seen == "b");
}

TEST_CASE("a coroutine reaches its node also when its call is cancelled") {
  NodePair pair;
  Promise<void> resume;
  std::string seen;
  const auto wait = [&]() -> Future<void> {
    const CallContext context = *CallContext::current();
    co_await resume.get_future();
    seen = context.node() ? context.node()->name() : "none";
  };
  pair.b.expose("wait", wait);
  Future<void> call = pair.a.call<void()>("b", "wait");
  pair.world.run_for(1s);
  call.cancel();
  pair.world.run_for(1s);
  resume.set_value();
  pair.world.run_for(1s);
  CHECK(seen == "b");
}

TEST_CASE("a handler's node outlives the handler, and its calls then fail with ShutDown") {
  NodePair pair;
  std::shared_ptr<const Node> kept;
  CallContext context;
  pair.b.expose("keep", [&] {
    context = *CallContext::current();
    kept = context.node();
  });
  pair.a.call<void()>("b", "keep").get();
  REQUIRE(kept);
  CHECK(kept->name() == "b");
  CHECK(context.node() == nullptr);  // the call was answered
  pair.b.shutdown(1s);
  CHECK(outcome(kept->call<void()>("a", "nothing")).code() == ErrorCode::shut_down);
  CHECK(CallContext().node() == nullptr);
}

}  // namespace handler_node_test
}  // namespace batchrpc::test
