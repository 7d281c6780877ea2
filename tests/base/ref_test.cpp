#include "batchrpc/base/ref.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace batchrpc::detail {
namespace {

struct Counted final : RefCounted<Counted> {
  explicit Counted(int& how_many) : alive(how_many) { ++alive; }
  ~Counted() { --alive; }
  int& alive;
};

}  // namespace

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

TEST_CASE("threads that share an object destroy it once") {
  int alive = 0;
  {
    const Ref<Counted> shared(new Counted(alive));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([mine = shared] {
        for (int round = 0; round < 1000; ++round) {
          const Ref<Counted> copy = mine;
          if (copy.get() == nullptr) std::abort();
        }
      });
    }
    for (std::thread& thread : threads)
      thread.join();
  }
  CHECK(alive == 0);
}

}  // namespace batchrpc::detail
