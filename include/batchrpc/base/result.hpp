#pragma once

#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

/// The code of `error`, or ErrorCode::remote_error if it is not one of batchrpc's errors.
[[nodiscard]] BATCHRPC_EXPORT ErrorCode code_of(const std::exception_ptr& error) noexcept;

namespace detail {
/// Returns `error`, or an InvalidArgument if it is null.
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr not_null(std::exception_ptr error);
}  // namespace detail

/// A value, or the error that came in its place. The error is the original exception, so that
/// nothing is lost on the way through a chain of futures.
template <class T>
class [[nodiscard]] Result {
 public:
  static_assert(!std::is_reference_v<T>, "a Result holds a value, not a reference");
  using value_type = T;

  /// Holds a value.
  Result(T value) noexcept(std::is_nothrow_move_constructible_v<T>)  // NOLINT: implicit
      : value_(std::move(value)) {}
  /// Holds an error. A null `error` becomes an InvalidArgument.
  Result(std::exception_ptr error)  // NOLINT: implicit
      : error_(error ? std::move(error) : detail::not_null(nullptr)) {}

  /// Copies the value, or shares the error.
  Result(const Result& other) requires std::is_copy_constructible_v<T> : error_(other.error_) {
    if (has_value()) ::new (static_cast<void*>(&value_)) T(other.value_);
  }
  /// `other` keeps its error, or a moved-from value.
  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : error_(other.error_) {
    if (has_value()) ::new (static_cast<void*>(&value_)) T(std::move(other.value_));
  }
  Result& operator=(const Result& other) requires std::is_copy_constructible_v<T> {
    return *this = Result(other);
  }
  /// Requires that moving a T does not throw.
  Result& operator=(Result&& other) noexcept {
    static_assert(std::is_nothrow_move_constructible_v<T>);
    if (this != &other) {
      this->~Result();
      ::new (static_cast<void*>(this)) Result(std::move(other));
    }
    return *this;
  }
  ~Result() {
    if (has_value()) value_.~T();
  }

  /// Whether this holds a value, not an error.
  [[nodiscard]] bool has_value() const noexcept { return error_ == nullptr; }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value. Throws the error if there is none.
  /// @{
  [[nodiscard]] const T& value() const& { return check(), value_; }
  [[nodiscard]] T& value() & { return check(), value_; }
  [[nodiscard]] T&& value() && { return check(), std::move(value_); }
  /// @}

  /// The value, unchecked. Call has_value() first.
  const T& operator*() const& noexcept { return value_; }
  T& operator*() & noexcept { return value_; }
  T&& operator*() && noexcept { return std::move(value_); }
  const T* operator->() const noexcept { return &value_; }
  T* operator->() noexcept { return &value_; }

  /// The error; null if there is a value.
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }
  /// The error's code. Call it only if there is an error.
  [[nodiscard]] ErrorCode code() const noexcept { return code_of(error_); }
  /// The error's message; "no error" if there is a value.
  [[nodiscard]] std::string message() const { return describe(error_); }

 private:
  void check() const {
    if (error_) std::rethrow_exception(error_);
  }

  // Not a std::variant: g++ 12 warns about uninitialised ones wherever they are inlined.
  std::exception_ptr error_;
  union {
    T value_;
  };
};

/// Success, or the error that came in its place.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() noexcept = default;
  /// Holds an error. A null `error` becomes an InvalidArgument.
  Result(std::exception_ptr error)  // NOLINT: implicit
      : error_(error ? std::move(error) : detail::not_null(nullptr)) {}
  Result(const Result&) noexcept = default;
  Result& operator=(const Result&) noexcept = default;
  // Moving copies, so that an error never turns into success.
  ~Result() = default;

  [[nodiscard]] bool has_value() const noexcept { return error_ == nullptr; }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const {
    if (error_) std::rethrow_exception(error_);
  }
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }
  [[nodiscard]] ErrorCode code() const noexcept { return code_of(error_); }
  [[nodiscard]] std::string message() const { return describe(error_); }

 private:
  std::exception_ptr error_;
};

}  // namespace batchrpc
