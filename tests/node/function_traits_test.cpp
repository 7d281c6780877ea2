#include "batchrpc/call/function_traits.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

namespace traits {
struct Type {
  int method(double value);
  [[nodiscard]] int constant(double value) const noexcept;
  static int fixed(double value);
};
int function(double value);
namespace inner {
void nested(const std::string& text, int&& number) noexcept;
}
}  // namespace traits

namespace batchrpc::detail {
namespace function_traits_test {

TEST_CASE("a function's name is its qualified name") {
  CHECK(function_name<&traits::function>() == "traits::function");
  CHECK(function_name<&traits::inner::nested>() == "traits::inner::nested");
  CHECK(function_name<&traits::Type::method>() == "traits::Type::method");
  CHECK(function_name<&traits::Type::constant>() == "traits::Type::constant");
  CHECK(function_name<&traits::Type::fixed>() == "traits::Type::fixed");
}

TEST_CASE("what has no name that another program could know is not a plain name") {
  CHECK(is_plain_name("space::name_1"));
  CHECK_FALSE(is_plain_name(""));
  CHECK_FALSE(is_plain_name("{anonymous}::f"));
  CHECK_FALSE(is_plain_name("f<int>"));
  CHECK_FALSE(is_plain_name("operator+"));
  CHECK_FALSE(is_plain_name("main()::<lambda(int)>"));
}

template <class F, class R, class... A>
constexpr bool is() {
  using Traits = FunctionTraits<F>;
  return std::is_same_v<typename Traits::Result, R> &&
         std::is_same_v<typename Traits::Arguments, std::tuple<A...>>;
}

TEST_CASE("the signature of every kind of callable is found, without references and qualifiers") {
  STATIC_REQUIRE(is<int(double), int, double>());
  STATIC_REQUIRE(is<int (*)(double), int, double>());
  STATIC_REQUIRE(is<int (*)(double) noexcept, int, double>());
  STATIC_REQUIRE(is<void(const std::string&, int&&) noexcept, void, std::string, int>());
  STATIC_REQUIRE(is<decltype(&traits::Type::method), int, double>());
  STATIC_REQUIRE(is<decltype(&traits::Type::constant), int, double>());
  STATIC_REQUIRE(is<decltype(&traits::Type::fixed), int, double>());
  STATIC_REQUIRE(is<int (traits::Type::*)(double)&, int, double>());
  STATIC_REQUIRE(is<int (traits::Type::*)(double) const& noexcept, int, double>());
  const auto lambda = [](const std::vector<int>& v) -> const std::vector<int>& { return v; };
  STATIC_REQUIRE(is<decltype(lambda), std::vector<int>, std::vector<int>>());
  STATIC_REQUIRE(is<std::function<void(const int)>, void, int>());
}

TEST_CASE("what returns a future is asynchronous, and its result is the future's") {
  STATIC_REQUIRE(is<Future<std::string>(int), std::string, int>());
  STATIC_REQUIRE(is<Future<void>(), void>());
  STATIC_REQUIRE(FunctionTraits<Future<void>()>::kAsynchronous);
  STATIC_REQUIRE_FALSE(FunctionTraits<std::string()>::kAsynchronous);
}

}  // namespace function_traits_test
}  // namespace batchrpc::detail
