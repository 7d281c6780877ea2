#include "batchrpc/base/function.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

using batchrpc::Task;
using batchrpc::UniqueFunction;

namespace {

int twice(int value) { return 2 * value; }

/// Counts how many of it live.
template <std::size_t Size, bool NoexceptMove>
struct Counted {
  explicit Counted(int* count) : living(count) { ++*living; }
  Counted(Counted&& other) noexcept(NoexceptMove) : living(other.living), calls(other.calls) {
    ++*living;
  }
  ~Counted() { --*living; }
  int operator()() { return ++calls; }

  int* living;
  int calls = 0;
  std::array<char, Size> room{};
};

}  // namespace

TEST_CASE("A function is empty, or calls what it was made of") {
  UniqueFunction<int(int)> function;
  CHECK_FALSE(function);
  function = twice;
  CHECK(function);
  CHECK(function(3) == 6);
  function = [n = std::make_unique<int>(4)](int value) { return *n + value; };
  CHECK(function(3) == 7);
  function = nullptr;
  CHECK_FALSE(function);
}

TEST_CASE("A null function pointer makes an empty function") {
  int (*const none)(int) = nullptr;
  CHECK_FALSE(UniqueFunction<int(int)>(none));
}

TEST_CASE("Arguments are passed on as they are, and results converted") {
  UniqueFunction<std::string(std::unique_ptr<int>, int&)> function = [](std::unique_ptr<int> moved,
                                                                        int& changed) {
    changed = *moved;
    return "text";
  };
  int changed = 0;
  CHECK(function(std::make_unique<int>(5), changed) == "text");
  CHECK(changed == 5);
  UniqueFunction<void(int)> discards = twice;
  discards(1);
  int kept = 0;
  UniqueFunction<int&()> reference = [&]() -> int& { return kept; };
  reference() = 3;
  CHECK(kept == 3);
}

TEMPLATE_TEST_CASE("Small, large and throwing-move callables are moved and destroyed once", "",
                   (Counted<8, true>), (Counted<100, true>), (Counted<8, false>)) {
  int living = 0;
  {
    UniqueFunction<int()> function = TestType(&living);
    CHECK(living == 1);
    CHECK(function() == 1);
    UniqueFunction<int()> moved = std::move(function);
    CHECK_FALSE(function);  // NOLINT: what is left is what is tested
    CHECK(moved() == 2);    // the state came along
    CHECK(living == 1);
    auto& self = moved;
    moved = std::move(self);
    CHECK(moved() == 3);
    moved = TestType(&living);
    CHECK(moved() == 1);
    CHECK(living == 1);
    std::swap(function, moved);
    CHECK(function() == 2);
    CHECK_FALSE(moved);
  }
  CHECK(living == 0);
}

TEST_CASE("A function cannot be copied, and is no larger than 64 bytes") {
  CHECK_FALSE(std::is_copy_constructible_v<Task>);
  CHECK(std::is_nothrow_move_constructible_v<Task>);
  CHECK(sizeof(Task) <= 64);
}

TEST_CASE("An exception leaves a function that throws") {
  Task task = [] { throw 42; };
  CHECK_THROWS_AS(task(), int);
  CHECK(task);
}

namespace {

struct OnlyDirectly {
  explicit OnlyDirectly(int number) : value(number) {}
  explicit OnlyDirectly(const OnlyDirectly&) = default;
  explicit OnlyDirectly(OnlyDirectly&&) = default;
  int operator()() const { return value; }
  int value;
  char more[100]{};
};

}  // namespace

TEST_CASE("Large callables need not be movable implicitly") {
  OnlyDirectly callable(7);
  UniqueFunction<int()> function(std::move(callable));
  CHECK(function() == 7);
}
