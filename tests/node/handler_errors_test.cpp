#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

// Exceptions of handlers, as the node of the handler learns of them.
namespace handler_errors {

struct Never {
  Never() { throw std::runtime_error("no disk"); }
  void use() {}
};

}  // namespace handler_errors

namespace batchrpc {
namespace handler_errors_test {

using test::outcome;

struct Callee {
  Callee() {
    callee.expose("fail",
                  [](int n) -> int { throw std::out_of_range("row " + std::to_string(n)); });
    callee.expose("fail later", [](int n) -> Future<int> {
      throw std::out_of_range("row " + std::to_string(n));
      co_return n;
    });
    callee.expose_class<handler_errors::Never()>();
    callee.expose<&handler_errors::Never::use>();
    callee.expose("refuse", []() -> int { throw Overloaded("no room"); });
  }

  [[nodiscard]] NodeOptions options() {
    NodeOptions options = world.options("callee");
    options.logging.on_handler_error = [this](const HandlerError& thrown) {
      told.push_back(std::string(thrown.function) + " for " + std::string(thrown.caller) + ": " +
                     describe(thrown.error) + (thrown.of_notification ? " (notification)" : ""));
      throw std::runtime_error("a program's mistake");
    };
    return options;
  }

  test::VirtualWorld world;
  std::vector<std::string> told;
  Node callee{options()};
  Node caller{world.join("caller")};
};

TEST_CASE("an exception of a handler is logged where it was thrown, and told to the program") {
  Callee f;
  CHECK_THROWS_AS(f.caller.call<int(int)>("callee", "fail", 3).get(), RemoteError);
  CHECK_THROWS_AS(f.caller.call<int(int)>("callee", "fail later", 4).get(), RemoteError);
  CHECK(f.told ==
        std::vector<std::string>{"fail for caller: row 3", "fail later for caller: row 4"});
  CHECK(f.world.log.contain("'fail', called by caller, threw std::out_of_range: row 3"));
  CHECK(f.world.log.contain("'fail later', called by caller, threw std::out_of_range: row 4"));
}

TEST_CASE("an exception of a notification's handler is logged and told as well") {
  Callee f;
  f.caller.peer("callee").notify<int(int)>("fail", 5);
  f.world.run_for(std::chrono::seconds(1));
  CHECK(f.told == std::vector<std::string>{"fail for caller: row 5 (notification)"});
  CHECK(f.world.log.contain("row 5 (a notification: its caller does not learn of it)"));
}

TEST_CASE("an exception of a handler whose caller has given up is told as well") {
  Callee f;
  f.callee.expose("slow", []() -> int {
    CallContext::current()->when_cancelled().get();
    throw std::out_of_range("too late");
  });
  auto call = f.caller.call<int()>("callee", "slow");
  f.world.run_for(std::chrono::seconds(1));
  call.cancel();
  f.world.run_for(std::chrono::seconds(1));
  CHECK(f.told == std::vector<std::string>{"slow for caller: too late"});
}

TEST_CASE("a method of an object that could not be made has not thrown") {
  Callee f;
  const auto handle = f.caller.create<handler_errors::Never()>("callee");
  handle.notify<&handler_errors::Never::use>();
  f.world.run_for(std::chrono::seconds(1));
  for (const std::string& line : f.told)
    CHECK_THAT(line, !Catch::Contains("use"));
  CHECK_FALSE(f.world.log.contain("DidNotRun"));
}

TEST_CASE("a handler that refuses a call by an error of the library has not failed") {
  Callee f;
  CHECK(outcome(f.caller.call<int()>("callee", "refuse")).code() == ErrorCode::overloaded);
  CHECK(f.told.empty());
  CHECK_FALSE(f.world.log.contain("threw"));
}

TEST_CASE("many exceptions of handlers are few lines in the log") {
  Callee f;
  for (int i = 0; i < 1000; ++i)
    CHECK_THROWS_AS(f.caller.call<int(int)>("callee", "fail", i).get(), RemoteError);
  CHECK(f.told.size() == 1000);
  CHECK(f.world.log.contain("threw std::out_of_range: row 4"));
  CHECK_FALSE(f.world.log.contain("threw std::out_of_range: row 5"));
}

}  // namespace handler_errors_test
}  // namespace batchrpc
