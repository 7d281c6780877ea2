#pragma once

#include <asio/associated_allocator.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <exception>
#include <memory>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"

/// Conversions between futures and Asio's completion tokens. No other header of futures includes
/// Asio.
namespace batchrpc {
namespace detail {

/// Waits for a future on behalf of a completion handler. As in Asio's own operations, the handler
/// determines the memory, the executor and the outstanding work.
template <class T, class Handler>
class AsioOperation final : private Callback {
  using Executor_ = asio::associated_executor_t<Handler>;
  using Allocator = typename std::allocator_traits<
      asio::associated_allocator_t<Handler>>::template rebind_alloc<AsioOperation>;

 public:
  explicit AsioOperation(Handler&& handler)
      : Callback(&source_completed, true),
        handler_(std::move(handler)),
        work_(asio::get_associated_executor(handler_)) {}

  static void start(Ref<State<T>> source, Handler handler) {
    Allocator allocator(asio::get_associated_allocator(handler));
    AsioOperation* const operation = std::allocator_traits<Allocator>::allocate(allocator, 1);
    ::new (static_cast<void*>(operation)) AsioOperation(std::move(handler));
    if (source->add_unless(StateBase::kIdle, *operation)) return;
    operation->finish(source->take());
  }

 private:
  static void source_completed(Callback& self, StateBase& source) noexcept {
    static_cast<AsioOperation&>(self).finish(static_cast<State<T>&>(source).take());
  }

  // Always posted. A handler must not run inside the initiating function, and an exception of it
  // belongs to the executor, not to the thread that completed the future.
  void finish(Result<T> result) {
    Handler handler(std::move(handler_));
    const auto work = std::move(work_);
    Allocator allocator(asio::get_associated_allocator(handler));
    this->~AsioOperation();
    std::allocator_traits<Allocator>::deallocate(allocator, this, 1);

    asio::post(
        work.get_executor(), [handler = std::move(handler), result = std::move(result)]() mutable {
          if constexpr (std::is_void_v<T>) {
            std::move(handler)(result.error());
          } else {
            std::move(handler)(result.error(), result.has_value() ? T(*std::move(result)) : T());
          }
        });
  }

  Handler handler_;
  asio::executor_work_guard<Executor_> work_;
};

template <class T>
struct AsioSignature {
  using type = void(std::exception_ptr, T);
};
template <>
struct AsioSignature<void> {
  using type = void(std::exception_ptr);
};

}  // namespace detail

/// Completes `token` when `future` is ready, with (std::exception_ptr, T), or with
/// (std::exception_ptr) for void. So `co_await as_async(std::move(future), asio::use_awaitable)`
/// returns the value or throws the error. As in every asynchronous operation of Asio, the handler
/// is posted to its associated executor. A plain callback has the system executor; bind another
/// with asio::bind_executor. T must be default constructible, because a T accompanies an error.
/// Consumes the future. Throws InvalidArgument if it is empty.
template <class T, class Token>
auto as_async(Future<T>&& future, Token&& token) {
  static_assert(std::is_void_v<T> || std::is_default_constructible_v<T>,
                "T has no default constructor; wrap it in a std::optional with then() first");
  return asio::async_initiate<Token, typename detail::AsioSignature<T>::type>(
      [](auto handler, detail::Ref<detail::State<T>> source) {
        detail::AsioOperation<T, decltype(handler)>::start(std::move(source), std::move(handler));
      },
      token, detail::FutureAccess::consume(future));
}

/// A completion token: an asynchronous operation of Asio that is started with it returns a Future.
/// If the handler's first argument is a std::error_code that is set, or a std::exception_ptr that
/// is not null, the future fails: with a std::system_error, or with that exception. The other
/// arguments become the value: none gives `Future<void>`, one `Future<T>`, several a
/// `Future<std::tuple<…>>`.
///
///     timer.async_wait(batchrpc::use_future).then([] { … });
///
/// The future completes on the thread on which Asio calls the handler. If the operation is
/// destroyed before it finishes, for example with its io_context, the future fails with
/// BrokenPromise.
struct use_future_t {};
/// The token.
inline constexpr use_future_t use_future{};

namespace detail {

template <class... Arguments>
struct AsioValue {
  using type = std::tuple<std::decay_t<Arguments>...>;
};
template <class Argument>
struct AsioValue<Argument> {
  using type = std::decay_t<Argument>;
};
template <>
struct AsioValue<> {
  using type = void;
};

/// A handler that completes a promise with its arguments. It does not look for errors.
template <class... Arguments>
class AsioHandler {
 public:
  using Value = typename AsioValue<Arguments...>::type;

  AsioHandler() = default;
  explicit AsioHandler(use_future_t /*token*/) {}

  Future<Value> get_future() { return promise_.get_future(); }

  template <class... Given>
  void operator()(Given&&... given) {
    set(std::forward<Given>(given)...);
  }

 protected:
  template <class... Given>
  void set(Given&&... given) {
    if constexpr (std::is_void_v<Value>) {
      promise_.set_value();
    } else {
      promise_.set_value(Value(std::forward<Given>(given)...));
    }
  }

  Promise<Value> promise_;
};

template <class... Arguments>
class AsioHandlerOf : public AsioHandler<Arguments...> {
 public:
  using AsioHandler<Arguments...>::AsioHandler;
};

template <class... Arguments>
class AsioHandlerOf<std::error_code, Arguments...> : public AsioHandler<Arguments...> {
 public:
  using AsioHandler<Arguments...>::AsioHandler;
  template <class... Given>
  void operator()(const std::error_code& error, Given&&... given) {
    if (error) {
      this->promise_.set_error(std::make_exception_ptr(std::system_error(error)));
    } else {
      this->set(std::forward<Given>(given)...);
    }
  }
};

template <class... Arguments>
class AsioHandlerOf<std::exception_ptr, Arguments...> : public AsioHandler<Arguments...> {
 public:
  using AsioHandler<Arguments...>::AsioHandler;
  template <class... Given>
  void operator()(std::exception_ptr error, Given&&... given) {
    if (error) {
      this->promise_.set_error(std::move(error));
    } else {
      this->set(std::forward<Given>(given)...);
    }
  }
};

}  // namespace detail
}  // namespace batchrpc

template <class R, class... Arguments>
class asio::async_result<batchrpc::use_future_t, R(Arguments...)> {
  using Handler = batchrpc::detail::AsioHandlerOf<std::decay_t<Arguments>...>;

 public:
  using return_type = batchrpc::Future<typename Handler::Value>;

  template <class Initiation, class... Initial>
  static return_type initiate(Initiation&& initiation, batchrpc::use_future_t /*token*/,
                              Initial&&... initial) {
    Handler handler;
    auto future = handler.get_future();
    std::forward<Initiation>(initiation)(std::move(handler), std::forward<Initial>(initial)...);
    return future;
  }
};
