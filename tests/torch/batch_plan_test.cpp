#include "torch/batch_plan.hpp"

#include <catch2/catch.hpp>
#include <numeric>

namespace batchrpc::detail {
namespace batch_plan_test {

using Plan = std::vector<std::size_t>;

TEST_CASE("rows run in the batches that waste least", "[policy]") {
  const Plan sizes{1, 4, 16, 64};
  CHECK(plan_batches(1, sizes) == Plan{1});
  CHECK(plan_batches(2, sizes) == Plan{4});  // rather than two of 1
  CHECK(plan_batches(3, sizes) == Plan{4});
  CHECK(plan_batches(4, sizes) == Plan{4});
  CHECK(plan_batches(5, sizes) == Plan{4, 1});
  CHECK(plan_batches(12, sizes) == Plan{16});
  CHECK(plan_batches(40, sizes) == Plan{16, 16, 4, 4});
  CHECK(plan_batches(60, sizes) == Plan{64});
  CHECK(plan_batches(64, sizes) == Plan{64});
  CHECK(plan_batches(130, sizes) == Plan{64, 64, 4});
}

TEST_CASE("rows of a policy of one size are padded to it", "[policy]") {
  CHECK(plan_batches(1, {16}) == Plan{16});
  CHECK(plan_batches(17, {16}) == Plan{16, 16});
}

TEST_CASE("a plan has room for all rows, and none that is not needed", "[policy]") {
  const std::vector<Plan> all{{1, 4, 16}, {3}, {2, 5, 7, 11}};
  for (const Plan& sizes : all) {
    for (std::size_t rows = 1; rows < 200; ++rows) {
      const Plan plan = plan_batches(rows, sizes);
      const std::size_t room = std::accumulate(plan.begin(), plan.end(), std::size_t{0});
      CHECK(room >= rows);
      CHECK(room - rows < plan.back());
    }
  }
}

}  // namespace batch_plan_test
}  // namespace batchrpc::detail
