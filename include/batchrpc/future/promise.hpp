#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include "batchrpc/base/result.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/state.hpp"

namespace batchrpc {

/// The side of a future that completes it, once. Callbacks of the future run inside the function
/// that completes it (see Future); the promise may be destroyed by them. A promise that is
/// destroyed, or assigned to, without having completed its future completes it with BrokenPromise.
///
/// Used by one thread at a time. Completing twice, asking for the future twice, and using a promise
/// that was moved from throws InvalidArgument.
template <class T>
class Promise {
 public:
  /// One allocation, which holds promise, future and value.
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
    } else {  // nobody has seen it
      if (!set_) state_->release();
      state_->release();
    }
  }

  /// The future, once; before or after it is completed.
  [[nodiscard]] Future<T> get_future() {
    if (state_ == nullptr || future_taken_) {
      detail::throw_no_state("the promise has given its future away, or was moved from");
    }
    future_taken_ = true;
    auto* const state = state_;
    if (set_) state_ = nullptr;
    return detail::FutureAccess::make(detail::Ref<detail::State<T>>(state));
  }

  /// Completes the future with a value. If making it throws, that goes to the caller and the
  /// promise is as before.
  template <class U = T>
  requires(!std::is_void_v<T> && std::is_constructible_v<T, U>) void set_value(U&& value) {
    complete(Result<T>(T(std::forward<U>(value))));
  }
  /// Completes the Future<void>.
  void set_value() requires std::is_void_v<T> { complete(Result<void>()); }

  /// Completes the future with an error; a null one becomes an InvalidArgument.
  void set_error(std::exception_ptr error) { complete(Result<T>(std::move(error))); }
  /// The same with an exception by value, such as TimedOut("...").
  template <class E>
  requires(!std::is_convertible_v<E, std::exception_ptr>) void set_error(E error) {
    set_error(std::make_exception_ptr(std::move(error)));
  }

  /// Completes the future with a value or an error, whichever `result` holds.
  void set_result(Result<T> result) { complete(std::move(result)); }

  /// Whether it can and must still be completed.
  [[nodiscard]] bool pending() const noexcept { return state_ != nullptr && !set_; }

 private:
  explicit Promise(detail::State<T>* state) noexcept : state_(state) {}

  void complete(Result<T> result) {
    if (!pending()) detail::throw_no_state("the promise was completed before, or was moved from");
    state_->store(std::move(result));
    if (future_taken_) {
      std::exchange(state_, nullptr)->complete();  // may destroy this
    } else {
      set_ = true;
      state_->complete();  // one reference is left, for the future to come
    }
  }

  detail::State<T>*
      state_;  // with one reference, and while the future is not taken with the future's too
  bool future_taken_ = false;
  bool set_ = false;
};

}  // namespace batchrpc
