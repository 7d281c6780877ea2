// Calls that would end the process, or take memory without bound.
#include "torch/operator_guard.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch/ivalue.hpp"
#include "torch/exposed_operators.hpp"
#include "torch/operator_list.hpp"
#include "torch/tensors.hpp"

namespace batchrpc {
namespace operator_guard_test {

using at::Tensor;
using Catch::Matchers::Contains;
using Ints = std::vector<std::int64_t>;
using Tensors = std::vector<Tensor>;
using Operators = torch_test::ExposedOperators;
using torch_test::identical;

constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kSmallestInt = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kHuge = std::int64_t{1} << 40;

/// The operators of the list.
struct Listed : Operators {
  Listed() : Operators({}) { expose_all_operators(b); }
};

void check_refused(const Error& error, const std::string& why) {
  CAPTURE(error.what());
  CHECK(error.code() == ErrorCode::invalid_argument);
  CHECK_FALSE(error.may_have_run());
  CHECK_THAT(error.what(), Contains(why));
}

TEST_CASE("the smallest integer is not divided by -1, which would end the process", "[operators]") {
  Operators world({"aten::floor_divide", "aten::remainder", "aten::fmod", "aten::div",
                   "aten::divide", "aten::remainder_"});
  const Tensor smallest = at::tensor(Ints{5, kSmallest});
  const Tensor divisors = at::tensor(Ints{-1, 3});
  const std::string why = "divided by -1";
  for (const char* name :
       {"aten::floor_divide", "aten::remainder", "aten::fmod", "aten::remainder_"}) {
    CAPTURE(name);
    check_refused(world.fails<Tensor(Tensor, Tensor)>(name, smallest, divisors), why);
    check_refused(world.fails<Tensor(Tensor, Tensor)>(
                      name, smallest.to(at::kInt).fill_(kSmallestInt), divisors.to(at::kInt)),
                  why);
  }
  check_refused(world.fails<Tensor(Tensor, int)>("aten::remainder", smallest, -1), why);
  check_refused(world.fails<Tensor(std::int64_t, Tensor)>("aten::remainder", kSmallest, divisors),
                why);
  for (const char* name : {"aten::div", "aten::divide"}) {
    for (const char* rounding : {"trunc", "floor"}) {
      check_refused(
          world.fails<Tensor(Tensor, Tensor, std::string)>(name, smallest, divisors, rounding),
          why);
    }
  }
  // Numbers that are so only once they are converted to the tensor's type.
  const Tensor small = at::full({2}, kSmallestInt, at::kInt);
  const std::int64_t minus_one = (std::int64_t{1} << 32) - 1;
  check_refused(world.fails<Tensor(Tensor, std::int64_t)>("aten::remainder", small, minus_one),
                why);
  check_refused(world.fails<Tensor(Tensor, Tensor)>("aten::floor_divide", small,
                                                    at::scalar_tensor(minus_one, at::kLong)),
                why);
}

TEST_CASE("other divisions are LibTorch's, also by zero", "[operators]") {
  Operators world({"aten::floor_divide", "aten::remainder", "aten::fmod", "aten::div"});
  const Tensor x = at::tensor(Ints{7, -7, kSmallest + 1});
  CHECK(identical(world.call<Tensor(Tensor, int)>("aten::floor_divide", x, -1), -x));
  CHECK(identical(world.call<Tensor(Tensor, int)>("aten::remainder", at::tensor(kSmallest), 3),
                  at::remainder(at::tensor(kSmallest), 3)));
  const Tensor bytes = at::tensor(Ints{-128}).to(at::kChar);
  CHECK(identical(world.call<Tensor(Tensor, int)>("aten::remainder", bytes, -1),
                  at::remainder(bytes, -1)));
  CHECK(identical(world.call<Tensor(Tensor, int)>("aten::div", at::tensor(kSmallest), -1),
                  at::tensor(kSmallest) / -1));  // floating-point
  CHECK(identical(world.call<Tensor(Tensor, double)>("aten::fmod", at::tensor(kSmallest), -1.0),
                  at::fmod(at::tensor(kSmallest), -1.0)));
  for (const char* name : {"aten::floor_divide", "aten::remainder", "aten::fmod"}) {
    const Error error = world.fails<Tensor(Tensor, Tensor)>(name, x, at::zeros({3}, at::kLong));
    CHECK(error.code() == ErrorCode::remote_error);
    CHECK_THAT(error.what(), Contains("ZeroDivisionError"));
  }
}

TEST_CASE("groups of channels must be positive", "[operators]") {
  Operators world({"aten::native_channel_shuffle", "aten::group_norm"});
  const Tensor x = at::ones({1, 4, 2, 2});
  for (const int groups : {0, -1}) {
    check_refused(world.fails<Tensor(Tensor, int)>("aten::native_channel_shuffle", x, groups),
                  "'groups' is " + std::to_string(groups) + ", but must be positive");
    check_refused(world.fails<Tensor(Tensor, int)>("aten::group_norm", x, groups), "'num_groups'");
  }
  CHECK(identical(world.call<Tensor(Tensor, int)>("aten::group_norm", x, 2), at::group_norm(x, 2)));
}

TEST_CASE("no operator of the list makes more than a payload may have", "[operators]") {
  Listed world;
  const std::string why = "max_payload_bytes";
  const Tensor x = at::ones({4});
  const auto size = [&](const char* name, const Ints& sizes) {
    CAPTURE(name);
    check_refused(world.fails<Tensor(Ints)>(name, sizes), why);
  };
  size("aten::zeros", {kHuge});
  size("aten::ones", {1 << 20, 1 << 20});
  size("aten::rand", {kHuge, kHuge, kHuge});  // more than 2^64 elements
  check_refused(world.fails<Tensor(Ints, int)>("aten::full", Ints{kHuge}, 1), why);
  check_refused(world.fails<Tensor(int)>("aten::eye", 1 << 20), why);
  check_refused(world.fails<Tensor(int, int)>("aten::eye", 1 << 20, 1 << 20), why);
  check_refused(world.fails<Tensor(std::int64_t)>("aten::arange", kHuge), why);
  check_refused(world.fails<Tensor(int, int, double)>("aten::arange", 0, 1, 1e-300), why);
  check_refused(world.fails<Tensor(int, int, std::int64_t)>("aten::linspace", 0, 1, kHuge), why);
  check_refused(world.fails<Tensor(std::int64_t)>("aten::randperm", kHuge), why);
  check_refused(world.fails<Tensor(Tensor, Ints)>("aten::repeat", x, Ints{kHuge}), why);
  check_refused(world.fails<Tensor(Tensor, Ints)>("aten::tile", x, Ints{kHuge, kHuge}), why);
  check_refused(world.fails<Tensor(Tensor, Ints)>("aten::expand", x, Ints{kHuge, 4}), why);
  // The product of these sizes is 4, less a multiple of 2^64.
  check_refused(world.fails<Tensor(Tensor, Ints)>("aten::view", x, Ints{kHuge, kHuge, kHuge}), why);
}

TEST_CASE("small arguments do not make large results of the list's operators", "[operators]") {
  Listed world;
  const std::string why = "max_payload_bytes";
  const Tensor row = at::ones({1, 1 << 16});
  const Tensor column = at::ones({1 << 16, 1});
  for (const char* name : {"aten::add", "aten::mul", "aten::eq", "aten::pow", "aten::matmul"}) {
    CAPTURE(name);
    check_refused(world.fails<Tensor(Tensor, Tensor)>(name, column, row), why);
  }
  check_refused(world.fails<Tensor(Tensor, Tensor)>("aten::outer", row[0], row[0]), why);
  check_refused(world.fails<Tensor(Tensor, Tensor)>("aten::linear", column, column), why);
  check_refused(world.fails<Tensor(Tensor, int, Tensor)>("aten::index_select", row, 0,
                                                         at::zeros({1 << 16}, at::kLong)),
                why);
  // Without elements, and yet with large sizes.
  const Tensor nothing = at::zeros({1 << 20, 1 << 20, 0});
  check_refused(world.fails<Tensor(Tensor, int)>("aten::sum", nothing, 2), why);
  check_refused(world.fails<Tensor(Tensor, Tensor)>("aten::mm", at::zeros({1 << 20, 0}),
                                                    at::zeros({0, 1 << 20})),
                why);
  // Many results.
  const Tensor many = at::zeros({1 << 17}, at::kByte);
  check_refused(world.fails<Tensors(Tensor, int)>("aten::split", many, 1), "131072 tensors");
  check_refused(world.fails<Tensors(Tensor, int)>("aten::unbind", many, 0), "131072 tensors");
  check_refused(world.fails<Tensors(Tensor, std::int64_t)>("aten::chunk", at::zeros({0}), kHuge),
                "tensors");
  CHECK(world.call<Tensors(Tensor, int)>("aten::split", many, 1 << 16).size() == 2);
  CHECK(identical(world.call<Tensor(Tensor, Tensor)>("aten::matmul", row, column),
                  at::matmul(row, column)));
}

TEST_CASE("an operator of the list takes no sparse tensor, which may have any size",
          "[operators]") {
  Listed world;
  const Tensor huge = at::sparse_coo_tensor({kHuge / 1024}, at::TensorOptions(at::kFloat));
  const auto why = Contains("is a sparse tensor; send tensor.to_dense()");
  CHECK_THAT(world.fails<Tensor(Tensor)>("aten::neg", huge).what(), why);
  CHECK_THAT((world.fails<Tensor(Tensors, int)>("aten::cat", Tensors{huge, huge}, 0).what()), why);
}

TEST_CASE("a result that repeats few elements without end is not sent", "[operators]") {
  Operators world({"aten::expand_as", "aten::as_strided"});
  const Error error = world.fails<Tensor(Tensor, Ints, Ints)>("aten::as_strided", at::ones({1}),
                                                              Ints{kHuge}, Ints{0});
  CHECK(error.code() == ErrorCode::invalid_argument);
  CHECK(error.may_have_run());
  CHECK_THAT(error.what(), Contains("max_payload_bytes"));
}

TEST_CASE("the operators of the list write to no argument and are found by their names",
          "[operators]") {
  Listed world;
  for (const std::string& name : exposed_functions(world.b)) {
    CAPTURE(name);
    CHECK(detail::size_of_operator(name));
    CHECK_FALSE(name.ends_with('_'));
    CHECK_THAT(function_schema(world.b, name), !Contains("!)"));
  }
  CHECK_FALSE(detail::size_of_operator("aten::add_"));
  CHECK_FALSE(detail::size_of_operator("aten::conv2d"));
  CHECK_FALSE(detail::size_of_operator("other::add"));
  CHECK(detail::size_of_operator("aten::add") == detail::OperatorSize::broadcast);
}

}  // namespace operator_guard_test
}  // namespace batchrpc
