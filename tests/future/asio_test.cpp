#include "batchrpc/future/asio.hpp"

#include <asio/bind_executor.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>

#if defined(ASIO_HAS_CO_AWAIT)
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/use_awaitable.hpp>
#endif

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"

using namespace batchrpc;

namespace asio_test {

/// An operation of Asio's kind that calls its handler with `arguments`, from the io_context.
template <class Signature, class Token, class... Arguments>
auto async_operation(asio::io_context& io, Token&& token, Arguments... arguments) {
  return asio::async_initiate<Token, Signature>(
      [&io](auto handler, auto... given) {
        asio::post(io, [handler = std::move(handler),
                        given = std::make_tuple(std::move(given)...)]() mutable {
          std::apply(std::move(handler), std::move(given));
        });
      },
      token, std::move(arguments)...);
}

TEST_CASE("An Asio operation started with use_future gives a future") {
  asio::io_context io;
  asio::steady_timer timer(io);
  timer.expires_after(std::chrono::seconds(0));
  bool called = false;
  Future<void> future = timer.async_wait(use_future);
  future.then([&] { called = true; });
  CHECK_FALSE(future.ready());
  io.run();
  CHECK(called);
  CHECK_NOTHROW(future.get());
}

TEST_CASE("An operation's error code or exception becomes its future's error") {
  asio::io_context io;
  asio::steady_timer timer(io, std::chrono::hours(1));
  auto cancelled = timer.async_wait(use_future);
  timer.cancel();
  auto failed = async_operation<void(std::exception_ptr, int)>(
      io, use_future, std::make_exception_ptr(TimedOut("late")), 0);
  io.run();
  try {
    cancelled.get();
    FAIL("no error");
  } catch (const std::system_error& error) {
    CHECK(error.code() == asio::error::operation_aborted);
  }
  CHECK_THROWS_AS(failed.get(), TimedOut);
}

TEST_CASE("What an operation passes beside the error is its future's value") {
  asio::io_context io;
  Future<int> one =
      async_operation<void(std::error_code, int)>(io, use_future, std::error_code(), 3);
  Future<int> alone = async_operation<void(int)>(io, use_future, 4);
  Future<std::tuple<int, std::string>> two =
      async_operation<void(std::error_code, int, std::string)>(io, use_future, std::error_code(), 5,
                                                               std::string("six"));
  Future<std::unique_ptr<int>> moved =
      async_operation<void(std::exception_ptr, std::unique_ptr<int>)>(
          io, use_future, std::exception_ptr(), std::make_unique<int>(7));
  io.run();
  CHECK(one.get() == 3);
  CHECK(alone.get() == 4);
  CHECK(two.get() == std::tuple(5, "six"));
  CHECK(*moved.get() == 7);
}

TEST_CASE("An operation that is destroyed with its context breaks its promise") {
  Future<void> future;
  {
    asio::io_context io;
    asio::steady_timer timer(io, std::chrono::hours(1));
    future = timer.async_wait(use_future);
  }
  CHECK_THROWS_AS(future.get(), BrokenPromise);
}

TEST_CASE("as_async calls a handler on its executor, not where the future completes") {
  asio::io_context io;
  Promise<int> promise;
  std::optional<int> got;
  as_async(promise.get_future(), asio::bind_executor(io, [&](std::exception_ptr error, int value) {
             CHECK(error == nullptr);
             got = value;
           }));
  CHECK(io.poll() == 0);
  CHECK_FALSE(io.stopped());  // the operation is work of the context's
  promise.set_value(3);
  CHECK_FALSE(got);
  io.run();
  CHECK(got == 3);
}

TEST_CASE("as_async of a ready future does not call the handler at once") {
  asio::io_context io;
  bool failed = false;
  as_async(make_failed_future<void>(TimedOut("late")),
           asio::bind_executor(io, [&](std::exception_ptr error) { failed = error != nullptr; }));
  CHECK_FALSE(failed);
  io.run();
  CHECK(failed);
}

TEST_CASE(
    "What an Asio handler throws reaches who runs the context, not who completes the future") {
  asio::io_context io;
  Promise<void> promise;
  as_async(promise.get_future(), asio::bind_executor(io, [](std::exception_ptr) { throw 42; }));
  CHECK_NOTHROW(promise.set_value());
  CHECK_THROWS_AS(io.run(), int);
}

TEST_CASE("as_async of a future that another thread completes", "[threads]") {
  asio::io_context io;
  Promise<std::string> promise;
  std::string got;
  as_async(promise.get_future(),
           asio::bind_executor(io, [&](std::exception_ptr, std::string text) { got = text; }));
  std::thread completes([&] { promise.set_value("text"); });
  io.run();
  completes.join();
  CHECK(got == "text");
}

TEST_CASE("as_async refuses an empty future") {
  asio::io_context io;
  CHECK_THROWS_AS(as_async(Future<int>(), asio::bind_executor(io, [](std::exception_ptr, int) {})),
                  InvalidArgument);
}

#if defined(ASIO_HAS_CO_AWAIT)
TEST_CASE("Asio's coroutines await futures, and futures come of Asio's coroutines") {
  asio::io_context io;
  Promise<int> promise;
  auto coroutine = [](Future<int> future) -> asio::awaitable<std::string> {
    const int value = co_await as_async(std::move(future), asio::use_awaitable);
    std::string text = std::to_string(value);
    auto failed = make_failed_future<void>(TimedOut("late"));
    try {
      co_await as_async(std::move(failed), asio::use_awaitable);
    } catch (const TimedOut& error) {
      text += error.what();
    }
    co_return text;
  };
  Future<std::string> future =
      asio::co_spawn(io, coroutine(promise.get_future()), batchrpc::use_future);
  io.poll();
  CHECK_FALSE(future.ready());
  promise.set_value(8);
  io.run();
  CHECK(future.get() == "8late");
}
#endif

}  // namespace asio_test
