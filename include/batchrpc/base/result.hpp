#pragma once

#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

/// The code of `error`, or ErrorCode::remote_error where it is not one of batchrpc's errors.
[[nodiscard]] BATCHRPC_EXPORT ErrorCode code_of(const std::exception_ptr& error) noexcept;

/// A value or the error that came in its place. The error is kept as the exception it is, so that
/// nothing of it is lost on its way through a chain of futures.
template <class T>
class [[nodiscard]] Result {
 public:
  static_assert(!std::is_reference_v<T>, "a Result holds a value, not a reference");
  using value_type = T;

  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit
  Result(std::exception_ptr error)                                         // NOLINT: implicit
      : content_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool has_value() const noexcept { return content_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value; throws the error where there is none.
  [[nodiscard]] const T& value() const& { return check(), std::get<0>(content_); }
  [[nodiscard]] T& value() & { return check(), std::get<0>(content_); }
  [[nodiscard]] T&& value() && { return check(), std::get<0>(std::move(content_)); }

  /// The value, unchecked: only after has_value().
  const T& operator*() const& noexcept { return *std::get_if<0>(&content_); }
  T& operator*() & noexcept { return *std::get_if<0>(&content_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&content_)); }
  const T* operator->() const noexcept { return std::get_if<0>(&content_); }
  T* operator->() noexcept { return std::get_if<0>(&content_); }

  /// The error; null where there is a value.
  [[nodiscard]] std::exception_ptr error() const noexcept {
    const auto* error = std::get_if<1>(&content_);
    return error != nullptr ? *error : nullptr;
  }
  /// The error's code; only where there is an error.
  [[nodiscard]] ErrorCode code() const noexcept { return code_of(error()); }
  /// The error's message; "no error" where there is a value.
  [[nodiscard]] std::string message() const { return describe(error()); }

 private:
  void check() const {
    if (const auto* error = std::get_if<1>(&content_)) std::rethrow_exception(*error);
  }

  std::variant<T, std::exception_ptr> content_;
};

/// Success, or the error that came in its place.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() noexcept = default;
  Result(std::exception_ptr error) noexcept : error_(std::move(error)) {}  // NOLINT: implicit

  [[nodiscard]] bool has_value() const noexcept { return error_ == nullptr; }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const {
    if (error_) std::rethrow_exception(error_);
  }
  [[nodiscard]] std::exception_ptr error() const noexcept { return error_; }
  [[nodiscard]] ErrorCode code() const noexcept { return code_of(error_); }
  [[nodiscard]] std::string message() const { return describe(error_); }

 private:
  std::exception_ptr error_;
};

}  // namespace batchrpc
