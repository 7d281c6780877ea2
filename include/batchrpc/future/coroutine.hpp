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

/// `co_await` on futures, and coroutines that return futures.
///
///     batchrpc::Future<int> both(batchrpc::Node& node) {
///       auto a = node.call<&f>("a");             // both calls are under way
///       auto b = node.call<&f>("b");
///       co_return co_await std::move(a) + co_await std::move(b);
///     }
///
/// A coroutine starts at once on the caller's thread. After each co_await it continues on the
/// thread that completed the future, under the same rules as a callback of `then` (see Future). Its
/// own future completes after its frame, with parameters and local variables, has been destroyed.
/// Dropping that future does not stop the coroutine. Parameters that are references must outlive
/// it, so pass by value.
///
/// g++ 12 (not clang) miscompiles some co_await expressions:
/// - It destroys some temporaries in the expression twice: aggregates with members that need
///   destruction, and lambdas with such captures. Example: `co_await node.call<&f>("a",
///   Options{.name = "x"})`. Give the temporary a name first and pass it with std::move.
/// - It crashes on suspension if `co_await` is the bare condition of if, while or switch. Write `if
///   (bool ok = co_await f; ok)`.
/// Temporaries of classes with constructors, pairs, tuples, containers, and everything with a name
/// are safe.
namespace batchrpc {
namespace detail {

/// Suspends a coroutine until a state is ready. It has constructors because g++ 12 destroys
/// temporary aggregates twice.
template <class T, bool Consume>
class Awaiter final : private Callback {
 public:
  explicit Awaiter(Ref<State<T>> state) noexcept
      : Callback(&resume, Consume), state_(std::move(state)) {}

  [[nodiscard]] bool await_ready() const noexcept {
    return Consume ? state_->idle() : state_->ready();
  }
  // Not inlined: its variables must not be in the frame. The coroutine may already run on another
  // thread, and its frame may be gone when this function returns.
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

/// Completes a coroutine's future after its frame is gone, so that callbacks never run while its
/// local variables exist.
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
    if (state_ == nullptr) return;  // null unless the coroutine was destroyed while suspended
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
  /// Handles `co_return value;`, also for a Result<T>.
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

/// Returns the value or throws the error. `co_await std::move(future)`, and co_await on a future
/// that a function returns, move the value. `co_await future` returns a const reference that is
/// valid while the future keeps its value.
template <class T>
[[nodiscard]] auto operator co_await(Future<T>&& future) {
  return detail::Awaiter<T, true>(detail::FutureAccess::consume(future));
}
/// The same for an lvalue future: returns a const reference.
template <class T>
[[nodiscard]] auto operator co_await(const Future<T>& future) {
  return detail::Awaiter<T, false>(detail::FutureAccess::share(future));
}

}  // namespace batchrpc

template <class T, class... Arguments>
struct std::coroutine_traits<batchrpc::Future<T>, Arguments...> {
  using promise_type = batchrpc::detail::CoroutinePromise<T>;
};
