#include "batchrpc/call/caller.hpp"

#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <variant>

#include "node/calling_pair.hpp"

namespace caller {

/// Long enough to be on the heap, where what is gone is noticed.
inline const std::string kName = "a name that is too long for the string object itself";
inline const std::vector<float> kNumbers = [] {
  std::vector<float> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return numbers;
}();

std::string_view name() { return kName; }
const char* c_name() { return kName.c_str(); }
std::span<const float> numbers(int count) {
  return std::span(kNumbers).first(static_cast<std::size_t>(count));
}
batchrpc::Future<std::string_view> later() { return batchrpc::make_ready_future(name()); }

/// Has a method that returns a view of the object.
struct Named {
  explicit Named(std::string text) : name(std::move(text)) {}
  [[nodiscard]] std::string_view view() const { return name; }
  std::string name;
};

struct WithView {
  int number = 0;
  std::string_view text{};
};
struct Tree {
  std::string text{};
  std::vector<Tree> children{};
};

/// Cannot be made of a negative int, nor be sent when it is 0.
struct Picky {
  Picky() = default;
  Picky(int n) : number(n) {  // NOLINT: implicit
    if (n < 0) throw std::runtime_error("negative");
  }
  int number = 0;
};
int use(const Picky& picky) { return picky.number; }

}  // namespace caller

template <>
struct batchrpc::Codec<caller::Picky> {
  using Wire = int;
  static int encode(const caller::Picky& picky) {
    if (picky.number == 0) throw std::runtime_error("zero");
    return picky.number;
  }
  static caller::Picky decode(int&& wire) { return {wire}; }
};

namespace batchrpc {
namespace caller_test {

using caller::Named;
using caller::WithView;
using test::CallingPair;
using test::outcome;

TEST_CASE("the caller of a function that returns a view gets a copy of its own") {
  const CallingPair pair;
  pair.b.expose<&caller::name>();
  pair.b.expose<&caller::c_name>();
  pair.b.expose<&caller::numbers>();
  pair.b.expose<&caller::later>();
  pair.b.expose("bytes", [] { return std::as_bytes(std::span(caller::kNumbers)); });
  pair.b.expose("mutable",
                [numbers = std::vector<int>{1, 2}]() mutable { return std::span<int>(numbers); });

  Future<std::string> name = pair.a.call<&caller::name>("b");
  Future<std::vector<float>> few = pair.a.call<&caller::numbers>("b", 3);
  CHECK(name.get() == caller::kName);
  CHECK(few.get() == std::vector<float>{0, 1, 2});
  CHECK(pair.a.call<&caller::numbers>("b", 1000).get() == caller::kNumbers);
  CHECK(pair.a.call<&caller::c_name>("b").get() == caller::kName);
  CHECK(pair.a.call<&caller::later>("b").get() == caller::kName);
  CHECK(pair.a.call<std::string_view()>("b", "caller::name").get() == caller::kName);
  CHECK(pair.a.call<std::string()>("b", "caller::name").get() == caller::kName);
  CHECK(pair.a.call<std::span<const std::byte>()>("b", "bytes").get().size() == 4000);
  CHECK(pair.a.call<std::span<int>()>("b", "mutable").get() == std::vector<int>{1, 2});
  for (const auto& future : pair.a.each(std::vector{"b", "b"}).call<&caller::name>()) {
    CHECK(future.get() == caller::kName);
  }
}

TEST_CASE("the caller of a method behind a remote reference gets a copy of a view as well") {
  const CallingPair pair;
  pair.b.expose_class<Named(std::string)>();
  pair.b.expose<&Named::view>();
  {
    const RRef<Named> named = pair.a.create<Named>("b", caller::kName);
    CHECK(named.call<&Named::view>().get() == caller::kName);
  }
  pair.world.run_for(std::chrono::seconds(1));
}

TEST_CASE("views inside of results are told from values") {
  using detail::holds_view;
  STATIC_REQUIRE(holds_view<std::string_view>());
  STATIC_REQUIRE(holds_view<std::optional<std::string_view>>());
  STATIC_REQUIRE(holds_view<std::pair<int, std::span<const int>>>());
  STATIC_REQUIRE(holds_view<std::map<int, std::vector<WithView>>>());
  STATIC_REQUIRE(holds_view<std::variant<int, WithView>>());
  STATIC_REQUIRE_FALSE(holds_view<void>());
  STATIC_REQUIRE_FALSE(holds_view<std::string>());
  STATIC_REQUIRE_FALSE(holds_view<std::vector<std::array<float, 3>>>());
  STATIC_REQUIRE_FALSE(holds_view<caller::Tree>());
  STATIC_REQUIRE_FALSE(holds_view<caller::Picky>());
}

TEST_CASE("an argument that cannot be converted or encoded fails the future, and notify throws") {
  const CallingPair pair;
  pair.b.expose<&caller::use>();
  for (const int bad : {-1, 0}) {
    const std::string why = bad < 0 ? "negative" : "zero";
    auto by_address = pair.a.call<&caller::use>("b", bad);
    auto by_name = pair.a.call<int(caller::Picky)>("b", "caller::use", bad);
    CHECK_THROWS_WITH(by_address.get(), why);
    CHECK_THROWS_WITH(by_name.get(), why);
    for (auto& future : pair.a.each(std::vector{"b", "b"}).call<&caller::use>(bad)) {
      CHECK_THROWS_WITH(future.get(), why);
    }
    CHECK_THROWS_WITH(pair.a.peer("b").notify<&caller::use>(bad), why);
  }
  CHECK(pair.a.call<&caller::use>("b", 5).get() == 5);
}

}  // namespace caller_test
}  // namespace batchrpc
