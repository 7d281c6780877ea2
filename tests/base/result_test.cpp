#include "batchrpc/base/result.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace batchrpc;

namespace result_test {

std::exception_ptr late() { return std::make_exception_ptr(TimedOut("late")); }

struct ThrowsWhenCopied {
  ThrowsWhenCopied() = default;
  ThrowsWhenCopied(ThrowsWhenCopied&&) noexcept = default;
  ThrowsWhenCopied(const ThrowsWhenCopied&) { throw std::runtime_error("copied"); }
};

TEST_CASE("A result has a value") {
  Result<std::string> result = std::string("text");
  CHECK(result);
  CHECK(result.has_value());
  CHECK(result.value() == "text");
  CHECK(*result == "text");
  CHECK(result->size() == 4);
  CHECK(result.error() == nullptr);
  CHECK(result.message() == "no error");
  result.value() += "2";
  CHECK(std::move(result).value() == "text2");
}

TEST_CASE("A result has an error, as the exception that it was") {
  const Result<int> result = late();
  CHECK_FALSE(result);
  CHECK_THROWS_AS(result.value(), TimedOut);
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK(result.message() == "late");
  CHECK_THROWS_AS(Result<int>(std::make_exception_ptr(42)).value(), int);
}

TEST_CASE("A result without a value is success or an error") {
  CHECK(Result<void>().has_value());
  CHECK_NOTHROW(Result<void>().value());
  Result<void> result = late();
  CHECK_FALSE(result);
  CHECK_THROWS_AS(result.value(), TimedOut);
  CHECK(result.code() == ErrorCode::timed_out);
}

TEST_CASE("A null error is an error too") {
  CHECK(Result<int>(std::exception_ptr()).code() == ErrorCode::invalid_argument);
  CHECK(Result<void>(std::exception_ptr()).code() == ErrorCode::invalid_argument);
}

TEST_CASE("Results are copied, moved and assigned across values and errors") {
  const std::string text = "a text that is too long to be kept inside the string";
  Result<std::string> value = text;
  Result<std::string> error = late();
  Result<std::string> other = value;
  CHECK(other.value() == text);
  other = error;
  CHECK(other.code() == ErrorCode::timed_out);
  other = value;
  CHECK(other.value() == text);
  other = std::move(value);
  CHECK(other.value() == text);
  other = std::move(error);
  CHECK(other.code() == ErrorCode::timed_out);
  auto& self = other;
  other = std::move(self);
  CHECK(other.code() == ErrorCode::timed_out);
}

TEST_CASE("A result that was moved from still is what it was, a value or an error") {
  Result<std::string> error = late();
  const Result<std::string> moved = std::move(error);
  CHECK(moved.code() == ErrorCode::timed_out);
  CHECK(error.code() == ErrorCode::timed_out);  // NOLINT: what is left is what is tested
  Result<void> nothing = late();
  const Result<void> moved_nothing = std::move(nothing);
  CHECK(moved_nothing.code() == ErrorCode::timed_out);
  CHECK_FALSE(nothing);  // NOLINT
}

TEST_CASE("Results hold what can only be moved, also deep inside") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(1);
  const std::unique_ptr<int> value = std::move(result).value();
  CHECK(*value == 1);
  Result<std::vector<std::unique_ptr<int>>> several = std::vector<std::unique_ptr<int>>(3);
  const auto moved = std::move(several);
  CHECK(moved->size() == 3);
  CHECK_FALSE(std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
}

TEST_CASE("A copy that throws leaves both results as they were") {
  const Result<ThrowsWhenCopied> value = ThrowsWhenCopied();
  Result<ThrowsWhenCopied> other = late();
  CHECK_THROWS_AS(Result<ThrowsWhenCopied>(value), std::runtime_error);
  CHECK_THROWS_AS(other = value, std::runtime_error);
  CHECK(other.code() == ErrorCode::timed_out);
  CHECK(value.has_value());
}

TEST_CASE("The code of what is not batchrpc's error is remote_error") {
  CHECK(code_of(late()) == ErrorCode::timed_out);
  CHECK(code_of(std::make_exception_ptr(std::runtime_error(""))) == ErrorCode::remote_error);
  CHECK(code_of(std::make_exception_ptr(42)) == ErrorCode::remote_error);
}

}  // namespace result_test
