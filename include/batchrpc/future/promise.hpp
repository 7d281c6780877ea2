#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include "batchrpc/base/result.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/state.hpp"

namespace batchrpc {

/// The side of a future that completes it, once. Callbacks of the future run inside the function
/// that completes it (see Future) and may destroy the promise. If a promise is destroyed or
/// assigned to before it has completed its future, the future fails with BrokenPromise.
///
/// Only one thread at a time may use a promise. Completing it twice, taking its future twice, or
/// using a moved-from promise throws InvalidArgument.
template <class T>
class Promise {
 public:
  /// Makes one allocation, which holds promise, future and value.
  Promise() : Promise(new detail::State<T>(2)) {}
  Promise(Promise&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)),
        future_taken_(other.future_taken_),
        set_(other.set_) {}
  Promise& operator=(Promise&& other) noexcept {
    Promise old(std::move(*this));
    state_ = std::exchange(other.state_, nullptr);
    future_taken_ = other.future_taken_;
    set_ = other.set_;
    return *this;
  }
  ~Promise() {
    if (state_ == nullptr) return;
    if (future_taken_) {
      state_->store(detail::broken_promise());
      state_->complete();
    } else {  // no future was taken
      if (!set_) state_->release();
      state_->release();
    }
  }

  /// Returns the future. Call it once, before or after the promise is completed.
  [[nodiscard]] Future<T> get_future() {
    if (state_ == nullptr || future_taken_) {
      detail::throw_no_state(
          "the promise's future was already taken, or the promise was moved from");
    }
    future_taken_ = true;
    auto* const state = state_;
    if (set_) state_ = nullptr;
    return detail::FutureAccess::make(detail::Ref<detail::State<T>>(state));
  }

  /// Completes the future with a value. If the value's constructor throws, the exception goes to
  /// the caller and the promise stays unchanged.
  template <class U = T>
  requires(!std::is_void_v<T> && std::is_constructible_v<T, U>) void set_value(U&& value) {
    complete(Result<T>(T(std::forward<U>(value))));
  }
  /// Completes a Future<void>.
  void set_value() requires std::is_void_v<T> { complete(Result<void>()); }

  /// Completes the future with an error. A null one becomes an InvalidArgument.
  void set_error(std::exception_ptr error) { complete(Result<T>(std::move(error))); }
  /// The same for an exception object, such as TimedOut("...").
  template <class E>
  requires(!std::is_convertible_v<E, std::exception_ptr>) void set_error(E error) {
    set_error(std::make_exception_ptr(std::move(error)));
  }

  /// Completes the future with the value or the error in `result`.
  void set_result(Result<T> result) { complete(std::move(result)); }

  /// Whether the promise has not been completed yet and was not moved from.
  [[nodiscard]] bool pending() const noexcept { return state_ != nullptr && !set_; }

 private:
  explicit Promise(detail::State<T>* state) noexcept : state_(state) {}

  void complete(Result<T> result) {
    if (!pending()) detail::throw_no_state("the promise was already completed, or was moved from");
    state_->store(std::move(result));
    if (future_taken_) {
      std::exchange(state_, nullptr)->complete();  // may destroy this
    } else {
      set_ = true;
      state_->complete();  // keeps one reference for the future that may still be taken
    }
  }

  detail::State<T>* state_;  // one reference, plus the future's until that is taken
  bool future_taken_ = false;
  bool set_ = false;
};

}  // namespace batchrpc
