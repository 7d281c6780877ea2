#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <stdexcept>
#include <vector>

#include "rref/objects.hpp"

// How many methods of one object run at once, and those that would wait for each other.

namespace objects {

/// Counts who is inside. Its methods may call its own.
class Desk {
 public:
  /// Waits inside for the gate.
  int enter() {
    most = std::max(most, ++inside);
    gate->then([] {}).get();
    --inside;
    return ++entered;
  }
  int count() { return ++counted; }

  int waits_for_own(const batchrpc::RRef<Desk>& self) { return self.call<&Desk::count>().get(); }
  bool polls_own(const batchrpc::RRef<Desk>& self) {
    return self.call<&Desk::count>().wait_for(batchrpc::Duration::zero());
  }
  void drops_own(const batchrpc::RRef<Desk>& self) {
    self.with({.cancel_when_dropped = true}).call<&Desk::count>();
  }
  batchrpc::Future<int> leaves_to_own(batchrpc::RRef<Desk> self) {
    co_return 10 * co_await self.call<&Desk::count>();
  }
  int waits_for_another(const batchrpc::RRef<Desk>& self, const batchrpc::RRef<Desk>& other) {
    self.call<&Desk::count>();  // nobody waits for it
    return other.call<&Desk::count>().get();
  }

  static inline std::optional<batchrpc::Future<void>> gate;
  static inline int inside = 0;
  static inline int most = 0;
  int entered = 0;
  int counted = 0;
};

/// The same, with room for three.
class WideDesk : public Desk {};

/// Cannot be constructed.
class BrokenDesk {
 public:
  BrokenDesk() { throw std::runtime_error("no desk"); }
  int count() { return ++counted; }

 private:
  int counted = 0;
};

}  // namespace objects

template <>
inline constexpr std::size_t batchrpc::methods_at_once<objects::WideDesk> = 3;
template <>
inline constexpr std::size_t batchrpc::methods_at_once<objects::BrokenDesk> = 3;

namespace batchrpc {
namespace methods_at_once_test {

using namespace std::chrono_literals;
using objects::Desk;
using objects::WideDesk;
using test::message_of;
using test::ObjectWorld;
using test::outcome;

struct DeskWorld : ObjectWorld {
  DeskWorld() {
    Desk::inside = Desk::most = 0;
    Desk::gate = gate.get_future();
    owner.expose_class<Desk()>();
    owner.expose<&Desk::enter>();
    owner.expose<&Desk::count>();
    owner.expose<&Desk::waits_for_own>();
    owner.expose<&Desk::polls_own>();
    owner.expose<&Desk::drops_own>();
    owner.expose<&Desk::leaves_to_own>();
    owner.expose<&Desk::waits_for_another>();
    owner.expose_class<WideDesk(), Desk>();
  }
  ~DeskWorld() { Desk::gate.reset(); }
  DeskWorld(const DeskWorld&) = delete;
  DeskWorld& operator=(const DeskWorld&) = delete;

  /// The most that were inside at once, of five.
  template <auto M, class T>
  int most_at_once(const RRef<T>& desk) {
    open_after(2s);
    std::vector<Future<int>> calls;
    for (int i = 0; i < 5; ++i)
      calls.push_back(desk.template call<M>());
    when_all(std::move(calls)).get();
    return Desk::most;
  }
  void open_after(Duration time) {
    world.loop->schedule(world.loop->now() + time, [this] { gate.set_value(); });
  }

  Promise<void> gate;
};

TEST_CASE("one method of an object runs at once, or as many as its class says") {
  SECTION("one") {
    DeskWorld nodes;
    CHECK(nodes.most_at_once<&Desk::enter>(nodes.user.create<Desk>("owner")) == 1);
  }
  SECTION("three, of an object that another node makes") {
    DeskWorld nodes;
    CHECK(nodes.most_at_once<&Desk::enter>(nodes.user.create<WideDesk>("owner")) == 3);
  }
  SECTION("three, of an object that its owner has made") {
    DeskWorld nodes;
    CHECK(nodes.most_at_once<&Desk::enter>(nodes.owner.own(std::make_shared<WideDesk>())) == 3);
  }
}

TEST_CASE("a cancelled call of an object with room for several leaves its place to the next") {
  DeskWorld nodes;
  const RRef<WideDesk> desk = nodes.user.create<WideDesk>("owner");
  nodes.open_after(2s);
  std::vector<Future<int>> calls;
  for (int i = 0; i < 9; ++i)
    calls.push_back(desk.call<&Desk::enter>());
  nodes.world.loop->schedule(nodes.world.loop->now() + 1s, [&] {
    CHECK(Desk::inside == 3);
    for (const std::size_t i : {3U, 4U, 6U, 8U})
      CHECK(calls[i].cancel());
  });
  int answered = 0;
  for (auto& call : calls)
    answered += outcome(std::move(call)) ? 1 : 0;
  CHECK(answered == 5);
  CHECK(desk.call<&Desk::enter>().get() == 6);
}

TEST_CASE("a method that waits for a method of its own object is refused at once") {
  const DeskWorld nodes;
  const RRef<Desk> desk = nodes.user.create<Desk>("owner");
  const TimePoint start = nodes.world.loop->now();
  const auto refused = outcome(desk.call<&Desk::waits_for_own>(desk));
  CHECK(refused.code() == ErrorCode::invalid_argument);
  CHECK_THAT(message_of(refused), Catch::Contains("waits for another method of its own object") &&
                                      Catch::Contains("co_await"));
  CHECK(nodes.world.loop->now() - start < 1s);
  nodes.settle();
  CHECK(desk.call<&Desk::count>().get() == 2);  // the refused wait's call has run since
}

TEST_CASE("a method may ask whether a call of its own object has ended, and drop it") {
  const DeskWorld nodes;
  const RRef<Desk> desk = nodes.user.create<Desk>("owner");
  CHECK_FALSE(desk.call<&Desk::polls_own>(desk).get());
  nodes.settle();
  CHECK(desk.call<&Desk::count>().get() == 2);
  desk.call<&Desk::drops_own>(desk).get();
  nodes.settle();
  CHECK(desk.call<&Desk::count>().get() == 3);  // the dropped one has not run
}

TEST_CASE("a method that leaves to its own object, or waits for another one, is not refused") {
  const DeskWorld nodes;
  const RRef<Desk> desk = nodes.user.create<Desk>("owner");
  const RRef<Desk> other = nodes.user.create<Desk>("owner");
  CHECK(desk.call<&Desk::leaves_to_own>(desk).get() == 10);
  CHECK(desk.call<&Desk::waits_for_another>(desk, other).get() == 1);
  CHECK(desk.call<&Desk::count>().get() == 3);
  const RRef<WideDesk> wide = nodes.user.create<WideDesk>("owner");
  CHECK(wide.call<&Desk::waits_for_own>(wide).get() == 1);
}

TEST_CASE("a handler that runs inside a method's wait is refused the method's object, too") {
  DeskWorld nodes;
  const RRef<Desk> desk = nodes.owner.create<Desk>("owner");
  Result<int> inner = 0;
  nodes.owner.expose("relay", [&] { inner = outcome(desk.call<&Desk::count>()); });
  nodes.open_after(2s);
  nodes.world.loop->schedule(nodes.world.loop->now() + 1s,
                             [&] { nodes.user.call<void()>("owner", "relay"); });
  CHECK(desk.call<&Desk::enter>().get() == 1);
  CHECK_THAT(message_of(inner), Catch::Contains("its own object"));
}

TEST_CASE("if the constructor fails, so do the calls of an object with several methods at once") {
  const ObjectWorld nodes;
  nodes.owner.expose_class<objects::BrokenDesk()>();
  nodes.owner.expose<&objects::BrokenDesk::count>();
  const auto desk = nodes.user.create<objects::BrokenDesk>("owner");
  std::vector<Future<int>> calls;
  for (int i = 0; i < 8; ++i)
    calls.push_back(desk.call<&objects::BrokenDesk::count>());
  nodes.world.run_for(1s);
  for (auto& call : calls) {
    REQUIRE(call.ready());
    const auto result = outcome(std::move(call));
    CHECK(result.code() == ErrorCode::remote_error);
    CHECK_THAT(result.message(), Catch::Contains("no desk"));
    CHECK_FALSE(test::may_have_run(result.error()));
  }
}

}  // namespace methods_at_once_test
}  // namespace batchrpc
