#include "batchrpc/torch/operators.hpp"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch/ivalue.hpp"
#include "batchrpc/torch/operator_source.hpp"
#include "batchrpc/trace/operator_source.hpp"
#include "torch/exposed_operators.hpp"
#include "torch/tensors.hpp"

namespace batchrpc {
namespace operators_test {

using Catch::Matchers::Contains;
using torch_test::identical;

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Ints = std::vector<std::int64_t>;

using Operators = torch_test::ExposedOperators;

TEST_CASE("an operator that was exposed is called by its name", "[operators]") {
  Operators world({"aten::add", "aten::mul", "aten::relu"});
  const Tensor x = at::arange(-3, 3, at::kFloat);
  const Tensor y = at::full({6}, 0.5);
  CHECK(identical(world.call<Tensor(Tensor, Tensor)>("aten::add", x, y), x + y));
  CHECK(identical(world.call<Tensor(Tensor, Tensor)>("aten::mul", x, y), x * y));
  CHECK(identical(world.call<Tensor(Tensor)>("aten::relu", x), x.relu()));
  CHECK(exposed_functions(world.b) ==
        std::vector<std::string>{"aten::add", "aten::mul", "aten::relu"});
  CHECK_THAT(function_schema(world.b, "aten::relu"), Contains("aten::relu(Tensor self) -> Tensor"));
}

TEST_CASE("the overload is the one that takes the arguments", "[operators]") {
  Operators world({"aten::add", "aten::pow", "aten::sum"});
  const Tensor x = at::arange(6, at::kFloat).reshape({2, 3});
  SECTION("scalars, of whatever number") {
    CHECK(identical(world.call<Tensor(Tensor, double)>("aten::add", x, 0.5), x + 0.5));
    CHECK(identical(world.call<Tensor(Tensor, float)>("aten::add", x, 0.5F), x + 0.5));
    CHECK(identical(world.call<Tensor(Tensor, int)>("aten::add", x, 2), x + 2));
    CHECK(identical(world.call<Tensor(Tensor, std::uint8_t)>("aten::add", x, std::uint8_t{2}),
                    x + 2));
    CHECK(identical(world.call<Tensor(double, Tensor)>("aten::pow", 2.0, x), at::pow(2.0, x)));
  }
  SECTION("what is for keywords comes last") {
    CHECK(identical(world.call<Tensor(Tensor, Tensor, int)>("aten::add", x, x, 3), x + 3 * x));
  }
  SECTION("dimensions, as list, array or number") {
    CHECK(identical(world.call<Tensor(Tensor)>("aten::sum", x), x.sum()));
    CHECK(
        identical(world.call<Tensor(Tensor, Ints)>("aten::sum", x, Ints{0, 1}), x.sum(Ints{0, 1})));
    CHECK(identical(world.call<Tensor(Tensor, std::array<int, 2>, bool)>(
                        "aten::sum", x, std::array<int, 2>{0, 1}, true),
                    x.sum(Ints{0, 1}, true)));
    CHECK(identical(world.call<Tensor(Tensor, int)>("aten::sum", x, 1), x.sum(1)));
  }
  SECTION("one by its own name") {
    expose_operators(world.b, {"aten::add.Tensor"});
    CHECK(identical(world.call<Tensor(Tensor, Tensor)>("aten::add.Tensor", x, x), x + x));
    const auto refused = world.fails<Tensor(Tensor, int)>("aten::add.Tensor", x, 2);
    CHECK(refused.code() == ErrorCode::bad_signature);
  }
}

TEST_CASE("operators take lists of tensors, texts, optionals and ivalues", "[operators]") {
  Operators world({"aten::cat", "aten::einsum", "aten::clamp", "aten::index", "aten::zeros",
                   "aten::layer_norm", "aten::leaky_relu"});
  const Tensor x = at::arange(6, at::kFloat).reshape({2, 3});
  const Tensors both{x, x + 1};
  CHECK(identical(world.call<Tensor(Tensors)>("aten::cat", both), at::cat(both)));
  CHECK(identical(world.call<Tensor(Tensors, int)>("aten::cat", both, 1), at::cat(both, 1)));
  CHECK(identical(world.call<Tensor(std::string, Tensors)>("aten::einsum", "ij,kj->ik", both),
                  at::einsum("ij,kj->ik", both)));
  using Limit = std::optional<double>;
  CHECK(identical(world.call<Tensor(Tensor, Limit, Limit)>("aten::clamp", x, 1.0, std::nullopt),
                  x.clamp_min(1.0)));
  CHECK(identical(world.call<Tensor(Tensor, c10::IValue, c10::IValue)>(
                      "aten::clamp", x, c10::IValue(), c10::IValue(3)),
                  x.clamp_max(3)));
  const std::vector<std::optional<Tensor>> indices{std::nullopt, at::tensor(Ints{2, 0})};
  CHECK(identical(
      world.call<Tensor(Tensor, std::vector<std::optional<Tensor>>)>("aten::index", x, indices),
      x.index({at::indexing::Slice(), at::tensor(Ints{2, 0})})));
  CHECK(identical(
      world.call<Tensor(Ints, int)>("aten::zeros", Ints{2, 3}, static_cast<int>(at::kLong)),
      at::zeros({2, 3}, at::kLong)));
  // An undefined tensor is None.
  CHECK(
      identical(world.call<Tensor(Tensor, Ints, Tensor)>("aten::layer_norm", x, Ints{3}, Tensor()),
                at::layer_norm(x, {3})));
  // An integer is a float where that is wanted.
  CHECK(identical(world.call<Tensor(Tensor, int)>("aten::leaky_relu", x - 3, 2),
                  at::leaky_relu(x - 3, 2)));
}

TEST_CASE("results come as the caller wants them", "[operators]") {
  Operators world(
      {"aten::max", "aten::split", "aten::item", "aten::equal", "aten::size", "aten::add"});
  const Tensor x = at::tensor({1.0, 5.0, 7.0, 2.0}).reshape({2, 2});
  const auto [values, indices] = at::max(x, 1);
  const auto check = [&, v = values, i = indices](const Tensor& value, const Tensor& index) {
    CHECK(identical(value, v));
    CHECK(identical(index, i));
  };
  using Pair = std::pair<Tensor, Tensor>;
  const auto pair = world.call<Pair(Tensor, int)>("aten::max", x, 1);
  check(pair.first, pair.second);
  const auto tuple = world.call<std::tuple<Tensor, Tensor>(Tensor, int)>("aten::max", x, 1);
  check(std::get<0>(tuple), std::get<1>(tuple));
  const auto list = world.call<Tensors(Tensor, int)>("aten::max", x, 1);
  REQUIRE(list.size() == 2);
  check(list[0], list[1]);
  const auto any = world.call<c10::IValue(Tensor, int)>("aten::max", x, 1).toTupleRef().elements();
  check(any[0].toTensor(), any[1].toTensor());
  CHECK(identical(world.call<Tensor(Tensor)>("aten::max", x), x.max()));

  CHECK(world.call<Tensors(Tensor, int)>("aten::split", x, 1).size() == 2);
  CHECK(world.call<double(Tensor)>("aten::item", at::tensor(2.5)) == 2.5);
  CHECK(world.call<float(Tensor)>("aten::item", at::tensor(2)) == 2);
  CHECK(world.call<int(Tensor)>("aten::item", at::tensor(2)) == 2);
  CHECK(world.call<bool(Tensor, Tensor)>("aten::equal", x, x));
  CHECK(world.call<std::int64_t(Tensor, int)>("aten::size", x, 0) == 2);
  CHECK(world.call<c10::IValue(Tensor, Tensor)>("aten::equal", x, x).toBool());
  world.call<void(Tensor, Tensor)>("aten::add", x, x);

  const auto out_of_range = world.fails<std::int8_t(Tensor)>("aten::item", at::tensor(300));
  CHECK(out_of_range.code() == ErrorCode::invalid_argument);
  CHECK(out_of_range.may_have_run());
  CHECK_THAT(out_of_range.what(), Contains("300"));
  CHECK(world.fails<int(Tensor)>("aten::item", at::tensor(0.5)).code() ==
        ErrorCode::invalid_argument);
}

TEST_CASE("what no schema takes is refused before anything runs, and the schemas are told",
          "[operators]") {
  Operators world({"aten::add", "aten::max", "aten::clamp", "aten::zeros"});
  const Tensor x = at::ones({2});
  const auto check = [](const Error& refused, ErrorCode code, const char* schema) {
    CHECK(refused.code() == code);
    CHECK_FALSE(refused.may_have_run());
    CHECK_THAT(refused.what(), Contains(schema));
  };
  const char* const add =
      "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
  SECTION("by its types") {
    const auto text = world.fails<Tensor(Tensor, std::string)>("aten::add", x, "two");
    check(text, ErrorCode::bad_signature, add);
    CHECK_THAT(text.what(), Contains("'aten::add' cannot be called as tensor(tensor,str)"));
    check(world.fails<Tensor(Tensor)>("aten::add", x), ErrorCode::bad_signature, add);
    check(world.fails<Tensor()>("aten::add"), ErrorCode::bad_signature, add);
    check(world.fails<Tensor(Tensor, Ints)>("aten::add", x, Ints{1}), ErrorCode::bad_signature,
          add);
    check(world.fails<Tensor(Tensor, Tensor, int, int, int)>("aten::add", x, x, 1, 1, 1),
          ErrorCode::bad_signature, add);
  }
  SECTION("by its result") {
    check(world.fails<int(Tensor, Tensor)>("aten::add", x, x), ErrorCode::bad_signature, add);
    check(world.fails<std::pair<Tensor, Tensor>(Tensor, Tensor)>("aten::add", x, x),
          ErrorCode::bad_signature, add);
    check(world.fails<Tensor(Tensor, int)>("aten::max", x, 0), ErrorCode::bad_signature,
          "aten::max.dim(");
  }
  SECTION("by a type that no operator has") {
    using Map = std::map<std::string, Tensor>;
    const auto map = world.fails<Tensor(Map)>("aten::add", Map{{"x", x}});
    check(map, ErrorCode::bad_signature, add);
    CHECK_THAT(map.what(), Contains("no map(str,tensor)"));
  }
  SECTION("by what a value turns out to be") {
    const auto value = world.fails<Tensor(Tensor, c10::IValue)>("aten::add", x, c10::IValue("two"));
    check(value, ErrorCode::invalid_argument, add);
    CHECK_THAT(value.what(), Contains("Tensor (float32 [2]), String"));
    const auto undefined = world.fails<Tensor(Tensor, Tensor)>("aten::add", x, Tensor());
    check(undefined, ErrorCode::invalid_argument, add);
    CHECK_THAT(undefined.what(), Contains("Tensor (float32 [2]), None"));
    check(world.fails<Tensor(Tensor, std::uint64_t)>("aten::add", x, ~std::uint64_t{0}),
          ErrorCode::invalid_argument, "too large");
    for (const int type : {-1, 999}) {  // no type of elements
      check(world.fails<Tensor(Ints, int)>("aten::zeros", Ints{2}, type),
            ErrorCode::invalid_argument,
            ("GenericList, Int " + std::to_string(type) + "; its schemas are").c_str());
    }
  }
  CHECK(identical(world.call<Tensor(Tensor, Tensor)>("aten::add", x, x), x + x));
}

TEST_CASE("what an operator throws is a remote error with its text, without the stack",
          "[operators]") {
  Operators world({"aten::mm"});
  const auto thrown =
      world.fails<Tensor(Tensor, Tensor)>("aten::mm", at::ones({2, 3}), at::ones({2, 3}));
  CHECK(thrown.code() == ErrorCode::remote_error);
  CHECK_THAT(thrown.what(), Contains("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"));
  CHECK_THAT(thrown.what(), !Contains("frame #"));
  CHECK(thrown.may_have_run());
}

TEST_CASE("no operator can be called that was not exposed", "[operators]") {
  Operators world({"aten::add"});
  const Tensor x = at::ones({2});
  const auto refused = world.fails<Tensor(Tensor, Tensor)>("aten::mul", x, x);
  CHECK(refused.code() == ErrorCode::not_found);
  CHECK_THAT(refused.what(), Contains("expose_operators(node, {\"aten::mul\"})"));
  const auto near = world.fails<Tensor(Tensor, Tensor)>("aten::ad", x, x);
  CHECK_THAT(near.what(), Contains("did you mean 'aten::add'?"));
  const auto overload = world.fails<Tensor(Tensor, Tensor)>("aten::add.Tensor", x, x);
  CHECK_THAT(overload.what(), Contains("did you mean 'aten::add'?"));
  CHECK(world.b.unexpose("aten::add"));
  CHECK(world.fails<Tensor(Tensor, Tensor)>("aten::add", x, x).code() == ErrorCode::not_found);
}

TEST_CASE("only operators that LibTorch has can be exposed, each once", "[operators]") {
  test::NodePair world;
  const auto refusal = [&](const std::vector<std::string>& names) {
    return torch_test::message_of<NotFound>([&] { expose_operators(world.b, names); });
  };
  CHECK_THAT(refusal({"aten::add", "aten::rellu"}),
             Contains("'aten::rellu'; did you mean") && Contains("'aten::relu'"));
  CHECK_THAT(refusal({"relu"}), Contains("no operator 'relu'; did you mean 'aten::relu'?"));
  const std::string near = refusal({"aten::ad"});  // like thirty
  CHECK(std::count(near.begin(), near.end(), ',') == 4);
  CHECK_THAT(refusal({""}), Contains("no operator ''"));
  CHECK_THAT(refusal({"::"}), Contains("no operator '::'"));
  CHECK_THAT(refusal({"aten::add.Nothing"}), Contains("no overload 'Nothing'"));
  CHECK(exposed_functions(world.b).empty());
  expose_operators(world.b, {"aten::add"});
  CHECK_THROWS_AS(expose_operators(world.b, {"aten::mul", "aten::add"}), InvalidArgument);
  CHECK_THROWS_AS(expose_operators(world.b, {"aten::mul", "aten::mul"}), InvalidArgument);
  CHECK(exposed_functions(world.b) == std::vector<std::string>{"aten::add"});
}

TEST_CASE("many operators may be exposed at once, but only those that were reviewed",
          "[operators]") {
  Operators world({"aten::add"});
  expose_all_operators(world.b);
  expose_all_operators(world.b);  // once more: nothing is left
  const auto names = exposed_functions(world.b);
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  CHECK(names.size() > 200);
  for (const char* name : {"aten::add", "aten::softmax", "aten::matmul", "aten::sum", "aten::zeros",
                           "aten::reshape", "aten::gather"})
    CHECK(has(name));
  for (const char* name :
       {"aten::max_pool2d_with_indices_backward", "aten::ctc_loss", "aten::native_batch_norm",
        "aten::rrelu_with_noise_", "aten::repeat_interleave", "aten::set_", "aten::conv2d",
        "aten::native_channel_shuffle", "aten::special_hermite_polynomial_h", "aten::from_file",
        "aten::as_strided", "aten::einsum", "aten::add_", "aten::empty"})
    CHECK_FALSE(has(name));
  const Tensor x = at::rand({2, 3});
  CHECK(identical(world.call<Tensor(Tensor, int)>("aten::softmax", x, 1), at::softmax(x, 1)));
  CHECK_THAT(world.fails<Tensor(Tensor)>("aten::sofmax", x).what(),
             Contains("did you mean 'aten::softmax'"));
}

TORCH_LIBRARY(batchrpc_test, library) {
  library.def("times(Tensor x, int factor=2) -> Tensor",
              [](const Tensor& x, std::int64_t factor) { return x * factor; });
}

TEST_CASE("operators of a program's own library are exposed by their names", "[operators]") {
  Operators world({"batchrpc_test::times"});
  const Tensor x = at::ones({2});
  CHECK(identical(world.call<Tensor(Tensor)>("batchrpc_test::times", x), x * 2));
  CHECK(identical(world.call<Tensor(Tensor, int)>("batchrpc_test::times", x, 3), x * 3));
}

TEST_CASE("operators run without autograd, and change nothing but their own arguments",
          "[operators]") {
  Operators world({"aten::mul", "aten::add_"});
  const Tensor parameter = at::ones({2}).set_requires_grad(true);
  CHECK_FALSE(
      world.call<Tensor(Tensor, Tensor)>("aten::mul", parameter, parameter).requires_grad());
  CHECK(identical(world.call<Tensor(Tensor, int)>("aten::add_", parameter, 1), at::full({2}, 2.F)));
  CHECK(identical(parameter.detach(), at::ones({2})));
}

TEST_CASE("operators that peers call are seen by whoever records operators", "[operators]") {
  class Sink final : public detail::OperatorSink {
   public:
    void add(OperatorRecord&& record) noexcept override { names.push_back(record.name); }
    TimePoint now() const noexcept override { return {}; }
    std::vector<std::string> names;
  };
  Operators world({"aten::relu"});
  const Tensor x = at::ones({2});
  Sink sink;
  (void)torch_operators()->exchange_sink(&sink);
  (void)world.call<Tensor(Tensor)>("aten::relu", x);
  (void)torch_operators()->exchange_sink(nullptr);
  CHECK(std::find(sink.names.begin(), sink.names.end(), "aten::relu") != sink.names.end());
}

TEST_CASE("what a call of an operator costs", "[.][benchmark][operators]") {
  Operators world({"aten::add"});
  const Tensor x = at::ones({2, 2});
  world.b.expose("typed", [](const Tensor& a, const Tensor& b) { return a + b; });
  const auto measure = [&](const char* what, const char* name) {
    constexpr int kCalls = 20'000;
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kCalls; ++i)
        (void)world.call<Tensor(Tensor, Tensor)>(name, x, x);
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      best = std::min(best, took.count() / kCalls);
    }
    WARN(what << ": " << best << " us a call in the simulated world");
  };
  measure("a function of the program's that adds", "typed");
  measure("aten::add", "aten::add");
  test::NodePair other;
  const auto begin = std::chrono::steady_clock::now();
  expose_all_operators(other.b);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  WARN("to expose all " << exposed_functions(other.b).size() << ": " << took.count() << " ms");
}

}  // namespace operators_test
}  // namespace batchrpc
