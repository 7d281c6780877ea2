// Programs that block, each on a thread of its own, in a SimulatedWorld.
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/node/node.hpp"
#include "batchrpc/testing.hpp"

namespace batchrpc::test {
namespace simulated_programs_test {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST_CASE("programs that block call each other, each on its own thread", "[threads]") {
  SimulatedWorld world;
  std::thread::id server_thread;
  world.spawn("server", [&] {
    server_thread = std::this_thread::get_id();
    Promise<void> done;
    const Future<void> is_done = done.get_future();
    const Node node(world.options("server"));
    node.expose("add", [](int a, int b) { return a + b; });
    node.expose("finish", [&] { done.set_value(); });
    is_done.get();
  });
  int sum = 0;
  world.spawn("client", [&] {
    CHECK(std::this_thread::get_id() != server_thread);
    const Node node(world.options("client", {.rank = -1}));
    for (int i = 0; i < 100; ++i)
      sum += node.call<int(int, int)>("server", "add", i, 1).get();
    node.call<void()>("server", "finish").get();
  });
  CHECK(sum == 0);  // nothing runs before the world does
  world.run();
  CHECK(sum == 5050);
}

TEST_CASE("exactly one program runs at a time, and a pause of each takes no more than its time",
          "[threads]") {
  SimulatedWorld world;
  std::atomic<int> running{0};
  int steps = 0;  // by all, without a lock
  for (int i = 0; i < 20; ++i) {
    world.spawn("host" + std::to_string(i), [&] {
      for (int step = 0; step < 50; ++step) {
        CHECK(++running == 1);
        ++steps;
        --running;
        world.run_for(seconds(1));
      }
    });
  }
  world.run();
  CHECK(steps == 1000);
  CHECK(world.time() >= seconds(50));
  CHECK(world.time() < seconds(51));
}

TEST_CASE("the order of programs that can go on comes from the seed", "[threads]") {
  const auto order = [](std::uint64_t seed) {
    SimulatedWorld world(seed);
    std::string ran;
    for (const char name : {'a', 'b', 'c', 'd'}) {
      world.spawn(std::string(1, name), [&world, &ran, name] {
        for (int i = 0; i < 5; ++i) {
          ran += name;
          Promise<void> promise;
          const Future<void> future = promise.get_future();
          world.after(Duration::zero(), [&] { promise.set_value(); });
          future.get();
        }
      });
    }
    world.run();
    return ran;
  };
  CHECK(order(1).size() == 20);
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
}

TEST_CASE("one program may wait for what another one does", "[threads]") {
  SimulatedWorld world;
  Promise<int> promise;
  Future<int> future = promise.get_future();
  int got = 0;
  world.spawn("one", [&] { got = std::move(future).get(); });
  world.spawn("two", [&] {
    world.run_for(minutes(5));
    promise.set_value(7);
  });
  world.run();
  CHECK(got == 7);
  CHECK(world.time() >= minutes(5));
}

TEST_CASE("a program's wait with a deadline ends in virtual time", "[threads]") {
  SimulatedWorld world;
  world.spawn("one", [&] {
    Promise<int> promise;
    const Future<int> future = promise.get_future();
    CHECK_FALSE(future.wait_for(seconds(90)));
    CHECK(world.time() >= seconds(90));
    CHECK(world.time() < seconds(91));
  });
  world.run();
}

TEST_CASE("what a program throws comes out of the run, and the others end with the world",
          "[threads]") {
  bool unwound = false;
  bool swallowed = false;
  {
    SimulatedWorld world;
    world.spawn("waits", [&] {
      struct Guard {
        ~Guard() { unwound = true; }
        bool& unwound;
      } guard{unwound};
      const Node node(world.options("waits"));
      Promise<int>().get_future().wait();
      Promise<int> never;
      (void)never.get_future().get();
    });
    world.spawn("stubborn", [&] {
      Promise<int> never;
      const Future<int> future = never.get_future();
      for (int i = 0; i < 3; ++i) {
        try {
          future.wait();
        } catch (...) {
          swallowed = true;
        }
      }
    });
    world.spawn("throws", [&] {
      world.run_for(seconds(1));
      throw std::runtime_error("the program is wrong");
    });
    CHECK_THROWS_WITH(world.run(), "the program is wrong");
    CHECK_FALSE(unwound);
  }
  CHECK(unwound);
  CHECK(swallowed);
}

TEST_CASE("a run whose programs wait for ever says which", "[threads]") {
  SimulatedWorld world;
  Promise<int> never;
  world.spawn("stuck", [&] { never.get_future().wait(); });
  world.spawn("fine", [&] { world.run_for(seconds(1)); });
  try {
    world.run(minutes(1));
    FAIL("it came to an end");
  } catch (const VirtualDeadlock& error) {
    CHECK_THAT(error.what(), Catch::EndsWith(": stuck"));
  }
}

TEST_CASE("a program of a paused host does not run, one of a killed host never again",
          "[threads]") {
  SimulatedWorld world;
  int steps = 0;
  int lives = 0;
  const auto program = [&] {
    ++lives;
    const Node node(world.options("host"));
    while (true) {
      world.run_for(seconds(1));
      ++steps;
    }
  };
  world.spawn("host", program);
  world.run_for(seconds(10));
  CHECK(steps >= 9);
  world.pause("host");
  const int before = steps;
  world.run_for(seconds(10));
  CHECK(steps == before);
  world.resume("host");
  world.run_for(seconds(2));
  CHECK(steps > before);
  world.kill("host");
  const int killed = steps;
  world.run_for(seconds(10));
  CHECK(steps == killed);
  world.run();  // nothing is left that could return
  world.spawn("host", program);
  world.run_for(seconds(3));
  CHECK(steps > killed);
  CHECK(lives == 2);
}

TEST_CASE("a program that is killed while its node shuts down ends with the world", "[threads]") {
  bool ended = false;
  {
    SimulatedWorld world;
    Promise<int> never;
    const Node server(world.options("server"));
    server.expose("never", [&] { return never.get_future(); });
    world.spawn("client", [&] {
      struct Guard {
        ~Guard() { ended = true; }
        bool& ended;
      } guard{ended};
      const Node node(world.options("client", {.shutdown_timeout = seconds(100)}));
      const auto answer = node.call<int()>("server", "never");
      world.run_for(seconds(1));
    });
    world.run_for(seconds(10));  // the node waits for the answer
    CHECK_FALSE(ended);
    world.kill("client");
    world.run_for(seconds(200));
    CHECK_FALSE(ended);
  }
  CHECK(ended);
}

TEST_CASE("a program does not drive the loop itself", "[threads]") {
  SimulatedWorld world;
  world.spawn("host", [&] {
    CHECK_FALSE(world.loop()->is_driving());
    CHECK_FALSE(world.loop()->poll());
    CHECK_THROWS_AS(world.loop()->run_until_idle(), std::logic_error);
    CHECK_THROWS_AS(world.run(), std::logic_error);
  });
  world.run();
}

TEST_CASE("programs that block repeat a trace by their seed", "[threads]") {
  const auto run = [](std::uint64_t seed) {
    std::ostringstream trace;
    SimulatedWorld world(seed);
    world.trace(trace);
    world.network().set_link({.latency = milliseconds(2), .jitter = milliseconds(3)});
    world.spawn("root", [&] {
      const Node node(world.options("root"));
      node.expose("half", [](int x) { return x / 2; });
      world.run_for(seconds(20));
    });
    for (int i = 0; i < 5; ++i) {
      const std::string name = "client" + std::to_string(i);
      world.spawn(name, [&world, name] {
        world.run_for(milliseconds(1));
        const Node node(world.options(name, {.rank = -1}));
        for (int call = 0; call < 20; ++call)
          CHECK(node.call<int(int)>("root", "half", call).get() == call / 2);
      });
    }
    world.run();
    return trace.str();
  };
  const std::string trace = run(3);
  const bool same = trace == run(3);
  CHECK(same);
  const bool differs = trace != run(4);
  CHECK(differs);
}

}  // namespace simulated_programs_test
}  // namespace batchrpc::test
