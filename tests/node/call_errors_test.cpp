#include <catch2/catch.hpp>
#include <limits>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace failures {

int divide(int a, int b) {
  if (b == 0) throw std::domain_error("division of " + std::to_string(a) + " by zero");
  return a / b;
}
int area(int width, int height) { return width * height; }
struct Custom {
  int code = 3;
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
    return {value};
  }
};

namespace batchrpc {
namespace {

using namespace std::chrono_literals;
using test::may_have_run;
using test::outcome;

struct Pair {
  test::VirtualWorld world;
  Node a = world.root("a");
  Node b = world.join("b");

  Pair() {
    b.expose<&failures::divide>();
    b.expose<&failures::area>();
  }
  void next_call_works() const { CHECK(a.call<&failures::area>("b", 6, 7).get() == 42); }
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
  // Overloaded promises that it did not run, whoever says so.
  CHECK_FALSE(may_have_run(outcome(pair.a.call<int()>("b", "overloaded")).error()));
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
             Catch::Contains("expose it there before it is called"));
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
  CHECK(near.message() == "no peer 'worker7' is known to a; did you mean 'worker17'?");
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

TEST_CASE("a call times out at its deadline exactly, and may have run") {
  Pair pair;
  std::vector<Promise<int>> never;
  pair.b.expose("never", [&never] {
    never.emplace_back();
    return never.back().get_future();
  });
  const TimePoint start = pair.world.loop->now();
  auto future = pair.a.call_with<int()>({.timeout = 250ms}, "b", "never");
  const auto result = outcome(std::move(future));
  CHECK(pair.world.loop->now() - start == 250ms);
  REQUIRE_FALSE(result);
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK(may_have_run(result.error()));
  CHECK_THAT(result.message(), Catch::Contains("'never' on b did not answer in time") &&
                                   Catch::Contains("it may have run"));
  never[0].set_value(1);  // too late: the answer is dropped
  pair.next_call_works();
}

TEST_CASE("the node's default time-out holds for calls that name none, and 60 s is the default") {
  Pair pair;
  std::vector<Promise<int>> never;
  const auto forget = [&never] {
    never.emplace_back();
    return never.back().get_future();
  };
  pair.b.expose("never", forget);
  NodeOptions options = pair.world.joining("hurried");
  options.call_timeout = 3ms;
  const Node hurried(options);
  const TimePoint start = pair.world.loop->now();
  CHECK(outcome(hurried.call<int()>("b", "never")).code() == ErrorCode::timed_out);
  CHECK(pair.world.loop->now() - start == 3ms);
  const TimePoint second = pair.world.loop->now();
  CHECK(outcome(pair.a.call<int()>("b", "never")).code() == ErrorCode::timed_out);
  CHECK(pair.world.loop->now() - second == 60s);
}

TEST_CASE("each of many calls times out at its own time, whatever their order") {
  Pair pair;
  std::vector<Promise<int>> never;
  pair.b.expose("never", [&never] {
    never.emplace_back();
    return never.back().get_future();
  });
  const TimePoint start = pair.world.loop->now();
  std::vector<std::pair<Duration, Duration>> ended;
  for (const int milliseconds : {50, 10, 70, 30, 10, 90, 20}) {
    const Duration timeout = std::chrono::milliseconds(milliseconds);
    pair.a.call_with<int()>({.timeout = timeout}, "b", "never")
        .then([&ended, &pair, start, timeout](const Result<int>& result) {
          CHECK(result.code() == ErrorCode::timed_out);
          ended.emplace_back(timeout, pair.world.loop->now() - start);
        });
  }
  pair.world.run_for(1s);
  REQUIRE(ended.size() == 7);
  for (const auto& [timeout, after] : ended)
    CHECK(after == timeout);
  CHECK(std::is_sorted(ended.begin(), ended.end()));
}

TEST_CASE("a call to a peer that cannot be reached times out and surely did not run") {
  Pair pair;
  const Node c = pair.world.join("c");
  pair.world.network->partition("b", "c");
  const auto result = outcome(c.call_with<&failures::area>({.timeout = 1s}, "b", 1, 2));
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK_FALSE(may_have_run(result.error()));
  CHECK_THAT(result.message(), Catch::Contains("never ran"));
  // Written into a connection, it may have run.
  pair.world.network->partition("a", "b");
  const auto sent = outcome(pair.a.call_with<&failures::area>({.timeout = 1s}, "b", 1, 2));
  CHECK(sent.code() == ErrorCode::timed_out);
  CHECK(may_have_run(sent.error()));
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

TEST_CASE("a call that waits for ever outlives the default time-out") {
  Pair pair;
  Promise<int> promise;
  pair.b.expose("slow", [future = std::make_shared<Future<int>>(promise.get_future())] {
    return std::move(*future);
  });
  auto answer = pair.a.call_with<int()>({.timeout = Duration::max()}, "b", "slow");
  pair.world.run_for(10h);
  CHECK_FALSE(answer.ready());
  promise.set_value(3);
  CHECK(answer.get() == 3);
}

TEST_CASE("a very long time-out does not overflow") {
  Pair pair;
  for (const Duration timeout :
       {Duration::max() - 1ns, Duration::max() / 2, Duration(24h * 365 * 200)}) {
    CHECK(pair.a.call_with<&failures::area>({.timeout = timeout}, "b", 2, 3).get() == 6);
  }
}

TEST_CASE("a negative time-out has passed") {
  Pair pair;
  CHECK(outcome(pair.a.call_with<&failures::area>({.timeout = -1s}, "b", 2, 3)).code() ==
        ErrorCode::timed_out);
  pair.next_call_works();
}

TEST_CASE("calls of a node that was shut down fail with ShutDown and are not sent") {
  Pair pair;
  pair.a.shutdown(1s);
  const auto result = outcome(pair.a.call<&failures::area>("b", 1, 2));
  CHECK(result.code() == ErrorCode::shut_down);
  CHECK_FALSE(may_have_run(result.error()));
  CHECK_THAT(result.message(), Catch::Contains("node a is shut down"));
  CHECK_THROWS_AS(pair.a.notify<&failures::area>("b", 1, 2), ShutDown);
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

  CHECK_THROWS_AS((pair.a.notify<Mood>("b", "mood", failures::Moody{1})), int);
  const std::vector<std::string> peers{"b"};
  pair.next_call_works();
}

TEST_CASE("a call that is too large is refused where it is made, and the next call works") {
  Pair pair;
  NodeOptions options = pair.world.joining("small");
  options.max_frame_bytes = 64 * 1024;
  options.max_payload_bytes = 64 * 1024;
  const Node small(options);
  pair.b.expose("length", [](const std::string& text) { return text.size(); });
  pair.b.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  using Length = std::size_t(std::string);
  using Size = std::size_t(Bytes);

  const auto text = outcome(small.call<Length>("b", "length", std::string(100'000, 'x')));
  REQUIRE_FALSE(text);
  CHECK(text.code() == ErrorCode::invalid_argument);
  CHECK_FALSE(may_have_run(text.error()));
  CHECK_THAT(text.message(), Catch::Contains("length is too large") && Catch::Contains("65536") &&
                                 Catch::Contains("NodeOptions::max_frame_bytes"));
  const auto bytes = outcome(small.call<Size>("b", "size", Bytes::allocate(65537)));
  CHECK(bytes.code() == ErrorCode::invalid_argument);
  CHECK_THAT(bytes.message(), Catch::Contains("max_payload_bytes"));
  CHECK_THROWS_AS((small.notify<Size>("b", "size", Bytes::allocate(65537))), InvalidArgument);

  CHECK(small.call<Size>("b", "size", Bytes::allocate(65536)).get() == 65536);
  CHECK(small.call<Length>("b", "length", std::string(60'000, 'x')).get() == 60'000);
  CHECK(small.call<&failures::area>("b", 2, 3).get() == 6);
}

TEST_CASE("a result that is too large fails the call, which has run, and the next call works") {
  Pair pair;
  NodeOptions options = pair.world.joining("small");
  options.max_frame_bytes = 64 * 1024;
  const Node small(options);
  small.expose("text", [](std::size_t size) { return std::string(size, 'x'); });
  const auto result =
      outcome(pair.a.call<std::string(std::size_t)>("small", "text", std::size_t{100'000}));
  REQUIRE_FALSE(result);
  CHECK(result.code() == ErrorCode::invalid_argument);
  CHECK_THAT(result.message(), Catch::Contains("the result is too large"));
  CHECK(may_have_run(result.error()));
  CHECK(pair.a.call<std::string(std::size_t)>("small", "text", std::size_t{10}).get().size() == 10);
}

TEST_CASE("what a peer refuses as too large costs the connection, not the process") {
  Pair pair;
  NodeOptions options = pair.world.joining("small");
  options.max_frame_bytes = 64 * 1024;
  options.max_payload_bytes = 64 * 1024;
  const Node small(options);
  small.expose("length", [](const std::string& text) { return text.size(); });
  small.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  small.expose<&failures::area>();
  for (int round = 0; round < 3; ++round) {
    const auto text = outcome(
        pair.a.call<std::size_t(std::string)>("small", "length", std::string(100'000, 'x')));
    REQUIRE_FALSE(text);
    CHECK(may_have_run(text.error()));
    CHECK(pair.a.call<&failures::area>("small", 2, 3).get() == 6);
    const auto bytes =
        outcome(pair.a.call<std::size_t(Bytes)>("small", "size", Bytes::allocate(100'000)));
    REQUIRE_FALSE(bytes);
    CHECK(pair.a.call<&failures::area>("small", 2, 3).get() == 6);
  }
  CHECK(pair.world.log.contain("NodeOptions::max_frame_bytes"));
  CHECK(pair.world.log.contain("NodeOptions::max_payload_bytes"));
}

}  // namespace
}  // namespace batchrpc
