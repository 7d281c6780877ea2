#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/future/continuation.hpp"
#include "batchrpc/future/state.hpp"

namespace batchrpc {

/// A value that will be there later, or the error that comes in its place. Promises, calls,
/// coroutines and other futures create futures.
///
/// Consuming: on an rvalue (`std::move(future).get()`, `node.call<&f>(…).then(…)`) a function moves
/// the value out and leaves the future empty. On an lvalue the value stays in the future: the
/// function gives a const reference to it, and you can attach any number of callbacks and wait any
/// number of times. Move-only values work both ways.
///
/// Callbacks run one at a time, in the order in which they were attached. They run on the thread
/// that completes the future, before the completing call returns. If the future is already
/// complete, the callback runs at once on the attaching thread. There is one exception: a thread
/// that is running a callback of any future puts further callbacks off until that callback returns,
/// or waits for a future. So chains of any length do not recurse. While a callback waits, later
/// callbacks may run on top of it, except those that would move the value from under it. A blocked
/// get() wakes before the callbacks run.
///
/// Callbacks run without any lock of the library. They may use every function of every future and
/// promise, and may drop them, even the one they belong to. An exception of a callback becomes the
/// error of the future that attaching it returned. If that future was dropped, the exception is
/// lost.
///
/// A callback is destroyed right after it has run. If it returns a future, it is destroyed when
/// that future is ready, so a coroutine may use its lambda's captures until its end. Such a
/// callback should therefore not own the promise of the future that it returns: the promise would
/// wait for itself.
///
/// Dropping a future never blocks. It cancels nothing, except a call made with
/// CallOptions::cancel_when_dropped.
///
/// Thread safety: several threads may call const functions at once. Only one thread at a time may
/// use the others. A future may complete on any thread. Functions other than valid(), assignment
/// and destruction throw InvalidArgument if the future is empty.
template <class T>
class Future {
  static_assert(std::is_same_v<T, std::remove_cvref_t<T>>,
                "a Future holds a plain value type: T must not be a reference or cv-qualified");
  static_assert(!std::is_same_v<T, std::exception_ptr>,
                "an error is not a value: use Future<void> or another T");

 public:
  using value_type = T;

  /// Creates an empty future.
  Future() noexcept = default;
  Future(Future&&) noexcept = default;
  Future& operator=(Future&& other) noexcept {
    Future taken(std::move(other));
    std::swap(state_, taken.state_);
    return *this;
  }
  ~Future() {
    if (state_) state_->dropped();
  }

  /// Whether the future is not empty: it was neither moved from nor consumed.
  [[nodiscard]] bool valid() const noexcept { return static_cast<bool>(state_); }

  /// Whether the value or the error is there.
  [[nodiscard]] bool ready() const { return state().ready(); }

  /// Cancels a remote call of a function or of an RRef's method. The future completes with
  /// Cancelled before this returns, and its callbacks run on this thread. The callee is notified
  /// (docs/getting-started.md). `may_have_run()` of that error is false if the call will surely
  /// never run.
  ///
  /// Returns whether there was a call to cancel. Returns false, and changes nothing, for a complete
  /// future and for futures of then(), when_all(), when_any(), wait_for_peer(), wait_for_credit(),
  /// promises, coroutines and batchers of this process.
  bool cancel() const { return share()->cancel(); }

  /// Blocks until the future is ready. Meanwhile the thread does what its WaitContext defines. A
  /// thread that uses a node drives the node's I/O and runs other work, so hold no lock that such
  /// work may need (docs/threading.md). In a callback it also runs callbacks that were put off
  /// until that one returns. These may wait in turn, up to 256 deep; beyond that a wait throws
  /// Overloaded. A wait that throws leaves the future unchanged.
  void wait() const { state().wait_until_ready(); }

  /// Waits for at most `timeout`, on the clock of the thread's WaitContext. Returns whether the
  /// future is ready.
  template <class Rep, class Period>
  bool wait_for(const std::chrono::duration<Rep, Period>& timeout) const {
    return state().wait_for(detail::to_duration(timeout));
  }
  /// Waits until `deadline`. Returns whether the future is ready.
  bool wait_until(TimePoint deadline) const { return state().wait(deadline); }

  /// Blocks until the future is ready, then returns the value or throws the error. The reference is
  /// valid while the future keeps its value. A consuming get() also waits until callbacks attached
  /// earlier have returned, since they may be using the value.
  /// @{
  detail::ConstReference<T> get() const& { return result().value(); }
  T get() && { return std::move(*this).result().value(); }
  /// @}

  /// Like get(), but returns the error instead of throwing it.
  /// @{
  const Result<T>& result() const& {
    if (!ready()) wait_for_result(&detail::StateBase::wait_until_ready);
    return state_->result();
  }
  [[nodiscard]] Result<T> result() && {
    if (!state().idle()) wait_for_result(&detail::StateBase::wait_until_idle);
    return consume()->take();
  }
  /// @}

  /// Calls `f` when the future is ready. `f` takes the value, or a `Result<T>`, as its parameter's
  /// type says; for a Future<void> it takes nothing or a `Result<void>`. If it takes the value,
  /// errors skip it and go to the returned future. `f` returns a value, nothing, a Result, or a
  /// future. Futures are flattened: then() never returns a future of a future. A coroutine used as
  /// `f` must take its parameter by value.
  /// @{
  template <class F>
  auto then(F&& f) && {
    return attach_then<true>(consume(), std::forward<F>(f), detail::Here{});
  }
  template <class F>
  auto then(F&& f) const& {
    return attach_then<false>(share(), std::forward<F>(f), detail::Here{});
  }
  /// @}

  /// Like then(f), but `f` runs on `executor`. Errors that skip `f` are posted to it too, so that
  /// what follows always runs on the executor. The executor must outlive the completion of this
  /// future; a shared_ptr is kept until then. If the executor destroys the callback without running
  /// it, the returned future fails with BrokenPromise. On an lvalue `f` gets a copy of the value,
  /// which the completing thread makes.
  /// @{
  template <class F>
  auto then(Executor& executor, F&& f) && {
    return attach_then<true>(consume(), std::forward<F>(f), &executor);
  }
  template <class F>
  auto then(Executor& executor, F&& f) const& {
    return copy().then(executor, std::forward<F>(f));
  }
  template <class E, class F>
  requires std::is_convertible_v<E*, Executor*>
  auto then(std::shared_ptr<E> executor, F&& f) && {
    return attach_then<true>(consume(), std::forward<F>(f), std::move(executor));
  }
  template <class E, class F>
  requires std::is_convertible_v<E*, Executor*>
  auto then(std::shared_ptr<E> executor, F&& f) const& {
    return copy().then(std::move(executor), std::forward<F>(f));
  }
  /// @}

  /// Calls `f` with the std::exception_ptr if the future fails. The result of `f` (a T, a Result<T>
  /// or a Future<T>; nothing for a Future<void>) replaces the error. A value skips `f`. With E, `f`
  /// takes a `const E&` and only handles errors of that type; other errors skip it. On an lvalue T
  /// must be copyable.
  /// @{
  template <class E = void, class F>
  Future on_error(F&& f) && {
    return attach_on_error<E, true>(consume(), std::forward<F>(f));
  }
  template <class E = void, class F>
  Future on_error(F&& f) const& {
    return attach_on_error<E, false>(share(), std::forward<F>(f));
  }
  /// @}

  /// Calls `f` without arguments, for a value and for an error alike, and then passes that value or
  /// error on. If `f` throws, its exception replaces it. If `f` returns a Future<void>, that future
  /// is awaited first, and its error replaces it. On an lvalue T must be copyable.
  /// @{
  template <class F>
  Future finally(F&& f) && {
    return std::move(*this).then(
        [f = std::decay_t<F>(std::forward<F>(f))](Result<T> result) mutable {
          return run_finally(f, std::move(result));
        });
  }
  template <class F>
  Future finally(F&& f) const& {
    return then([f = std::decay_t<F>(std::forward<F>(f))](const Result<T>& result) mutable {
      return run_finally(f, Result<T>(result));
    });
  }
  /// @}

 private:
  friend struct detail::FutureAccess;
  explicit Future(detail::Ref<detail::State<T>> state) noexcept : state_(std::move(state)) {}

  void check() const {
    if (!state_) {
      detail::throw_no_state("the future is empty: it was moved from or consumed");
    }
  }
  [[nodiscard]] detail::State<T>& state() const {
    check();
    return *state_;
  }
  void wait_for_result(void (detail::StateBase::*how)()) const {
    const auto waited_for = share();
    ((*waited_for).*how)();
    if (state_.get() != waited_for.get()) {
      detail::throw_no_state("the future was moved while a thread waited for it");
    }
  }
  [[nodiscard]] detail::Ref<detail::State<T>> consume() {
    check();
    return std::move(state_);
  }
  [[nodiscard]] detail::Ref<detail::State<T>> share() const {
    check();
    return state_;
  }
  /// Makes a future of a copy of the value.
  [[nodiscard]] Future copy() const {
    return then([](const Result<T>& result) { return result; });
  }

  template <bool Consume, class F, class Where>
  static auto attach_then(detail::Ref<detail::State<T>> state, F&& f, Where where) {
    using D = std::decay_t<F>;
    constexpr bool kTakesResult = detail::kTakesResult<D, T, Consume>;
    using Argument = std::conditional_t<kTakesResult, detail::ArgumentOf<Result<T>, Consume>,
                                        typename detail::ValueArgument<T, Consume>::type>;
    static_assert(detail::CallTraits<D, Argument>::kCallable,
                  "the callback of then() must take the future's value or a Result of it");
    using U = typename detail::Flattened<typename detail::ReturnOf<D, Argument>::type>::type;
    return detail::attach<U, Consume, detail::ThenBody<D, U, kTakesResult>>(
        std::move(state), std::forward<F>(f), std::move(where));
  }

  template <class E, bool Consume, class F>
  static Future attach_on_error(detail::Ref<detail::State<T>> state, F&& f) {
    using D = std::decay_t<F>;
    using Argument = std::conditional_t<std::is_void_v<E>, std::exception_ptr,
                                        std::add_lvalue_reference_t<const E>>;
    static_assert(detail::CallTraits<D, Argument>::kCallable,
                  "the callback of on_error() must take a std::exception_ptr, that of "
                  "on_error<E>() a const E&");
    using U = typename detail::Flattened<typename detail::ReturnOf<D, Argument>::type>::type;
    static_assert(std::is_void_v<T> == std::is_void_v<U>,
                  "the callback of on_error() must return a value that replaces the error");
    return detail::attach<T, Consume, detail::OnErrorBody<D, T, E>>(
        std::move(state), std::forward<F>(f), detail::Here{});
  }

  template <class F>
  static auto run_finally(F& f, Result<T> result) {
    using R = decltype(std::move(f)());
    if constexpr (detail::Flattened<std::remove_cvref_t<R>>::kIsFuture) {
      static_assert(std::is_same_v<std::remove_cvref_t<R>, Future<void>>,
                    "the callback of finally() must return nothing or a Future<void>");
      return std::move(f)().then(
          [result = std::move(result)]() mutable { return std::move(result); });
    } else {
      static_assert(std::is_void_v<R>,
                    "the callback of finally() must return nothing or a Future<void>");
      std::move(f)();
      return result;
    }
  }

  detail::Ref<detail::State<T>> state_;
};

/// Makes a future that is ready with `value`.
template <class T>
[[nodiscard]] Future<std::decay_t<T>> make_ready_future(T&& value) {
  return detail::make_completed<std::decay_t<T>>(Result<std::decay_t<T>>(std::forward<T>(value)));
}
/// Makes a ready Future<void>.
[[nodiscard]] inline Future<void> make_ready_future() {
  return detail::make_completed<void>(Result<void>());
}

/// Makes a future that has failed with `error`.
template <class T>
[[nodiscard]] Future<T> make_failed_future(std::exception_ptr error) {
  return detail::make_completed<T>(Result<T>(std::move(error)));
}
/// The same for an exception object.
template <class T, class E>
requires(!std::is_convertible_v<E, std::exception_ptr>)
    [[nodiscard]] Future<T> make_failed_future(E error) {
  return make_failed_future<T>(std::make_exception_ptr(std::move(error)));
}

}  // namespace batchrpc
