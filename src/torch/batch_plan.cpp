#include "torch/batch_plan.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace batchrpc::detail {
namespace {

constexpr std::size_t kBatchCost =
    2;  // the fixed cost of a batch, in rows: measured, docs/compiled-policies.md

/// The best plan for some number of rows.
struct Best {
  std::size_t cost = 0;
  std::size_t batches = 0;
  std::size_t first = 0;  // the size of its first batch

  [[nodiscard]] std::pair<std::size_t, std::size_t> rank() const { return {cost, batches}; }
};

}  // namespace

std::vector<std::size_t> plan_batches(std::size_t rows, const std::vector<std::size_t>& sizes) {
  const std::size_t largest = sizes.back();
  std::vector<std::size_t> plan(rows / largest, largest);
  const std::size_t rest = rows % largest;
  std::vector<Best> best(rest + 1);
  for (std::size_t count = 1; count <= rest; ++count) {
    for (const std::size_t size : sizes) {
      const Best& behind = best[count - std::min(count, size)];
      const Best option{behind.cost + size + kBatchCost, behind.batches + 1, size};
      if (best[count].batches == 0 || option.rank() < best[count].rank()) best[count] = option;
    }
  }
  const std::size_t whole = plan.size();
  for (std::size_t left = rest; left > 0; left -= std::min(left, plan.back()))
    plan.push_back(best[left].first);
  std::sort(plan.begin() + static_cast<std::ptrdiff_t>(whole), plan.end(), std::greater<>());
  return plan;
}

}  // namespace batchrpc::detail
