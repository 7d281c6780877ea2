#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "rref/objects.hpp"

namespace batched {

/// Answers with the sum of a batch's rows, and what it began with.
class Summer {
 public:
  explicit Summer(int base) : base_(base) { ++alive; }
  Summer(const Summer&) = delete;
  Summer& operator=(const Summer&) = delete;
  ~Summer() { --alive; }

  batchrpc::Batcher<int(int)> add{{.max_size = 3, .max_wait = std::chrono::seconds(1)},
                                  [this](const std::vector<int>& rows) {
                                    base_ += std::accumulate(rows.begin(), rows.end(), 0);
                                    return std::vector<int>(rows.size(), base_);
                                  }};
  batchrpc::Batcher<std::size_t(batchrpc::Bytes)> measure{
      {.max_size = 2, .max_wait = std::chrono::seconds(1)},
      [](const std::vector<batchrpc::Bytes>& rows) {
        std::size_t all = 0;
        for (const auto& row : rows)
          all += row.size();
        return std::vector<std::size_t>(rows.size(), all);
      }};
  int base() { return base_; }

  static inline int alive = 0;

 private:
  int base_;
};

}  // namespace batched

namespace batchrpc {
namespace rref_batch_test {

using namespace std::chrono_literals;
using batched::Summer;
using test::ObjectWorld;
using test::outcome;

struct BatchWorld : ObjectWorld {
  BatchWorld() {
    Summer::alive = 0;
    owner.expose_class<Summer(int)>();
    owner.expose<&Summer::add>();
    owner.expose<&Summer::measure>();
    owner.expose<&Summer::base>();
  }
};

TEST_CASE("calls of an object's batcher by handles of several nodes become one batch") {
  const BatchWorld nodes;
  const auto summer = nodes.user.create<Summer>("owner", 10);
  const auto other = nodes.user.create<Summer>("owner", 1000);
  nodes.third.expose(
      "add", [](const RRef<Summer>& handle, int row) { return handle.call<&Summer::add>(row); });
  Future<int> third = nodes.user.call<int(RRef<Summer>, int)>("third", "add", summer, 1);
  Future<int> first = summer.call<&Summer::add>(2);
  Future<int> alone = other.call<&Summer::add>(7);
  CHECK(summer.call<&Summer::add>(3).get() == 16);
  CHECK(first.get() == 16);
  CHECK(third.get() == 16);
  CHECK(alone.get() == 1007);
  CHECK(summer.call<&Summer::base>().get() == 16);
}

TEST_CASE("a batcher's calls wait for their object, and the object for their answers") {
  const BatchWorld nodes;
  Future<int> sum;
  Future<std::size_t> size;
  {
    const auto summer = nodes.user.create<Summer>("owner", 10);
    sum = summer.call<&Summer::add>(2);
    size = summer.call<&Summer::measure>(Bytes::allocate(100'000));
  }
  CHECK(sum.get() == 12);
  CHECK(size.get() == 100'000);
  nodes.settle();
  CHECK(Summer::alive == 0);
}

TEST_CASE("large rows of an object's batcher come in as rows of any batcher do") {
  const BatchWorld nodes;
  const auto summer = nodes.user.create<Summer>("owner", 10);
  summer.ready().get();
  Future<std::size_t> first = summer.call<&Summer::measure>(Bytes::allocate(3'000'000));
  CHECK(summer.call<&Summer::measure>(Bytes::allocate(1'000'000)).get() == 4'000'000);
  CHECK(first.get() == 4'000'000);
}

TEST_CASE("a caller that dies in an object's batch does not take the object from the others") {
  const BatchWorld nodes;
  nodes.user.expose("give", [&nodes] { return nodes.user.create<Summer>("owner", 10); });
  auto summer = nodes.third.call<RRef<Summer>()>("user", "give").get();
  nodes.user.call<RRef<Summer>()>("user", "give").get().call<&Summer::add>(5);
  Future<int> sum = summer.call<&Summer::add>(2);
  nodes.world.run_for(100ms);
  nodes.world.kill("user");
  CHECK(sum.get() == 12);
  summer = {};
  nodes.world.run_for(10s);
  CHECK(Summer::alive == 0);
}

TEST_CASE("calls of the batcher of an object that cannot be made, or of another type, fail") {
  const BatchWorld nodes;
  const auto counter = nodes.user.create<objects::Counter>("owner", 1);
  nodes.third.expose("take",
                     [](const RRef<Summer>& handle) { return handle.call<&Summer::add>(1); });
  const auto wrong =
      outcome(nodes.user.call<int(RRef<objects::Counter>)>("third", "take", counter));
  CHECK(wrong.code() == ErrorCode::invalid_argument);
  const auto nowhere = nodes.user.create<Summer>("third", 1);
  CHECK(outcome(nowhere.call<&Summer::add>(1)).code() == ErrorCode::not_found);
}

TEST_CASE("a call of the batcher of an object of the owner's former life says that it is lost") {
  const BatchWorld nodes;
  const auto summer = nodes.user.create<Summer>("owner", 10);
  detail::ObjectId object = detail::RRefAccess::reference(summer).object();
  ++object.owner;
  const auto result = outcome(nodes.user.call<int(detail::ObjectId, int)>(
      "owner", "batchrpc.method:batched::Summer::add", object, 1));
  CHECK(result.code() == ErrorCode::owner_lost);
  CHECK_FALSE(test::may_have_run(result.error()));
}

TEST_CASE("notifications of an object's batcher are rows of its batches") {
  const BatchWorld nodes;
  const auto summer = nodes.user.create<Summer>("owner", 10);
  summer.notify<&Summer::add>(1);
  summer.notify<&Summer::add>(2);
  CHECK(summer.call<&Summer::add>(3).get() == 16);
}

TEST_CASE("a cancelled call of an object's batcher leaves its batch") {
  const BatchWorld nodes;
  const auto summer = nodes.user.create<Summer>("owner", 10);
  Future<int> taken_back = summer.call<&Summer::add>(100);
  Future<int> sum = summer.call<&Summer::add>(2);
  nodes.world.run_for(100ms);
  taken_back.cancel();
  CHECK(sum.get() == 12);
  CHECK(outcome(std::move(taken_back)).code() == ErrorCode::cancelled);
}

}  // namespace rref_batch_test
}  // namespace batchrpc
