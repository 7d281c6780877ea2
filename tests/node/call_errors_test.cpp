#include <catch2/catch.hpp>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "node/calling_pair.hpp"

namespace failures {

int divide(int a, int b) {
  if (b == 0) throw std::domain_error("division of " + std::to_string(a) + " by zero");
  return a / b;
}
struct Custom {
  int code = 3;
};
struct NoText : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};

/// Throws when it is encoded or decoded with a certain value.
struct Moody {
  int value = 0;
};

}  // namespace failures

template <>
struct batchrpc::Codec<failures::Moody> {
  using Wire = int;
  static int encode(const failures::Moody& moody) {
    if (moody.value == 1) throw 42;
    if (moody.value == 2) throw std::runtime_error("no mood to be encoded");
    return moody.value;
  }
  static failures::Moody decode(int&& value) {
    if (value == 3) throw std::runtime_error("no mood to be decoded");
    if (value == 4) throw failures::Custom{};
    if (value == 6) throw BadMessage("not this value");
    return {value};
  }
};

namespace batchrpc {
namespace call_errors_test {

using namespace std::chrono_literals;
using test::may_have_run;
using test::outcome;

struct Pair : test::CallingPair {
  Pair() { b.expose<&failures::divide>(); }
};

TEST_CASE("what a remote function throws arrives as RemoteError, with all its parts") {
  Pair pair;
  try {
    pair.a.call<&failures::divide>("b", 7, 0).get();
    FAIL("it returned");
  } catch (const RemoteError& error) {
    CHECK(std::string(error.thrown_what()) == "division of 7 by zero");
    CHECK(std::string(error.type()) == "std::domain_error");
    CHECK(std::string(error.node()) == "b");
    CHECK(std::string(error.function()) == "failures::divide");
    CHECK(error.code() == ErrorCode::remote_error);
    CHECK(error.may_have_run());
    CHECK(std::string(error.what()) ==
          "failures::divide on b threw std::domain_error: division of 7 by zero");
  }
  pair.next_call_works();
}

TEST_CASE("whatever a function throws, the caller gets an error and the next call works") {
  Pair pair;
  pair.b.expose("int", []() -> int { throw 42; });
  pair.b.expose("text", []() -> int { throw "a literal"; });
  pair.b.expose("custom", []() -> int { throw failures::Custom{}; });
  pair.b.expose("null", []() -> int { throw nullptr; });
  pair.b.expose("nested", []() -> int {
    try {
      throw std::runtime_error("inner");
    } catch (...) {
      std::throw_with_nested(std::logic_error("outer"));
    }
  });
  const std::pair<const char*, const char*> types[] = {{"int", "int"},
                                                       {"text", "char const*"},
                                                       {"custom", "failures::Custom"},
                                                       {"null", "nullptr"},
                                                       {"nested", "std::logic_error"}};
  for (const auto& [name, type] : types) {
    const auto result = outcome(pair.a.call<int()>("b", name));
    REQUIRE_FALSE(result);
    CHECK(result.code() == ErrorCode::remote_error);
    CHECK(may_have_run(result.error()));
    CHECK_THAT(result.message(), Catch::Contains(name) && Catch::Contains("on b threw"));
    CHECK_THAT(result.message(), Catch::Contains(type));
    pair.b.expose(std::string(name) + " later", [&pair, name = name]() -> Future<int> {
      co_return co_await pair.b.call<int()>("b", name);
    });
    const auto later = outcome(pair.a.call<int()>("b", std::string(name) + " later"));
    CHECK(later.code() == ErrorCode::remote_error);
  }
  pair.next_call_works();
}

TEST_CASE("a coroutine that throws before or after it suspends fails the call") {
  Pair pair;
  pair.b.expose("before", []() -> Future<int> { co_return failures::divide(1, 0); });
  pair.b.expose("after", [&pair]() -> Future<int> {
    const int zero = co_await pair.b.call<&failures::area>("b", 0, 0);
    co_return failures::divide(1, zero);
  });
  pair.b.expose("not a coroutine", []() -> Future<int> { throw std::domain_error("at once"); });
  for (const char* name : {"before", "after", "not a coroutine"}) {
    const auto result = outcome(pair.a.call<int()>("b", name));
    CHECK(result.code() == ErrorCode::remote_error);
    CHECK_THAT(result.message(), Catch::Contains("std::domain_error"));
  }
  pair.next_call_works();
}

TEST_CASE("an error that passes through two nodes keeps what it was") {
  Pair pair;
  Node c = pair.world.join("c");
  c.expose("through", [&c](int x) { return c.call<&failures::divide>("b", x, 0).get(); });
  const auto result = outcome(pair.a.call<int(int)>("c", "through", 5));
  REQUIRE_FALSE(result);
  CHECK(result.code() == ErrorCode::remote_error);
  CHECK_THAT(result.message(), Catch::Contains("failures::divide on b") &&
                                   Catch::Contains("std::domain_error") &&
                                   Catch::Contains("division of 5 by zero"));
  try {
    std::rethrow_exception(result.error());
  } catch (const RemoteError& error) {
    CHECK(std::string(error.type()) == "std::domain_error");
    CHECK(std::string(error.node()) == "c");
  }
}

TEST_CASE("a handler whose own call surely did not run has itself run") {
  // The error of a call inside of a handler says nothing about the handler's own call.
  Pair pair;
  Node c = pair.world.join("c");
  int ran = 0;
  c.expose("asks nobody", [&] {
    ++ran;
    return c.call<int(int, int)>("b", "no such function", 1, 2).get();
  });
  c.expose("not sent", [&]() -> int {
    ++ran;
    throw NotSent("the connection to d has just broken: 'f' was not sent; call again");
  });
  c.expose("shut down", [&]() -> Future<int> {
    ++ran;
    if (ran > 0) throw ShutDown("node d is shut down");
    co_return 0;
  });
  for (const char* name : {"asks nobody", "not sent", "shut down"}) {
    const auto result = outcome(pair.a.call<int()>("c", name));
    REQUIRE_FALSE(result);
    INFO(result.message());
    CHECK(may_have_run(result.error()));
    CHECK(result.code() != ErrorCode::not_sent);
  }
  CHECK(ran == 3);
}

TEST_CASE("a handler may refuse a call as Overloaded, Cancelled, NotFound or InvalidArgument") {
  Pair pair;
  pair.b.expose("overloaded", []() -> int { throw Overloaded("no room; try again later"); });
  pair.b.expose("cancelled", []() -> int { throw Cancelled("not any more"); });
  pair.b.expose("not found", []() -> int { throw NotFound("no such row"); });
  pair.b.expose("invalid", []() -> int { throw InvalidArgument("not this one"); });
  CHECK_THROWS_AS(pair.a.call<int()>("b", "overloaded").get(), Overloaded);
  CHECK_THROWS_AS(pair.a.call<int()>("b", "cancelled").get(), Cancelled);
  CHECK_THROWS_AS(pair.a.call<int()>("b", "not found").get(), NotFound);
  CHECK_THROWS_AS(pair.a.call<int()>("b", "invalid").get(), InvalidArgument);
  CHECK(may_have_run(outcome(pair.a.call<int()>("b", "overloaded")).error()));  // it has begun
}

TEST_CASE("an error's text names function and node, whatever words it has itself") {
  Pair pair;
  for (const char* name : {"row", "o", "fetch"}) {
    pair.b.expose(name, [] { throw InvalidArgument("a row of the table"); });
    CHECK(outcome(pair.a.call<void()>("b", name)).message() ==
          "'" + std::string(name) + "' on b: a row of the table");
  }
}

TEST_CASE("a function that returns an empty future fails its call") {
  Pair pair;
  pair.b.expose("empty", [] { return Future<int>(); });
  const auto result = outcome(pair.a.call<int()>("b", "empty"));
  CHECK(result.code() == ErrorCode::invalid_argument);
  CHECK(may_have_run(result.error()));
  CHECK_THAT(result.message(), Catch::Contains("'empty' on b: the function returned an empty"));
}

TEST_CASE("a handler that has done its work, and then meets a full batcher elsewhere, has run") {
  Pair pair;
  const Node c = pair.world.join("c");
  Batcher<int(int)> full({.max_size = 1, .max_wait = 1h, .max_queue = 1},
                         [](std::vector<int> xs) { return xs; });
  full.close();
  c.expose("full", full);
  Batcher<int(int)> busy({.max_size = 2, .max_wait = 1h, .max_queue = 2},
                         [](const std::vector<int>&) -> std::vector<int> {
                           throw Overloaded("thrown by the batch's own handler");
                         });
  c.expose("busy", busy);
  int paid = 0;
  pair.b.expose("pay", [&](int amount) {
    paid += amount;
    return pair.b.call<int(int)>("c", "full", amount).get();
  });
  const auto refused = outcome(pair.b.call<int(int)>("c", "full", 1));
  CHECK(refused.code() == ErrorCode::shut_down);
  CHECK_FALSE(may_have_run(refused.error()));  // the batcher itself has not taken it
  const auto result = outcome(pair.a.call<int(int)>("b", "pay", 100));
  CHECK_FALSE(result);
  CHECK(paid == 100);
  CHECK(may_have_run(result.error()));
  auto row = pair.b.call<int(int)>("c", "busy", 1);
  const auto thrown = outcome(pair.b.call<int(int)>("c", "busy", 2));
  CHECK(thrown.code() == ErrorCode::overloaded);
  CHECK(may_have_run(thrown.error()));
}

TEST_CASE("a result that does not decode is of a function that has run") {
  const Pair pair;
  pair.b.expose("moody", [](int value) { return failures::Moody{value}; });
  const auto result = outcome(pair.a.call<failures::Moody(int)>("b", "moody", 6));
  CHECK(result.code() == ErrorCode::bad_message);
  CHECK(may_have_run(result.error()));
  CHECK(pair.a.call<failures::Moody(int)>("b", "moody", 7).get().value == 7);
}

TEST_CASE("an unknown function gives NotFound that names node, function and near names") {
  Pair pair;
  const auto result = outcome(pair.a.call<int(int, int)>("b", "failures::aera", 1, 2));
  REQUIRE_FALSE(result);
  CHECK(result.code() == ErrorCode::not_found);
  CHECK_FALSE(may_have_run(result.error()));
  CHECK(result.message() ==
        "no function 'failures::aera' is exposed on b; did you mean 'failures::area'?");
  // The same name in another namespace, or none.
  CHECK_THAT(outcome(pair.a.call<int(int, int)>("b", "area", 1, 2)).message(),
             Catch::Contains("did you mean 'failures::area'?"));
  CHECK_THAT(outcome(pair.a.call<int(int, int)>("b", "something else", 1, 2)).message(),
             Catch::Contains("expose it there before you call it"));
  pair.next_call_works();
}

TEST_CASE("a function that is exposed after a call in vain is found by the next") {
  Pair pair;
  CHECK(outcome(pair.a.call<int()>("b", "late")).code() == ErrorCode::not_found);
  pair.b.expose("late", [] { return 1; });
  CHECK(pair.a.call<int()>("b", "late").get() == 1);
}

TEST_CASE("an unknown peer gives NotFound with near names, and says how to wait for one") {
  Pair pair;
  const Node worker = pair.world.join("worker17");
  const auto near = outcome(pair.a.call<&failures::area>("worker7", 1, 2));
  CHECK(near.code() == ErrorCode::not_found);
  CHECK(near.message() ==
        "no peer 'worker7' is known to a; did you mean 'worker17'? wait_for_peer() waits until it "
        "has joined");
  CHECK_THAT(outcome(pair.a.call<&failures::area>("elsewhere", 1, 2)).message(),
             Catch::Contains("wait_for_peer()"));
  CHECK_FALSE(may_have_run(near.error()));
  pair.next_call_works();
}

TEST_CASE("another signature gives BadSignature that names both") {
  Pair pair;
  const auto count = outcome(pair.a.call<int(int)>("b", "failures::area", 1));
  REQUIRE_FALSE(count);
  CHECK(count.code() == ErrorCode::bad_signature);
  CHECK_FALSE(may_have_run(count.error()));
  const std::string right = std::string(signature<int, int, int>());
  const std::string wrong = std::string(signature<int, int>());
  CHECK_THAT(count.message(), Catch::Contains("'failures::area' on b") &&
                                  Catch::Contains("has the signature " + right) &&
                                  Catch::Contains("called as " + wrong));
  CHECK(outcome(pair.a.call<int(int, std::string)>("b", "failures::area", 1, "2")).code() ==
        ErrorCode::bad_signature);
  CHECK(outcome(pair.a.call<double(int, int)>("b", "failures::area", 1, 2)).code() ==
        ErrorCode::bad_signature);
  pair.next_call_works();
}

TEST_CASE("what a handler throws arrives with its text and type, whatever its type") {
  const test::NodePair pair;
  struct Case {
    std::function<void()> thrower;
    std::string text;
    std::string type;
  };
  const std::vector<Case> cases{
      {[] { throw "the disk is full"; }, "the disk is full", "char const*"},
      {[] { throw std::string("the disk is full"); }, "the disk is full", "std::"},
      {[] { throw failures::NoText(); }, "an exception of type", "NoText"},
      {[] { throw 42; }, "an exception of type int", "int"},
      {[] {
         try {
           throw std::runtime_error("the file is gone");
         } catch (...) {
           std::throw_with_nested(std::runtime_error("loading failed"));
         }
       },
       "loading failed: the file is gone", "std::runtime_error"}};
  for (const Case& each : cases) {
    pair.b.expose("fail", each.thrower);
    try {
      pair.a.call<void()>("b", "fail").get();
      FAIL("no error");
    } catch (const RemoteError& error) {
      CHECK_THAT(error.thrown_what(), Catch::Contains(each.text));
      CHECK_THAT(error.type(), Catch::Contains(each.type));
    }
    pair.b.unexpose("fail");
  }
}

TEST_CASE("an error's text of any length arrives, cut") {
  Pair pair;
  pair.b.expose("verbose", [](std::size_t size) -> int {
    throw std::runtime_error("x" + std::string(size, 'y'));
  });
  const auto result =
      outcome(pair.a.call<int(std::size_t)>("b", "verbose", std::size_t{100} << 20));
  CHECK(result.code() == ErrorCode::remote_error);
  CHECK_THAT(result.message(), Catch::Contains("xyyyyyyyy"));
  CHECK(result.message().size() < 100'000);
  pair.next_call_works();
}

TEST_CASE("calls of a node that was shut down fail with ShutDown and are not sent") {
  Pair pair;
  pair.a.shutdown(1s);
  const auto result = outcome(pair.a.call<&failures::area>("b", 1, 2));
  CHECK(result.code() == ErrorCode::shut_down);
  CHECK_FALSE(may_have_run(result.error()));
  CHECK_THAT(result.message(), Catch::Contains("node a is shut down"));
  CHECK_THROWS_AS(pair.a.peer("b").notify<&failures::area>(1, 2), ShutDown);
}

TEST_CASE("an exception of any type in a codec fails that call only") {
  Pair pair;
  pair.b.expose("mood", [](failures::Moody moody) { return moody.value; });
  pair.b.expose("make", [](int value) { return failures::Moody{value}; });
  using Mood = int(failures::Moody);
  using Make = failures::Moody(int);
  const auto encode = [&](int value) {
    return outcome(pair.a.call<Mood>("b", "mood", failures::Moody{value}));
  };
  const auto make = [&](int value) { return outcome(pair.a.call<Make>("b", "make", value)); };
  CHECK(encode(0).value() == 0);

  CHECK_THROWS_AS(encode(1).value(), int);  // here, before anything is sent
  CHECK_THROWS_AS(encode(2).value(), std::runtime_error);
  pair.next_call_works();

  for (const int value : {3, 4}) {  // there, while it decodes its arguments
    const auto refused = encode(value);
    CHECK(refused.code() == ErrorCode::remote_error);
    pair.next_call_works();
  }
  for (const int value : {1, 2}) {  // there, while it encodes its result
    CHECK(make(value).code() == ErrorCode::remote_error);
    pair.next_call_works();
  }
  CHECK_THROWS_AS(make(3).value(), std::runtime_error);  // here, while the result is decoded
  CHECK_THROWS_AS(make(4).value(), failures::Custom);
  pair.next_call_works();
  CHECK(make(5).value().value == 5);

  CHECK_THROWS_AS((pair.a.peer("b").notify<Mood>("mood", failures::Moody{1})), int);
  const std::vector<std::string> peers{"b"};
  pair.next_call_works();
}

}  // namespace call_errors_test
}  // namespace batchrpc
