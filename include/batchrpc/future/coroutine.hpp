#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/future/ambient.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/state.hpp"

/// `co_await` of futures, and coroutines that return them.
///
///     batchrpc::Future<int> both(batchrpc::Node& node) {
///       auto a = node.call<&f>("a");             // both calls are under way
///       auto b = node.call<&f>("b");
///       co_return co_await std::move(a) + co_await std::move(b);
///     }
///
/// A coroutine starts at once, on the caller's thread, and goes on after each co_await on the
/// thread that completed the future (under the same rules as a callback of `then`, see Future). Its
/// own future completes when its frame, with parameters and local variables, is gone. Dropping its
/// future does not stop it. Parameters that are references must outlive it: pass by value.
///
/// g++ 12 (not clang) miscompiles some co_await expressions. Destroyed twice: a temporary aggregate
/// with members that need destruction, or a temporary lambda with such captures, anywhere in the
/// expression
/// (`co_await node.call<&f>("a", Options{.name = "x"})`): name it first, and pass it with
/// std::move. Crashes when it suspends: `co_await` as the bare condition of if, while or switch:
/// write `if (bool ok = co_await f; ok)`. Safe are temporaries of classes with constructors, pairs,
/// tuples, containers, and everything that has a name.
namespace batchrpc {
namespace detail {

/// Suspends a coroutine until a state is ready. Has constructors, since g++ 12 destroys temporary
/// aggregates twice.
template <class T, bool Consume>
class Awaiter final : private Callback {
 public:
  explicit Awaiter(Ref<State<T>> state) noexcept
      : Callback(&resume, Consume), state_(std::move(state)) {}

  [[nodiscard]] bool await_ready() const noexcept {
    return Consume ? state_->idle() : state_->ready();
  }
  // Not inlined: what it keeps must not be in the frame, which may be gone when it returns, since
  // the coroutine may run on another thread already.
  [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> coroutine) {
    coroutine_ = coroutine;
    ambient_ = Ambient::share_current();
    return state_->add_unless(Consume ? StateBase::kIdle : StateBase::kReady, *this);
  }
  std::conditional_t<Consume, T, ConstReference<T>> await_resume() {
    if constexpr (Consume) {
      return Ref<State<T>>(std::move(state_))->take().value();
    } else {
      return state_->result().value();
    }
  }

 private:
  static void resume(Callback& self, StateBase& /*source*/) noexcept {
    auto& awaiter = static_cast<Awaiter&>(self);
    const auto ambient = std::move(awaiter.ambient_);
    const AmbientScope scope(ambient.get());
    awaiter.coroutine_.resume();
  }

  Ref<State<T>> state_;
  std::coroutine_handle<> coroutine_;
  std::shared_ptr<const Ambient> ambient_;
};

/// Completes a coroutine's future when its frame is gone, so that callbacks never run below its
/// local variables.
struct FinalAwaiter {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class CoroutinePromise>
  void await_suspend(std::coroutine_handle<CoroutinePromise> coroutine) const noexcept {
    auto* const state = coroutine.promise().release();
    coroutine.destroy();
    state->complete();
  }
  void await_resume() const noexcept {}
};

template <class T>
class CoroutinePromiseBase : public PooledFrame {
 public:
  CoroutinePromiseBase() : state_(new State<T>(2)) {}
  CoroutinePromiseBase(const CoroutinePromiseBase&) = delete;
  CoroutinePromiseBase& operator=(const CoroutinePromiseBase&) = delete;
  ~CoroutinePromiseBase() {
    if (state_ == nullptr) return;  // else: destroyed while suspended
    state_->store(broken_promise());
    state_->complete();
  }

  Future<T> get_return_object() noexcept { return FutureAccess::make(Ref<State<T>>(state_)); }
  std::suspend_never initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { state_->store(std::current_exception()); }

  State<T>* release() noexcept { return std::exchange(state_, nullptr); }

 protected:
  State<T>* state_;
};

template <class T>
class CoroutinePromise : public CoroutinePromiseBase<T> {
 public:
  /// `co_return value;`, also of a Result<T>.
  template <class V>
  void return_value(V&& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<V>, Result<T>>) {
      this->state_->store(std::forward<V>(value));
    } else {
      this->state_->store(Result<T>(T(std::forward<V>(value))));
    }
  }
};

template <>
class CoroutinePromise<void> : public CoroutinePromiseBase<void> {
 public:
  void return_void() noexcept { state_->store(Result<void>()); }
};

}  // namespace detail

/// Gives the value, or throws the error. `co_await std::move(future)`, and of a future that a
/// function returns, moves the value; `co_await future` gives a const reference, which holds while
/// the future keeps its value.
template <class T>
[[nodiscard]] auto operator co_await(Future<T>&& future) {
  return detail::Awaiter<T, true>(detail::FutureAccess::consume(future));
}
/// The same for a future that stays: gives a const reference.
template <class T>
[[nodiscard]] auto operator co_await(const Future<T>& future) {
  return detail::Awaiter<T, false>(detail::FutureAccess::share(future));
}

}  // namespace batchrpc

template <class T, class... Arguments>
struct std::coroutine_traits<batchrpc::Future<T>, Arguments...> {
  using promise_type = batchrpc::detail::CoroutinePromise<T>;
};
