#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch/operators.hpp"
#include "torch/exposed_operators.hpp"
#include "torch/tensors.hpp"

namespace batchrpc {
namespace operator_keywords_test {

using Catch::Matchers::Contains;
using torch_test::ExposedOperators;
using torch_test::identical;

TEST_CASE("operators take arguments by keyword", "[operators]") {
  ExposedOperators world({"aten::add", "aten::sum", "aten::max", "aten::zeros"});
  const at::Tensor a = at::arange(6).view({2, 3});
  using at::Tensor;
  CHECK(at::equal(
      world.call<Tensor(Tensor, Tensor, Keywords)>("aten::add", a, a, Keywords{{"alpha", 2}}),
      a * 3));
  const Keywords how{
      {"dim", std::vector<std::int64_t>{1}}, {"keepdim", true}, {"dtype", at::kDouble}};
  CHECK(identical(world.call<Tensor(Tensor, Keywords)>("aten::sum", a, how),
                  at::sum(a, {1}, true, at::kDouble)));
  CHECK(identical(
      world.call<Tensor(Keywords)>("aten::add", Keywords{{"self", a}, {"other", a}, {"alpha", 2}}),
      a * 3));
  const auto [values, places] = world.call<std::pair<Tensor, Tensor>(Tensor, int, Keywords)>(
      "aten::max", a, 1, Keywords{{"keepdim", true}});
  CHECK(values.sizes() == at::IntArrayRef({2, 1}));
  CHECK(world
            .call<Tensor(std::vector<std::int64_t>, Keywords)>(
                "aten::zeros", std::vector<std::int64_t>{2}, Keywords{{"dtype", at::kInt}})
            .scalar_type() == at::kInt);
  CHECK(at::equal(world.call<Tensor(Tensor, Tensor, Keywords)>("aten::add", a, a, Keywords{}),
                  a * 2));
}

TEST_CASE("keywords that no schema has are refused, and named", "[operators]") {
  ExposedOperators world({"aten::add"});
  using at::Tensor;
  const Tensor a = at::ones({2});
  const auto refusal = [&](const Keywords& keywords) {
    const Error error = world.fails<Tensor(Tensor, Tensor, Keywords)>("aten::add", a, a, keywords);
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK_FALSE(error.may_have_run());
    return std::string(error.what());
  };
  CHECK_THAT(refusal({{"beta", 2}}), Contains("beta=Int 2; it has no keyword 'beta'"));
  CHECK_THAT(refusal({{"alpha", "two"}}), Contains("alpha=String"));
  CHECK_THAT(refusal({{"other", a}}), Contains("other=Tensor (float32 [2])"));  // given twice
  CHECK(world.fails<Tensor(Tensor, Keywords, Tensor)>("aten::add", a, Keywords{}, a).code() ==
        ErrorCode::bad_signature);
  CHECK(world.fails<Keywords(Tensor, Tensor)>("aten::add", a, a).code() ==
        ErrorCode::bad_signature);
}

TEST_CASE("a dict that is no Keywords is an argument like any other", "[operators]") {
  ExposedOperators world({"aten::neg"});
  c10::impl::GenericDict dict(c10::IntType::get(), c10::IntType::get());
  dict.insert(1, 2);
  const Error error = world.fails<at::Tensor(at::Tensor, c10::IValue)>("aten::neg", at::ones({2}),
                                                                       c10::IValue(dict));
  CHECK(error.code() == ErrorCode::invalid_argument);
  CHECK_THAT(error.what(), Contains("Tensor (float32 [2]), GenericDict"));
  const Error alone = world.fails<at::Tensor(c10::IValue)>("aten::neg", c10::IValue(dict));
  CHECK(alone.code() == ErrorCode::invalid_argument);
  CHECK_THAT(alone.what(), Contains("GenericDict"));
}

}  // namespace operator_keywords_test
}  // namespace batchrpc
