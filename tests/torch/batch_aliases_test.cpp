#include <chrono>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch/batch.hpp"
#include "node/virtual_world.hpp"
#include "torch/tensors.hpp"

// A batch is the handler's alone: what it does to it, nobody else sees.
namespace batchrpc {
namespace batch_aliases_test {

using namespace std::chrono_literals;

constexpr std::int64_t kLarge = 16 * 1024;  // floats: received where the batch is

struct Doubling {
  explicit Doubling(const BatchRules<at::Tensor>& rules = {})
      : batcher(
            {}, [](at::Tensor batch) { return batch.mul_(2); }, rules) {
    agent.expose("double", batcher);
  }
  test::VirtualWorld world;
  Node agent = world.root("agent");
  Node actor = world.join("actor");
  Batcher<at::Tensor(at::Tensor)> batcher;
};

TEST_CASE("many rows that their caller received and keeps are not the handler's to change",
          "[batch]") {
  for (const std::int64_t size : {std::int64_t{4}, kLarge}) {
    Doubling d;
    const at::Tensor states = torch_test::round_trip(at::ones({3, size}));
    auto result = d.batcher.many()(states);
    d.world.run_for(0s);
    CHECK(at::equal(result.get(), at::full({3, size}, 2.0)));
    CHECK(at::equal(states, at::ones({3, size})));

    at::Tensor kept;
    d.agent.expose("keep", [&](at::Tensor rows) {
      kept = rows;
      return d.batcher.many()(std::move(rows));
    });
    auto answer = d.actor.call<at::Tensor(at::Tensor)>("agent", "keep", at::ones({3, size}));
    CHECK(at::equal(answer.get(), at::full({3, size}, 2.0)));
    CHECK(at::equal(kept, at::ones({3, size})));
  }
}

TEST_CASE("a row that a rule keeps, or a view of it, is not the handler's to change", "[batch]") {
  for (const std::int64_t size : {std::int64_t{4}, kLarge}) {
    for (const bool view : {false, true}) {
      std::vector<at::Tensor> kept;
      Doubling d({.check = [&](const at::Tensor& row) {
        kept.push_back(view ? row.view({2, -1}) : row);
      }});
      auto answer = d.actor.call<at::Tensor(at::Tensor)>("agent", "double", at::ones({size}));
      CHECK(at::equal(answer.get(), at::full({size}, 2.0)));
      REQUIRE(kept.size() == 1);
      CHECK(at::equal(kept[0].flatten(), at::ones({size})));
    }
  }
}

TEST_CASE("a row whose result cannot be sent was not answered", "[batch]") {
  test::VirtualWorld world;
  const Node agent = world.root("agent");
  const Node actor = world.join("actor");
  const Batcher<at::Tensor(int)> batcher({}, [](const std::vector<int>& xs) {
    return std::vector<at::Tensor>(xs.size(), at::ones({2, 2}).to_sparse_csc());
  });
  agent.expose("sparse", batcher);
  auto answer = actor.call<at::Tensor(int)>("agent", "sparse", 1);
  world.run_for(1s);
  REQUIRE(answer.ready());
  CHECK_FALSE(std::move(answer).result());
  CHECK(batcher.statistics().answered == 0);
  CHECK(batcher.statistics().failed == 1);
}

}  // namespace batch_aliases_test
}  // namespace batchrpc
