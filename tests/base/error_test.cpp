#include "batchrpc/base/error.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "batchrpc/base/call_diagnostics.hpp"

using namespace batchrpc;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace error_test {

struct Unrelated {};

/// Throws what make_error() gives and says whether it is an E with the right parts.
template <class E>
bool makes(ErrorCode code) {
  try {
    std::rethrow_exception(make_error(code, "what happened", false));
  } catch (const E& error) {
    return error.code() == code && error.what() == std::string_view("what happened") &&
           !error.may_have_run();
  } catch (...) {
    return false;
  }
}

TEST_CASE("Each code becomes the class of its name") {
  CHECK(makes<TimedOut>(ErrorCode::timed_out));
  CHECK(makes<NotSent>(ErrorCode::not_sent));
  CHECK(makes<Unknown>(ErrorCode::unknown));
  CHECK(makes<PeerLost>(ErrorCode::peer_lost));
  CHECK(makes<BrokenPromise>(ErrorCode::broken_promise));
  CHECK(makes<Overloaded>(ErrorCode::overloaded));
  CHECK(makes<Cancelled>(ErrorCode::cancelled));
  CHECK(makes<NotFound>(ErrorCode::not_found));
  CHECK(makes<BadSignature>(ErrorCode::bad_signature));
  CHECK(makes<BadMessage>(ErrorCode::bad_message));
  CHECK(makes<ShutDown>(ErrorCode::shut_down));
  CHECK(makes<InvalidArgument>(ErrorCode::invalid_argument));
  CHECK(makes<JoinFailed>(ErrorCode::join_failed));
}

TEST_CASE("A code of a newer peer becomes a plain Error that keeps its number") {
  const auto unknown = static_cast<ErrorCode>(999);
  CHECK(makes<Error>(unknown));
  CHECK(type_name(make_error(unknown, "", true)) == "batchrpc::Error");
  CHECK(to_string(unknown) == "Error");
}

TEST_CASE("Codes have the names of their classes") {
  for (int i = 1; i <= 14; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    if (code == ErrorCode::remote_error) continue;
    CHECK(type_name(make_error(code, "", true)) == "batchrpc::" + std::string(to_string(code)));
  }
  CHECK(to_string(ErrorCode::remote_error) == "RemoteError");
}

TEST_CASE("The numbers of the codes, which travel on the wire, do not change") {
  CHECK(static_cast<int>(ErrorCode::remote_error) == 1);
  CHECK(static_cast<int>(ErrorCode::timed_out) == 2);
  CHECK(static_cast<int>(ErrorCode::not_sent) == 3);
  CHECK(static_cast<int>(ErrorCode::unknown) == 4);
  CHECK(static_cast<int>(ErrorCode::peer_lost) == 5);
  CHECK(static_cast<int>(ErrorCode::broken_promise) == 6);
  CHECK(static_cast<int>(ErrorCode::overloaded) == 7);
  CHECK(static_cast<int>(ErrorCode::cancelled) == 8);
  CHECK(static_cast<int>(ErrorCode::not_found) == 9);
  CHECK(static_cast<int>(ErrorCode::bad_signature) == 10);
  CHECK(static_cast<int>(ErrorCode::bad_message) == 11);
  CHECK(static_cast<int>(ErrorCode::shut_down) == 12);
  CHECK(static_cast<int>(ErrorCode::invalid_argument) == 13);
  CHECK(static_cast<int>(ErrorCode::join_failed) == 14);
}

TEST_CASE("Errors say whether the call may have run, by default as their kind does") {
  CHECK_FALSE(NotSent("").may_have_run());
  CHECK_FALSE(Overloaded("").may_have_run());
  CHECK_FALSE(NotFound("").may_have_run());
  CHECK_FALSE(BadSignature("").may_have_run());
  CHECK(TimedOut("").may_have_run());
  CHECK(PeerLost("").may_have_run());
  CHECK(Unknown("").may_have_run());
  CHECK(RemoteError("", "", "", "").may_have_run());
  CHECK_FALSE(TimedOut("", false).may_have_run());
}

TEST_CASE("A RemoteError tells what was thrown, its type, the node and the function") {
  const RemoteError error("index 7", "std::out_of_range", "worker1", "lookup");
  CHECK(error.thrown_what() == std::string("index 7"));
  CHECK(error.type() == std::string("std::out_of_range"));
  CHECK(error.node() == std::string("worker1"));
  CHECK(error.function() == std::string("lookup"));
  CHECK(error.code() == ErrorCode::remote_error);
  CHECK(error.what() == std::string("lookup on worker1 threw std::out_of_range: index 7"));
}

TEST_CASE("A standard exception can be caught as what it was where it was thrown") {
  const auto remote = [](const auto& thrown) {
    const std::exception_ptr error = std::make_exception_ptr(thrown);
    return RemoteError(describe(error), type_name(error), "worker1", "f");
  };
  CHECK_THROWS_AS(remote(std::invalid_argument("a")).rethrow_original(), std::invalid_argument);
  CHECK_THROWS_AS(remote(std::out_of_range("a")).rethrow_original(), std::out_of_range);
  CHECK_THROWS_AS(remote(std::domain_error("a")).rethrow_original(), std::domain_error);
  CHECK_THROWS_AS(remote(std::length_error("a")).rethrow_original(), std::length_error);
  CHECK_THROWS_AS(remote(std::logic_error("a")).rethrow_original(), std::logic_error);
  CHECK_THROWS_AS(remote(std::range_error("a")).rethrow_original(), std::range_error);
  CHECK_THROWS_AS(remote(std::overflow_error("a")).rethrow_original(), std::overflow_error);
  CHECK_THROWS_AS(remote(std::underflow_error("a")).rethrow_original(), std::underflow_error);
  CHECK_THROWS_WITH(remote(std::runtime_error("no disk")).rethrow_original(), "no disk");
  CHECK_THROWS_AS(remote(42).rethrow_original(), RemoteError);
  CHECK_THROWS_AS(remote(std::bad_alloc()).rethrow_original(), RemoteError);
}

TEST_CASE("An error with more text keeps its type and its parts") {
  using detail::copy_error;
  try {
    const RemoteError thrown("x", "T", "a", "f", false);
    std::rethrow_exception(copy_error(thrown, true, {.before = "less; ", .behind = "; more"}));
  } catch (const RemoteError& error) {
    CHECK(error.what() == std::string("less; f on a threw T: x; more"));
    CHECK(error.thrown_what() == std::string("x"));
    CHECK(error.type() == std::string("T"));
    CHECK(error.node() == std::string("a"));
    CHECK(error.function() == std::string("f"));
    CHECK(error.may_have_run());
  }
  try {
    std::rethrow_exception(copy_error(Overloaded("full", 5ms, true), false));
  } catch (const Overloaded& error) {
    CHECK(error.retry_after() == 5ms);
    CHECK(error.what() == std::string("full"));
    CHECK_FALSE(error.may_have_run());
  }
  try {  // the story would say of it that it never ran
    NotSent broken("no");
    detail::set_diagnostics(broken, std::make_shared<const CallDiagnostics>());
    std::rethrow_exception(copy_error(broken, true));
  } catch (const NotSent& error) {
    CHECK(error.may_have_run());
    CHECK(error.diagnostics() == nullptr);
  }
}

TEST_CASE("A text of a peer is fit for a terminal, in one error and in a copy of it") {
  const RemoteError error("a\x1b[2Jb\n\tc\xE2\x80\xAE\xff", "T\x1b", "node", "f", false);
  CHECK(error.what() == "f on node threw T\\x1b: a\\x1b[2Jb\n\tc\\u202e\\xff"s);
  CHECK(error.type() == "T\\x1b"s);
  CHECK(error.thrown_what() == "a\x1b[2Jb\n\tc\xE2\x80\xAE\xff"s);  // for programs, as it was sent
  try {
    std::rethrow_exception(detail::copy_error(error, false, {.behind = "\x07"}));
  } catch (const RemoteError& copy) {
    CHECK(copy.what() == error.what() + "\\x07"s);
  }
}

TEST_CASE("A text of any length is cut") {
  const TimedOut error(std::string(4 << 20, 'x'), true);
  CHECK(std::string_view(error.what()).size() == std::size_t{1} << 20);
  CHECK(std::string_view(error.what()).ends_with("..."));
}

TEST_CASE("Copying an error never throws") {
  CHECK(std::is_nothrow_copy_constructible_v<RemoteError>);
  CHECK(std::is_nothrow_copy_constructible_v<TimedOut>);
}

TEST_CASE("Any exception can be described, and its type named") {
  const auto out_of_range = std::make_exception_ptr(std::out_of_range("index 7"));
  CHECK(describe(out_of_range) == "index 7");
  CHECK(type_name(out_of_range) == "std::out_of_range");
  CHECK(describe(std::make_exception_ptr(42)) == "an exception of type int");
  CHECK(type_name(std::make_exception_ptr(42)) == "int");
  CHECK(type_name(std::make_exception_ptr(Unrelated())) == "error_test::Unrelated");
  CHECK(describe(nullptr) == "no error");
  CHECK(type_name(nullptr) == "none");
}

struct WithoutText : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};

template <class Thrower>
std::string described(const Thrower& thrower) {
  try {
    thrower();
  } catch (...) {
    return describe(std::current_exception());
  }
  return {};
}

TEST_CASE("The text of what is thrown is kept, whatever its type") {
  CHECK(described([] { throw "the disk is full"; }) == "the disk is full");
  CHECK(described([] { throw std::string("the disk is full"); }) == "the disk is full");
  CHECK(described([] { throw static_cast<const char*>(nullptr); }) ==
        "an exception of type char const*");
  CHECK(described([] { throw WithoutText(); }) == "an exception of type error_test::WithoutText");
  CHECK(described([] { throw std::system_error(ENOSPC, std::generic_category(), "write"); }) ==
        "write: No space left on device");
}

TEST_CASE("The stack in the text of LibTorch's exceptions is left out") {
  CHECK(described([] {
          throw std::runtime_error(
              "the sizes differ\nException raised from add at a.cpp:1 (most recent call first):\n"
              "frame #0: add + 0x57 (0x7f in libc10.so)\n");
        }) == "the sizes differ");
  CHECK(described([] {
          throw std::runtime_error(
              "load: the sizes differ\nException raised from add at a.cpp:1:\nframe #0: add\n"
              "frame #1: main\n; shard 3");
        }) == "load: the sizes differ; shard 3");
}

TEST_CASE("A nested exception is described behind the one around it, to a depth of eight") {
  const std::function<void(int)> nest = [&](int depth) {
    if (depth == 0) throw std::runtime_error("the file is gone");
    try {
      nest(depth - 1);
    } catch (...) {
      std::throw_with_nested(std::runtime_error("loading failed"));
    }
  };
  CHECK(described([&] { nest(2); }) == "loading failed: loading failed: the file is gone");
  const std::string deep = described([&] { nest(1000); });
  CHECK(deep.find("the file is gone") == std::string::npos);
  CHECK(deep.size() < 200);
}

}  // namespace error_test
