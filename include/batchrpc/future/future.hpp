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

/// A value that will be there later, or the error that comes in its place. Made by a Promise, a
/// call, a coroutine, or from other futures.
///
/// Consuming or not: on an rvalue (`std::move(future).get()`, `node.call<&f>(…).then(…)`) the value
/// is moved to whoever asked, and the future is empty afterwards. On an lvalue the value stays,
/// others get a const reference to it, and any number of callbacks and waits may follow one
/// another; so move-only values work in both ways.
///
/// Callbacks run one after the other in the order in which they were attached, on the thread that
/// completes the future, before the completing call returns; attached to a future that is complete,
/// on the attaching thread at once. On a thread that is just running a callback of any future they
/// are put off until that callback returns, or waits for a future: so chains of any length do not
/// recurse. While one waits, those behind it may run on top of it, but none that takes the value
/// from under it. A blocked get() is woken before the callbacks run. They run without any lock of
/// the library's, may use every function of every future and promise and may drop them, the one
/// they belong to included. What a callback throws becomes the error of the future that attaching
/// it returned, and goes nowhere else; if that future was dropped, it is lost. A callback is
/// destroyed right after it has run; one that returns a future, when that is ready: a coroutine may
/// use its lambda's captures to its end. (So such a callback should not own the promise of the
/// future that it returns, which would then wait for itself.)
///
/// Dropping a future never blocks, and cancels nothing but a call that was made with
/// CallOptions::cancel_when_dropped.
///
/// Thread safety: const functions may be called by several threads at once; the others are the
/// business of one thread at a time. Completion happens on any thread. Functions other than
/// valid(), assignment and destruction throw InvalidArgument when the future is empty.
template <class T>
class Future {
  static_assert(std::is_same_v<T, std::remove_cvref_t<T>>, "a Future holds a plain value type");
  static_assert(!std::is_same_v<T, std::exception_ptr>, "an error is not a value");

 public:
  using value_type = T;

  /// Empty.
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

  /// Whether it is not empty, that is, was not moved from or consumed.
  [[nodiscard]] bool valid() const noexcept { return static_cast<bool>(state_); }

  /// Whether the value or error is there.
  [[nodiscard]] bool ready() const { return state().ready(); }

  /// Takes a remote call back (of a function, or of an RRef's method): the future completes with
  /// Cancelled before this returns, with its callbacks on this thread, and the callee is told
  /// (docs/getting-started.md). `may_have_run()` of that error is false when the call surely never
  /// runs. Returns whether there was a call to be taken back: false for a future that is complete,
  /// and for those of then(), when_all(), when_any(), wait_for_peer(), wait_for_credit(), promises,
  /// coroutines and batchers of this process, which go on.
  bool cancel() const { return share()->cancel(); }

  /// Blocks until ready. What the thread does meanwhile is its WaitContext's matter: on a thread
  /// that uses a node it drives the node's I/O and runs other work, so hold no lock that such work
  /// may want (docs/threading.md). In a callback it also runs callbacks that were put off behind
  /// that one, which may wait in turn, 256 deep; beyond that a wait throws Overloaded. A wait that
  /// throws leaves the future as it was.
  void wait() const { state().wait_until_ready(); }

  /// The same for at most `timeout`, on the clock of the thread's WaitContext. Returns whether it
  /// is ready.
  template <class Rep, class Period>
  bool wait_for(const std::chrono::duration<Rep, Period>& timeout) const {
    return state().wait_for(detail::to_duration(timeout));
  }
  /// The same until `deadline`.
  bool wait_until(TimePoint deadline) const { return state().wait(deadline); }

  /// Blocks until ready and returns the value, or throws the error. The reference holds while the
  /// future keeps its value. A consuming get() also waits for callbacks attached before, which may
  /// be looking at the value, to return.
  /// @{
  detail::ConstReference<T> get() const& { return result().value(); }
  T get() && { return std::move(*this).result().value(); }
  /// @}

  /// Like get(), but the error is returned, not thrown.
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

  /// Has `f` called when the future is ready. `f` takes the value (then errors pass it by, into the
  /// returned future) or a `Result<T>`, which it says by its parameter's type, and nothing for a
  /// Future<void>. It returns a value, nothing, a Result, or a future, which is flattened: then()
  /// never gives a future of a future. A coroutine used as `f` takes its parameter by value.
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

  /// The same, but `f` runs on `executor` (and is posted to it for errors that pass `f` by, too, so
  /// that what follows is on the executor in any case). The executor outlives the completion of
  /// this future; or give a shared_ptr, which is kept until then. If the executor destroys the
  /// callback without running it the returned future fails with BrokenPromise. On an lvalue `f`
  /// gets a copy of the value, made by the completing thread.
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

  /// Has `f` called with the std::exception_ptr if the future fails; what it returns (a T, a
  /// Result<T> or a Future<T>; nothing for a Future<void>) takes the error's place. A value passes
  /// it by. With E, only errors of that type: `f` takes a `const E&`, and other errors pass it by,
  /// too. On an lvalue T must be copyable.
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

  /// Has `f` called without arguments, with a value as with an error; either then passes on. If `f`
  /// throws, its exception takes their place. If it returns a Future<void> that is waited for
  /// first, and its error takes their place. On an lvalue T must be copyable.
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
      detail::throw_no_state("the future is empty: it was moved from, or its value was taken");
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
      detail::throw_no_state("the future was moved while it was waited for");
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
  /// A future of a copy of the value.
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
                  "the callback of then() takes the future's value, or a Result of it");
    using U = typename detail::Flattened<typename detail::ReturnOf<D, Argument>::type>::type;
    return detail::attach<U, Consume, detail::ThenBody<D, U, kTakesResult>>(
        std::move(state), std::forward<F>(f), std::move(where));
  }

  template <class E, bool Consume, class F>
  static Future attach_on_error(detail::Ref<detail::State<T>> state, F&& f) {
    using D = std::decay_t<F>;
    using Argument = std::conditional_t<std::is_void_v<E>, std::exception_ptr,
                                        std::add_lvalue_reference_t<const E>>;
    static_assert(
        detail::CallTraits<D, Argument>::kCallable,
        "the callback of on_error() takes a std::exception_ptr, that of on_error<E>() a const E&");
    using U = typename detail::Flattened<typename detail::ReturnOf<D, Argument>::type>::type;
    static_assert(std::is_void_v<T> == std::is_void_v<U>,
                  "the callback of on_error() returns what takes the value's place");
    return detail::attach<T, Consume, detail::OnErrorBody<D, T, E>>(
        std::move(state), std::forward<F>(f), detail::Here{});
  }

  template <class F>
  static auto run_finally(F& f, Result<T> result) {
    using R = decltype(std::move(f)());
    if constexpr (detail::Flattened<std::remove_cvref_t<R>>::kIsFuture) {
      static_assert(std::is_same_v<std::remove_cvref_t<R>, Future<void>>,
                    "the callback of finally() returns nothing or a Future<void>");
      return std::move(f)().then(
          [result = std::move(result)]() mutable { return std::move(result); });
    } else {
      static_assert(std::is_void_v<R>,
                    "the callback of finally() returns nothing or a Future<void>");
      std::move(f)();
      return result;
    }
  }

  detail::Ref<detail::State<T>> state_;
};

/// A future that is ready with `value`.
template <class T>
[[nodiscard]] Future<std::decay_t<T>> make_ready_future(T&& value) {
  return detail::make_completed<std::decay_t<T>>(Result<std::decay_t<T>>(std::forward<T>(value)));
}
/// A future without a value that is ready.
[[nodiscard]] inline Future<void> make_ready_future() {
  return detail::make_completed<void>(Result<void>());
}

/// A future that has failed with `error`.
template <class T>
[[nodiscard]] Future<T> make_failed_future(std::exception_ptr error) {
  return detail::make_completed<T>(Result<T>(std::move(error)));
}
/// The same with an exception.
template <class T, class E>
requires(!std::is_convertible_v<E, std::exception_ptr>)
    [[nodiscard]] Future<T> make_failed_future(E error) {
  return make_failed_future<T>(std::make_exception_ptr(std::move(error)));
}

}  // namespace batchrpc
