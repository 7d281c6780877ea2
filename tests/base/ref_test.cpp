#include "batchrpc/base/ref.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <utility>
#include <vector>

namespace batchrpc::detail {
namespace ref_test {

struct Counted final : RefCounted<Counted> {
  explicit Counted(int& how_many) : alive(how_many) { ++alive; }
  ~Counted() { --alive; }
  int& alive;
};

TEST_CASE("an object that counts its references lives as long as the last of them") {
  int alive = 0;
  Ref<Counted> first(new Counted(alive));
  Ref<Counted> second = first;
  CHECK(first == second);
  Ref<Counted> moved = std::move(first);
  CHECK_FALSE(first);  // NOLINT: moved from
  moved = nullptr;
  CHECK(alive == 1);
  second = nullptr;
  CHECK(alive == 0);
}

TEST_CASE("a reference is assigned to itself, shared anew, and given away without being counted") {
  int alive = 0;
  Ref<Counted> ref(new Counted(alive));
  const Ref<Counted>& same = ref;
  ref = same;
  CHECK(alive == 1);
  Ref<const Counted> unchanging = ref;
  ref = nullptr;
  CHECK(alive == 1);
  const Counted* const raw = unchanging.release();
  CHECK(alive == 1);
  CHECK_FALSE(unchanging);
  { const Ref<const Counted> taken_over(raw); }
  CHECK(alive == 0);
}

TEST_CASE(
    "of threads that share an object the last to let go destroys it, and sees what the rest did",
    "[threads]") {
  struct Shared final : RefCounted<Shared> {
    explicit Shared(std::atomic<int>& destroyed) : count(destroyed) {}
    ~Shared() { count += written[0] + written[1]; }
    std::atomic<int>& count;
    int written[2] = {0, 0};  // each by one thread, and read by the last
  };
  std::atomic<int> written{0};
  constexpr int kObjects = 2000;
  std::vector<Ref<Shared>> mine;
  for (int i = 0; i < kObjects; ++i)
    mine.emplace_back(new Shared(written));
  std::vector<Ref<Shared>> others = mine;
  const auto use = [](std::vector<Ref<Shared>> objects, int number) {
    for (Ref<Shared>& object : objects) {
      object->written[number] = 1;
      object = nullptr;
    }
  };
  std::thread other(use, std::move(others), 1);
  use(std::move(mine), 0);
  other.join();
  CHECK(written == 2 * kObjects);
}

}  // namespace ref_test
}  // namespace batchrpc::detail
