#include <catch2/catch.hpp>
#include <functional>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"
#include "node/virtual_world.hpp"

// What the program's own code throws, wherever the library runs it, stays there. Handlers and
// codecs: call_errors_test.cpp. Membership handlers: group_test.cpp. Futures: tests/future/.

namespace batchrpc {
namespace exceptions_test {

using namespace std::chrono_literals;
using test::outcome;

struct Odd {};

/// Throws one thing after the other.
class Thrower {
 public:
  [[noreturn]] void operator()() const {
    switch (next_++ % 4) {
      case 0:
        throw 42;
      case 1:
        throw std::runtime_error("on purpose");
      case 2:
        throw Odd{};
      default:
        throw NotSent("not really");
    }
  }

 private:
  mutable std::size_t next_ = 0;
};

struct Pair : test::NodePair {
  Pair() {
    for (const Node* node : {&a, &b})
      node->expose("add", [](int x, int y) { return x + y; });
  }
  void next_call_works() const {
    CHECK(a.call<int(int, int)>("b", "add", 1, 2).get() == 3);
    CHECK(b.call<int(int, int)>("a", "add", 1, 2).get() == 3);
  }
};

TEST_CASE("what a callback of a call throws, of any type, is in its own future and nowhere else") {
  const Pair pair;
  const Thrower thrower;
  for (int i = 0; i < 8; ++i) {
    const Future<int> sum = pair.a.call<int(int, int)>("b", "add", 1, 2);
    auto first = sum.then([&](int /*sum*/) { thrower(); });
    int seen = 0;
    sum.then([&seen](int value) { seen = value; });
    CHECK_FALSE(outcome(std::move(first)));
    CHECK(seen == 3);
    pair.next_call_works();
  }
}

TEST_CASE("what the function of a notification throws disturbs nobody") {
  const Pair pair;
  const Thrower thrower;
  pair.b.expose("throw", [&] { thrower(); });
  pair.b.expose("throw at once", [&] { thrower(); }, {.short_handler = true});
  for (int i = 0; i < 4; ++i) {
    pair.a.peer("b").notify<void()>("throw");
    pair.a.peer("b").notify<void()>("throw at once");
    pair.next_call_works();
  }
}

TEST_CASE("a log sink that throws disturbs nothing") {
  test::VirtualWorld world;
  const Thrower thrower;
  const auto loud = [&](NodeOptions options) {
    options.logging.sink = [&](LogLevel, std::string_view) { thrower(); };
    return options;
  };
  Node a(loud(world.options("a")));
  {
    const Node b(loud(world.joining("b")));
    b.expose("add", [](int x, int y) { return x + y; });
    CHECK(a.call<int(int, int)>("b", "add", 1, 2).get() == 3);
    a.peer("b").notify<void()>("nothing there");
    CHECK(a.call<int(int, int)>("b", "add", 1, 2).get() == 3);
    world.kill("b");
    CHECK_FALSE(outcome(a.call<int(int, int)>("b", "add", 1, 2)));
  }
  const Node c(loud(world.joining("c")));
  c.expose("slow", [] { return Promise<int>().get_future(); });
  CHECK_FALSE(outcome(a.call<int()>("c", "slow")));
  a.shutdown(1s);
}

TEST_CASE("a continuation that throws on the workers fails its future, and the worker lives on",
          "[threads]") {
  const Node a(test::real_root("a", 1));
  const Thrower thrower;
  a.expose("add", [](int x, int y) { return x + y; });
  for (int i = 0; i < 4; ++i) {
    CHECK_FALSE(outcome(make_ready_future(1).then(a.workers(), [&](int) { thrower(); })));
    CHECK(a.call<int(int, int)>("a", "add", 1, 2).get() == 3);
  }
}

}  // namespace exceptions_test
}  // namespace batchrpc
