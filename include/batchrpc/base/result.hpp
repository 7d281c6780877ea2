#pragma once

#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

/// The code of `error`, or ErrorCode::remote_error where it is not one of batchrpc's errors.
[[nodiscard]] BATCHRPC_EXPORT ErrorCode code_of(const std::exception_ptr& error) noexcept;

namespace detail {
/// `error`, or an InvalidArgument in place of a null one.
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr not_null(std::exception_ptr error);
}  // namespace detail

/// A value or the error that came in its place. The error is kept as the exception it is, so that
/// nothing of it is lost on its way through a chain of futures.
template <class T>
class [[nodiscard]] Result {
 public:
  static_assert(!std::is_reference_v<T>, "a Result holds a value, not a reference");
  using value_type = T;

  /// A value.
  Result(T value) noexcept(std::is_nothrow_move_constructible_v<T>)  // NOLINT: implicit
      : value_(std::move(value)) {}
  /// A null `error` becomes an InvalidArgument.
  Result(std::exception_ptr error)  // NOLINT: implicit
      : error_(error ? std::move(error) : detail::not_null(nullptr)) {}

  /// Copies the value, or shares the error.
  Result(const Result& other) requires std::is_copy_constructible_v<T> : error_(other.error_) {
    if (has_value()) ::new (static_cast<void*>(&value_)) T(other.value_);
  }
  /// `other` keeps its error, or a value that was moved from.
  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : error_(other.error_) {
    if (has_value()) ::new (static_cast<void*>(&value_)) T(std::move(other.value_));
  }
  Result& operator=(const Result& other) requires std::is_copy_constructible_v<T> {
    return *this = Result(other);
  }
  /// Needs a T whose move does not throw.
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

  /// Whether there is a value, not an error.
  [[nodiscard]] bool has_value() const noexcept { return error_ == nullptr; }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value; throws the error where there is none.
  /// @{
  [[nodiscard]] const T& value() const& { return check(), value_; }
  [[nodiscard]] T& value() & { return check(), value_; }
  [[nodiscard]] T&& value() && { return check(), std::move(value_); }
  /// @}

  /// The value, unchecked: only after has_value().
  const T& operator*() const& noexcept { return value_; }
  T& operator*() & noexcept { return value_; }
  T&& operator*() && noexcept { return std::move(value_); }
  const T* operator->() const noexcept { return &value_; }
  T* operator->() noexcept { return &value_; }

  /// The error; null where there is a value.
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }
  /// The error's code; only where there is an error.
  [[nodiscard]] ErrorCode code() const noexcept { return code_of(error_); }
  /// The error's message; "no error" where there is a value.
  [[nodiscard]] std::string message() const { return describe(error_); }

 private:
  void check() const {
    if (error_) std::rethrow_exception(error_);
  }

  // Not a std::variant: g++ 12 warns of uninitialised ones wherever they are inlined.
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
  /// A null `error` becomes an InvalidArgument.
  Result(std::exception_ptr error)  // NOLINT: implicit
      : error_(error ? std::move(error) : detail::not_null(nullptr)) {}
  Result(const Result&) noexcept = default;
  Result& operator=(const Result&) noexcept = default;
  // Moving copies, so that an error does not turn into success.
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
