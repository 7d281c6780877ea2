#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/future/ambient.hpp"
#include "batchrpc/future/state.hpp"

/// The implementation of `then`, `on_error` and `finally`. Not for users.
namespace batchrpc {

template <class T>
class Future;

namespace detail {

/// Makes futures from states and takes them apart.
struct FutureAccess {
  template <class T>
  static Future<T> make(Ref<State<T>> state) noexcept {
    return Future<T>(std::move(state));
  }
  template <class T>
  static Ref<State<T>> consume(Future<T>& future) {
    return future.consume();
  }
  template <class T>
  static Ref<State<T>> share(const Future<T>& future) {
    return future.share();
  }
  template <class T>
  static Future<T> copy(const Future<T>& future) {
    return future.copy();
  }
};

/// The future type for a callback that returns R. Futures and results are flattened.
template <class R>
struct Flattened {
  using type = R;
  static constexpr bool kIsFuture = false;
};
template <class U>
struct Flattened<Future<U>> {
  using type = U;
  static constexpr bool kIsFuture = true;
};
template <class U>
struct Flattened<Result<U>> {
  using type = U;
  static constexpr bool kIsFuture = false;
};

/// Takes the place of an executor and means "on the completing thread".
struct Here {};

// How a callback is called: once, as an rvalue, without arguments if A is void.
template <class F, class A>
struct CallTraits {
  static constexpr bool kCallable = requires(F && f, A&& argument) {
    std::forward<F>(f)(std::forward<A>(argument));
  };
};
template <class F>
struct CallTraits<F, void> {
  static constexpr bool kCallable = requires(F && f) { std::forward<F>(f)(); };
};

template <class F, class A>
struct ReturnOf {
  using type = std::remove_cvref_t<decltype(std::declval<F>()(std::declval<A>()))>;
};
template <class F>
struct ReturnOf<F, void> {
  using type = std::remove_cvref_t<decltype(std::declval<F>()())>;
};

// The type of a callable's only parameter, if it has exactly one signature.
struct UnknownParameter {};
template <class F>
struct Parameter {
  using type = UnknownParameter;
};
template <class F>
requires requires { &F::operator(); }
struct Parameter<F> : Parameter<decltype(&F::operator())> {};
template <class R, class A>
struct Parameter<R (*)(A)> {
  using type = A;
};
template <class R, class A>
struct Parameter<R (*)(A) noexcept> : Parameter<R (*)(A)> {};
template <class C, class R, class A>
struct Parameter<R (C::*)(A)> : Parameter<R (*)(A)> {};
template <class C, class R, class A>
struct Parameter<R (C::*)(A) const> : Parameter<R (*)(A)> {};
template <class C, class R, class A>
struct Parameter<R (C::*)(A) noexcept> : Parameter<R (*)(A)> {};
template <class C, class R, class A>
struct Parameter<R (C::*)(A) const noexcept> : Parameter<R (*)(A)> {};

/// The type of a callback's argument: T&& if the future is consumed, else const T&.
template <class T, bool Consume>
using ArgumentOf = std::conditional_t<Consume, T&&, const T&>;
template <class T, bool Consume>
struct ValueArgument {
  using type = ArgumentOf<T, Consume>;
};
template <bool Consume>
struct ValueArgument<void, Consume> {
  using type = void;
};

/// Whether `f` takes the Result instead of the value. Decided by its parameter's type, because a
/// value converts to a Result and a generic callable would accept both.
template <class F, class T, bool Consume>
inline constexpr bool kTakesResult = [] {
  using P = typename Parameter<F>::type;
  if constexpr (std::is_same_v<P, UnknownParameter>) {
    return !CallTraits<F, typename ValueArgument<T, Consume>::type>::kCallable;
  } else {
    return std::is_same_v<std::remove_cvref_t<P>, Result<T>>;
  }
}();

/// Runs `call` and stores its result in `out`. If it returns a future, returns that future's state,
/// for the caller to follow.
template <class U, class Call>
Ref<State<U>> settle(State<U>& out, Call&& call) {
  using R = std::remove_cvref_t<decltype(call())>;
  if constexpr (Flattened<R>::kIsFuture) {
    R inner = call();
    if (!inner.valid()) {
      out.store(empty_future_returned());
      return {};
    }
    return FutureAccess::consume(inner);
  } else if constexpr (std::is_void_v<R>) {
    call();
    out.store(Result<void>());
    return {};
  } else if constexpr (std::is_same_v<R, Result<U>>) {
    out.store(call());
    return {};
  } else {
    out.store(Result<U>(static_cast<U>(call())));
    return {};
  }
}

/// The body of `then`.
template <class F, class U, bool TakesResult>
struct ThenBody {
  F f;

  template <class In>
  Ref<State<U>> operator()(In&& in, State<U>& out) {
    if constexpr (TakesResult) {
      return settle(out, [&] { return std::move(f)(std::forward<In>(in)); });
    } else if (!in.has_value()) {
      out.store(in.error());
      return {};
    } else if constexpr (std::is_void_v<typename std::remove_cvref_t<In>::value_type>) {
      return settle(out, [&] { return std::move(f)(); });
    } else {
      return settle(out, [&] { return std::move(f)(*std::forward<In>(in)); });
    }
  }
};

/// The body of `on_error`; E is void for any error.
template <class F, class T, class E>
struct OnErrorBody {
  F f;

  template <class In>
  Ref<State<T>> operator()(In&& in, State<T>& out) {
    if (in.has_value()) {
      out.store(std::forward<In>(in));
      return {};
    }
    if constexpr (std::is_void_v<E>) {
      return settle(out, [&] { return std::move(f)(in.error()); });
    } else {
      try {
        std::rethrow_exception(in.error());
      } catch (const E& error) {
        return settle(out, [&] { return std::move(f)(error); });
      } catch (...) {
        out.store(std::forward<In>(in));
        return {};
      }
    }
  }
};

/// The state of a future that `then`, `on_error` or `finally` returns. It keeps the callback until
/// the callback has run and the future that it may have returned is ready. As a Callback it waits
/// first for the source and then for that future. `Body` is called with the source's result and
/// this state, and may return another state to follow.
template <class T, class U, class Body, bool Consume, class Where>
class Continuation final : public State<U>, private Callback {
 public:
  /// One reference belongs to the future, the other to the source.
  template <class F>
  Continuation(F&& f, Where where)
      : State<U>(2),
        Callback(&source_completed, Consume),
        where_(std::move(where)),
        body_{std::forward<F>(f)} {}
  ~Continuation() override {
    if (has_body_) body_.~Body();
  }

  Callback& callback() noexcept { return *this; }

 private:
  static void source_completed(Callback& self, StateBase& source) noexcept {
    auto& typed_source = static_cast<State<T>&>(source);
    auto& continuation = static_cast<Continuation&>(self);
    if constexpr (std::is_same_v<Where, Here>) {
      continuation.invoke(typed_source);
    } else {
      continuation.post(Ref<State<T>>::share(typed_source));
    }
  }

  /// The task that an executor runs. If it is destroyed before it has run, the promise is broken.
  class Posted {
   public:
    Posted(Continuation* continuation, Ref<State<T>> source) noexcept
        : continuation_(continuation), source_(std::move(source)) {}
    Posted(Posted&& other) noexcept
        : continuation_(std::exchange(other.continuation_, nullptr)),
          source_(std::move(other.source_)) {}
    ~Posted() {
      if (continuation_ == nullptr) return;
      continuation_->destroy_body();
      continuation_->fail(dropped_by_executor());
    }
    void operator()() noexcept { std::exchange(continuation_, nullptr)->invoke(*source_); }

   private:
    Continuation* continuation_;
    Ref<State<T>> source_;
  };

  void post(Ref<State<T>> source) noexcept {
    auto where = std::move(where_);
    try {
      where->post(Posted(this, std::move(source)));
    } catch (
        ...) {  // NOLINT: the task that was not taken has completed this state with BrokenPromise
    }
  }

  void invoke(State<T>& source) noexcept {
    const auto ambient = std::move(ambient_);
    const AmbientScope scope(ambient.get());
    Ref<State<U>> inner;
    try {
      if constexpr (Consume) {
        inner = body_(source.take(), *this);
      } else {
        inner = body_(source.result(), *this);
      }
    } catch (...) {
      destroy_body();
      fail(std::current_exception());
      return;
    }
    if (inner) {
      follow(std::move(inner));  // a coroutine still uses the captures of its lambda
    } else {
      destroy_body();
      this->complete();
    }
  }

  void follow(Ref<State<U>> inner) noexcept {
    if (inner->idle()) return finish(*inner);
    this->run = &inner_completed;
    this->consumes = true;
    inner.release()->add_last(*this);
  }
  static void inner_completed(Callback& self, StateBase& inner) noexcept {
    static_cast<Continuation&>(self).finish(static_cast<State<U>&>(inner));
  }
  void finish(State<U>& inner) noexcept {
    destroy_body();
    try {
      this->store(inner.take());
    } catch (...) {
      return fail(std::current_exception());
    }
    this->complete();
  }

  void fail(std::exception_ptr error) noexcept {
    this->store(Result<U>(std::move(error)));
    this->complete();
  }

  // Destroys the callback's captures when it is done, not when the last future is destroyed.
  void destroy_body() noexcept {
    has_body_ = false;
    body_.~Body();
  }

  [[no_unique_address]] Where where_;  // an Executor*, or Here
  std::shared_ptr<const Ambient> ambient_ = Ambient::share_current();
  bool has_body_ = true;
  union {
    Body body_;
  };
};

/// Makes a future that is complete from the beginning.
template <class T>
Future<T> make_completed(Result<T> result) {
  Ref<State<T>> state(new State<T>(1));
  state->store(std::move(result));
  state->set_idle();
  return FutureAccess::make(std::move(state));
}

/// The return type of get() const&.
template <class T>
struct ConstReferenceTo {
  using type = const T&;
};
template <>
struct ConstReferenceTo<void> {
  using type = void;
};
template <class T>
using ConstReference = typename ConstReferenceTo<T>::type;

/// Converts `timeout` to the clock's units, limited to the longest duration that they can express.
template <class Rep, class Period>
Duration to_duration(const std::chrono::duration<Rep, Period>& timeout) {
  using Seconds = std::chrono::duration<double>;
  if (Seconds(timeout) >= Seconds(Duration::max())) return Duration::max();
  if (Seconds(timeout) <= Seconds(Duration::min())) return Duration::min();
  return std::chrono::duration_cast<Duration>(timeout);
}

/// Attaches a new continuation to `source` and returns its future.
template <class U, bool Consume, class Body, class T, class F, class Where>
Future<U> attach(Ref<State<T>> source, F&& f, Where where) {
  using Made = Continuation<T, U, Body, Consume, Where>;
  auto* made = new Made(std::forward<F>(f), std::move(where));
  Future<U> future = FutureAccess::make(Ref<State<U>>(made));
  source.release()->add_last(made->callback());
  return future;
}

}  // namespace detail
}  // namespace batchrpc
