#include "batchrpc/call/function_family.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <thread>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "call/function_table.hpp"
#include "node/metrics_of.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc {
namespace function_family_test {

using Catch::Matchers::Contains;
using test::outcome;
using Pair = test::NodePair;

/// Doubles numbers and texts.
class Twice final : public detail::FunctionFamily {
 public:
  explicit Twice(std::size_t most = 8) : FunctionFamily("twice", {.short_handler = true}, most) {}

  [[nodiscard]] std::string schema() const override { return "numbers and texts"; }
  [[nodiscard]] int made(std::string_view called_as) const {
    const std::lock_guard lock(mutex_);
    const auto at = made_.find(called_as);
    return at == made_.end() ? 0 : at->second;
  }

 private:
  std::shared_ptr<ExposedFunction> make(std::string_view called_as) const override {
    {
      const std::lock_guard lock(mutex_);
      ++made_[std::string(called_as)];
    }
    if (called_as == batchrpc::signature<int, int>()) return of([](int x) { return x + x; });
    if (called_as == batchrpc::signature<double, double>())
      return of([](double x) { return x + x; });
    if (called_as == batchrpc::signature<std::string, std::string>()) {
      return of([](const std::string& x) { return x + x; });
    }
    throw BadSignature("twice takes a number or a text, not " + std::string(called_as));
  }
  template <class F>
  std::shared_ptr<ExposedFunction> of(F f) const {
    return std::make_shared<detail::TypedFunction<F, detail::FunctionTraits<F>>>(name, f, options);
  }

  mutable std::mutex mutex_;
  mutable std::map<std::string, int, std::less<>> made_;
};

TEST_CASE("a family is called by one name and several signatures, each made once",
          "[function_family]") {
  Pair pair;
  const auto twice = std::make_shared<Twice>();
  detail::NodeAccess::expose(pair.b, twice);
  for (int i = 0; i < 3; ++i) {
    CHECK(pair.a.call<int(int)>("b", "twice", 4).get() == 8);
    CHECK(pair.a.call<std::string(std::string)>("b", "twice", "ab").get() == "abab");
  }
  CHECK(twice->made("i32(i32)") == 1);
  CHECK(twice->made("str(str)") == 1);
  CHECK(exposed_functions(pair.b) == std::vector<std::string>{"twice"});
  CHECK(function_schema(pair.b, "twice") == "numbers and texts");
  const NodeMetrics metrics = pair.b.metrics();
  const CallMetrics& answered = *test::answered_of(metrics, "twice");
  CHECK(answered.calls == 6);
  CHECK(answered.ok == 6);
}

TEST_CASE("a family refuses a signature in its own words, and goes on", "[function_family]") {
  Pair pair;
  detail::NodeAccess::expose(pair.b, std::make_shared<Twice>());
  try {
    (void)pair.a.call<int(bool)>("b", "twice", true).get();
    FAIL("nothing was thrown");
  } catch (const BadSignature& refused) {
    CHECK_FALSE(refused.may_have_run());
    CHECK_THAT(refused.what(), Contains("a number or a text, not i32(bool)"));
  }
  CHECK(pair.a.call<int(int)>("b", "twice", 4).get() == 8);
}

TEST_CASE("a family that is taken back is called no more, in whatever signature",
          "[function_family]") {
  Pair pair;
  const auto twice = std::make_shared<Twice>();
  detail::NodeAccess::expose(pair.b, twice);
  CHECK(pair.a.call<int(int)>("b", "twice", 4).get() == 8);
  CHECK(pair.b.unexpose("twice"));
  CHECK(outcome(pair.a.call<int(int)>("b", "twice", 4)).code() == ErrorCode::not_found);
  CHECK(outcome(pair.a.call<double(double)>("b", "twice", 4)).code() == ErrorCode::not_found);
  CHECK(twice->with_signature(batchrpc::signature<int, int>())->taken_back);
  CHECK(twice->with_signature(batchrpc::signature<double, double>())->taken_back);
}

TEST_CASE("a family keeps the signatures that were called last", "[function_family]") {
  const auto twice = std::make_shared<Twice>(2);
  const auto number = twice->with_signature("i32(i32)");
  const auto text = twice->with_signature("str(str)");
  CHECK(twice->with_signature("i32(i32)") == number);
  (void)twice->with_signature("f64(f64)");  // for the text
  CHECK(text->taken_back);                  // who has it asks again
  CHECK_FALSE(number->taken_back);
  CHECK(twice->with_signature("i32(i32)") == number);
  CHECK(twice->with_signature("str(str)") != text);
  CHECK(twice->made("str(str)") == 2);
  CHECK(twice->made("i32(i32)") == 1);
}

TEST_CASE("calls go on when a family forgets their signature between them", "[function_family]") {
  Pair pair;
  const auto twice = std::make_shared<Twice>(1);
  detail::NodeAccess::expose(pair.b, twice);
  for (int i = 1; i <= 3; ++i) {
    CHECK(pair.a.call<int(int)>("b", "twice", 4).get() == 8);
    CHECK(pair.a.call<double(double)>("b", "twice", 0.5).get() == 1);
    CHECK(twice->made("i32(i32)") == i);
  }
}

TEST_CASE("a family's signatures may be asked for on many threads", "[threads][function_family]") {
  const auto twice = std::make_shared<Twice>(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        for (const char* called_as : {"i32(i32)", "str(str)"}) {
          if (twice->with_signature(called_as)->signature != called_as) std::terminate();
        }
      }
    });
  }
  twice->take_back();
  for (std::thread& thread : threads)
    thread.join();
  CHECK(twice->with_signature("f64(f64)")->taken_back);
}

TEST_CASE("who calls a function like those of a family reads how it is exposed",
          "[function_family]") {
  static constexpr detail::FunctionKind kKind{
      .prefix = "op::",
      .hint = [](std::string_view shown) { return " (expose_op('" + std::string(shown) + "'))"; },
      .stem = [](std::string_view name) { return name.substr(0, name.find('.')); }};
  struct Operator final : detail::FunctionFamily {
    Operator() : FunctionFamily("op::add", {}) {}
    [[nodiscard]] const detail::FunctionKind* kind() const noexcept override { return &kKind; }
    [[nodiscard]] std::string schema() const override { return {}; }
    [[nodiscard]] std::shared_ptr<detail::ExposedFunction> make(
        std::string_view /*called_as*/) const override {
      return nullptr;
    }
  };
  FunctionTable table;
  const auto told = [&](std::string_view name) -> std::string {
    try {
      (void)table.resolve(name, "i32(i32)", "here", TimePoint());
    } catch (const NotFound& error) {
      return error.what();
    }
    return "it is there";
  };
  CHECK_THAT(told("op::multiply"), !Contains("expose_op"));
  table.add(std::make_shared<Operator>());
  CHECK_THAT(told("op::multiply"), Contains("no function 'op::multiply' is exposed on here") &&
                                       Contains("(expose_op('op::multiply'))"));
  CHECK_THAT(told("op::add.Tensor"), Contains("did you mean 'op::add'?"));
}

}  // namespace function_family_test
}  // namespace batchrpc
