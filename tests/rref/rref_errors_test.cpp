#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "call/function_table.hpp"
#include "rref/objects.hpp"

// What goes wrong with objects behind handles: each has a typed error, and the next correct call
// works.

namespace objects {

/// Cannot be negative, on the wire.
struct Pressure {
  int pascals = 0;
};

class Gauge {
 public:
  explicit Gauge(Pressure pressure) : pressure_(pressure) {}
  int read() { return pressure_.pascals; }

 private:
  Pressure pressure_;
};

inline const batchrpc::Node* asker = nullptr;

struct Base {
  virtual ~Base() = default;
  virtual int use() = 0;
};
struct NoImplementation : Base {
  NoImplementation() { throw std::logic_error("not implemented"); }
  int use() override { return 1; }
};

/// Passes on what a third node throws.
inline batchrpc::Future<std::unique_ptr<Counter>> ask_third() {
  return asker->call<void()>("third", "throws").then([] { return std::make_unique<Counter>(1); });
}
inline std::unique_ptr<Broken> fail_to_make() { throw std::logic_error("not made"); }
inline std::unique_ptr<Counter> make_counter() { return std::make_unique<Counter>(1); }

}  // namespace objects

template <>
struct batchrpc::Codec<objects::Pressure> {
  using Wire = int;
  static Wire encode(const objects::Pressure& pressure) { return pressure.pascals; }
  static objects::Pressure decode(Wire wire) {
    if (wire < 0) throw std::runtime_error("no pressure is negative");
    return {wire};
  }
};

namespace batchrpc {
namespace rref_errors_test {

using namespace std::chrono_literals;
using objects::Broken;
using objects::Counter;
using objects::Diary;
using objects::Gauge;
using objects::Pressure;
using objects::Refusing;
using test::message_of;
using test::ObjectWorld;
using test::outcome;

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

void next_call_works(const ObjectWorld& nodes) {
  const RRef<Counter> counter = nodes.user.create<Counter>("owner", 1);
  CHECK(counter.call<&Counter::add>(1).get() == 2);
}

TEST_CASE("a constructor that throws fails the calls made at once, and those later") {
  const ObjectWorld nodes;
  const RRef<Broken> broken = nodes.user.create<Broken>("owner", true);
  Future<int> at_once = broken.call<&Broken::use>();
  const auto first = outcome(std::move(at_once));
  CHECK(first.code() == ErrorCode::remote_error);
  CHECK(says(message_of(first), "there is no disk"));
  CHECK(says(message_of(first), "the constructor of objects::Broken on owner"));
  const auto later = outcome(broken.call<&Broken::use>());
  CHECK(later.code() == ErrorCode::remote_error);
  CHECK(says(message_of(later), "there is no disk"));
  next_call_works(nodes);
}

TEST_CASE("what a constructor throws is of one type for the calls made at once and those later") {
  const ObjectWorld nodes;
  nodes.owner.expose_class<Refusing()>();
  nodes.owner.expose<&Refusing::use>();
  const auto refusing = nodes.user.create<Refusing>("owner");
  const auto at_once = outcome(refusing.call<&Refusing::use>());
  const auto later = outcome(refusing.call<&Refusing::use>());
  for (const auto& result : {at_once, later}) {
    CHECK(result.code() == ErrorCode::invalid_argument);
    CHECK(says(message_of(result), "the constructor of objects::Refusing on owner"));
    CHECK(says(message_of(result), "not today"));
    CHECK_FALSE(test::may_have_run(result.error()));
  }
}

void check_parts(const std::exception_ptr& error, const std::string& maker, const std::string& type,
                 const std::string& what) {
  try {
    std::rethrow_exception(error);
  } catch (const RemoteError& thrown) {
    CHECK(thrown.function() == maker);
    CHECK(thrown.node() == std::string("owner"));
    CHECK(thrown.type() == type);
    CHECK(thrown.thrown_what() == what);
    CHECK_FALSE(thrown.may_have_run());
  }
}

TEST_CASE("what has made no object, and what it threw, is the same at once and later") {
  const ObjectWorld nodes;
  nodes.owner.expose_factory<&objects::fail_to_make>();
  nodes.owner.expose_implementation<objects::Base, objects::NoImplementation()>();
  nodes.owner.expose<&objects::Base::use>();
  const auto check = []<class T>(const RRef<T>& broken, const std::string& maker,
                                 const std::string& type, const std::string& what) {
    const auto at_once = outcome(broken.template call<&T::use>());
    const auto ready = outcome(broken.ready());
    const auto later = outcome(broken.template call<&T::use>());
    for (const auto& error : {at_once.error(), ready.error(), later.error()})
      check_parts(error, maker, type, what);
  };
  check(nodes.user.create<Broken>("owner", true), "the constructor of objects::Broken",
        "std::runtime_error", "there is no disk");
  check(nodes.user.create<&objects::fail_to_make>("owner"), "objects::fail_to_make",
        "std::logic_error", "not made");
  check(nodes.user.create<objects::Base>("owner"), "the constructor of objects::Base",
        "std::logic_error", "not implemented");
}

TEST_CASE("the type of what a constructor passes on is what was thrown at first") {
  const ObjectWorld nodes;
  nodes.third.expose("throws", [] { throw std::logic_error("at first"); });
  objects::asker = &nodes.owner;
  nodes.owner.expose_factory<&objects::ask_third>();
  const auto made = nodes.user.create<&objects::ask_third>("owner");
  for (int i = 0; i < 2; ++i) {
    const auto result = outcome(made.call<&Counter::value>());
    try {
      std::rethrow_exception(result.error());
    } catch (const RemoteError& thrown) {
      CHECK(std::string(thrown.type()) == "std::logic_error");
      CHECK(says(thrown.what(), "throws on third threw std::logic_error: at first"));
    }
    CHECK(result.code() == ErrorCode::remote_error);
  }
}

TEST_CASE("a constructor may throw anything") {
  const ObjectWorld nodes;
  const RRef<Broken> broken = nodes.user.create<Broken>("owner", false);
  const auto result = outcome(broken.call<&Broken::use>());
  CHECK(result.code() == ErrorCode::remote_error);
  CHECK(says(message_of(result), "int"));
  next_call_works(nodes);
}

TEST_CASE("a handle to what could not be constructed fails on the other nodes as well") {
  const ObjectWorld nodes;
  nodes.third.expose("use", [](const RRef<Broken>& broken) { return broken.call<&Broken::use>(); });
  const RRef<Broken> broken = nodes.user.create<Broken>("owner", true);
  const auto result = outcome(nodes.user.call<int(RRef<Broken>)>("third", "use", broken));
  CHECK(result.code() == ErrorCode::remote_error);
  CHECK(says(message_of(result), "there is no disk"));
}

TEST_CASE("a node that was moved from neither makes nor exposes nor owns objects") {
  ObjectWorld nodes;
  const Node moved = std::move(nodes.user);
  const Node& empty = nodes.user;  // NOLINT: that is what is tested
  CHECK_THROWS_AS(empty.create<Counter>("owner", 1), InvalidArgument);
  CHECK_THROWS_AS(empty.create<Counter(int)>("owner", 1), InvalidArgument);
  CHECK_THROWS_AS(empty.create<&objects::make_counter>("owner"), InvalidArgument);
  CHECK_THROWS_AS(empty.own(std::make_shared<Counter>(1)), InvalidArgument);
  CHECK_THROWS_AS(empty.expose_class<Counter(int)>(), InvalidArgument);
  CHECK_THROWS_AS((empty.expose_implementation<Counter, Counter(int)>()), InvalidArgument);
  CHECK_THROWS_AS(empty.expose_factory<&objects::make_counter>(), InvalidArgument);
  CHECK_THROWS_AS(empty.expose<&Counter::add>(), InvalidArgument);
  CHECK_THROWS_AS(empty.unexpose<&Counter::add>(), InvalidArgument);
  CHECK_THROWS_AS(rref_report(empty), InvalidArgument);
}

TEST_CASE("an error of ready() calls it so") {
  const ObjectWorld nodes;
  nodes.world.network->partition("user", "owner");
  const auto made = outcome(nodes.user.create<Counter>("owner", 1).ready());
  CHECK(made.code() == ErrorCode::peer_lost);
  CHECK(says(message_of(made), "'ready()'"));
  CHECK(is_of_library(detail::kReady));  // it needs no credit
}

TEST_CASE("a method that throws fails its call, and the object goes on") {
  const ObjectWorld nodes;
  Promise<void> gate;
  Diary::gate = gate.get_future();
  gate.set_error(std::runtime_error("the gate is rusty"));
  const RRef<Diary> diary = nodes.user.create<Diary>("owner", "one");
  for (int i = 0; i < 2; ++i) {
    const auto result = outcome(diary.call<&Diary::wait>("waiting"));
    CHECK(result.code() == ErrorCode::remote_error);
    CHECK(says(message_of(result), "the gate is rusty"));
    CHECK(outcome(diary.call<&Diary::later>("later")).code() == ErrorCode::remote_error);
    CHECK(outcome(diary.call<&Diary::coroutine>("coroutine")).code() == ErrorCode::remote_error);
  }
  CHECK(diary.call<&Diary::lines>().get().size() == 7);
  Diary::gate.reset();
}

TEST_CASE("a method that returns an empty future fails its call, and the object goes on") {
  const ObjectWorld nodes;
  const RRef<Diary> diary = nodes.user.create<Diary>("owner", "one");
  const auto result = outcome(diary.call<&Diary::nothing>());
  CHECK_FALSE(result);
  CHECK(test::may_have_run(result.error()));
  CHECK(diary.call<&Diary::lines>().get().size() == 1);
}

TEST_CASE("an empty handle refuses to be used, and says so") {
  const RRef<Counter> empty;
  CHECK_THROWS_AS(empty.owner(), InvalidArgument);
  CHECK_THROWS_AS(empty.is_owner(), InvalidArgument);
  CHECK_THROWS_AS(empty.local().get(), InvalidArgument);
  CHECK_THROWS_AS(empty.call<&Counter::add>(1), InvalidArgument);
}

TEST_CASE("an argument that cannot be decoded fails the calls made at once, later, and elsewhere") {
  const ObjectWorld nodes;
  nodes.owner.expose_class<Gauge(Pressure)>();
  nodes.owner.expose<&Gauge::read>();
  RRef<Gauge> elsewhere;
  nodes.third.expose("keep", [&elsewhere](const RRef<Gauge>& handle) { elsewhere = handle; });
  nodes.world.network->partition("user", "owner");
  const auto gauge = nodes.user.create<Gauge>("owner", Pressure{-1});
  Future<int> at_once = gauge.call<&Gauge::read>();
  nodes.user.call<void(RRef<Gauge>)>("third", "keep", gauge).get();
  nodes.settle();  // the owner has heard of the handle, and not of the object
  nodes.world.network->heal("user", "owner");
  std::vector<std::exception_ptr> errors{outcome(std::move(at_once)).error()};
  nodes.settle();
  errors.push_back(outcome(gauge.call<&Gauge::read>()).error());
  errors.push_back(outcome(gauge.ready()).error());
  errors.push_back(outcome(elsewhere.call<&Gauge::read>()).error());
  for (const auto& error : errors) {
    check_parts(error, "the constructor of objects::Gauge", "std::runtime_error",
                "no pressure is negative");
  }
  elsewhere = {};
  CHECK(nodes.world.time() < 5s);
  CHECK(nodes.user.create<Gauge>("owner", Pressure{5}).call<&Gauge::read>().get() == 5);
}

TEST_CASE("a handle of another group is sent, refused when it is used, and forgotten") {
  const ObjectWorld nodes;
  const test::VirtualWorld world;
  NodeOptions options = nodes.world.options("elsewhere");
  options.join = "inproc://elsewhere";
  const Node stranger(options);
  test::expose_objects(stranger);
  nodes.third.expose("use",
                     [](const RRef<Counter>& handle) { return handle.call<&Counter::add>(1); });
  const auto foreign = stranger.own(std::make_shared<Counter>(1));
  const auto result = outcome(nodes.user.call<int(RRef<Counter>)>("third", "use", foreign));
  CHECK(result.code() == ErrorCode::not_found);
  CHECK(says(message_of(result), "elsewhere"));
  CHECK(foreign.call<&Counter::add>(1).get() == 2);
  nodes.world.run_for(45s);
  CHECK(rref_report(stranger).in_flight == 0);
  CHECK(rref_report(nodes.third).used.empty());
}

TEST_CASE("a node that has ended owns nothing, though it never had objects before") {
  test::VirtualWorld world;
  Node node = world.root();
  node.shutdown(0s);
  CHECK_THROWS_AS(node.own(std::make_shared<Counter>(1)), ShutDown);
}

TEST_CASE("an object cannot be created on a peer that nobody knows") {
  const ObjectWorld nodes;
  const RRef<Counter> counter = nodes.user.create<Counter>("nobody", 5);
  const auto result = outcome(counter.call<&Counter::add>(1));
  CHECK(result.code() == ErrorCode::not_found);
  CHECK(says(message_of(result), "nobody"));
  next_call_works(nodes);
}

TEST_CASE("calls of objects whose owner is killed end as those of functions do") {
  ObjectWorld nodes;
  test::expose_objects(nodes.third);
  const RRef<Diary> diary = nodes.user.create<Diary>("third", "one");
  Promise<void> open;
  Diary::gate = open.get_future();
  Future<std::string> under_way = diary.call<&Diary::later>("never");
  nodes.settle();
  nodes.world.kill("third");
  CHECK(outcome(std::move(under_way)).code() == ErrorCode::peer_lost);
  CHECK_FALSE(outcome(diary.call<&Diary::lines>()));
  next_call_works(nodes);
  Diary::gate.reset();
}

TEST_CASE("a method's call times out at its deadline") {
  const ObjectWorld nodes;
  Promise<void> open;
  Diary::gate = open.get_future();
  const RRef<Diary> diary = nodes.user.create<Diary>("owner", "one");
  CHECK(diary.call<&Diary::lines>().get().size() == 1);
  const Duration before = nodes.world.time();
  const auto result = outcome(diary.with({.timeout = 2s}).call<&Diary::later>("too late"));
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK(nodes.world.time() - before == 2s);
  open.set_value();
  Diary::gate.reset();
}

TEST_CASE("a creation that waits for its class to be exposed, and the calls behind it, work") {
  const test::VirtualWorld world;
  const ObjectWorld::LastTasks last_tasks{world};
  NodeOptions options = world.options("owner");
  options.expose_within = 5s;
  const Node owner(options);
  const Node user = world.join("user");
  const RRef<Counter> counter = user.create<Counter>("owner", 5);
  Future<int> sum = counter.call<&Counter::add>(2);
  world.run_for(1s);
  owner.expose<&Counter::add>();
  world.run_for(1s);
  CHECK_FALSE(sum.ready());
  owner.expose_class<Counter(int)>();
  CHECK(sum.get() == 7);
}

}  // namespace rref_errors_test
}  // namespace batchrpc
