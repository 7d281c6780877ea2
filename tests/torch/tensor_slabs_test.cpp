#include "torch/tensor_slabs.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

// The memory that rows of tensors are received into.
namespace batchrpc {
namespace tensor_slabs_test {

using detail::TensorSlab;
using detail::TensorSlabs;

constexpr std::size_t kRows = 16;
constexpr std::size_t kLimit = std::size_t{1} << 20;

TEST_CASE("slabs whose rows never made a batch make room for others", "[batch]") {
  const auto slabs = std::make_shared<TensorSlabs>();
  std::vector<TensorSlabs::Slot> refused;
  for (std::size_t i = 0; i < 4; ++i)  // each a quarter of what there may be
    refused.push_back(slabs->take({.row_bytes = 16 * 1024 - 64 * i}, kRows, kLimit));
  CHECK(slabs->take({.row_bytes = 8 * 1024}, kRows * 4, kLimit).slab->capacity == 1);
  refused.clear();
  const auto row = slabs->take({.row_bytes = 8 * 1024}, kRows * 4, kLimit);
  const auto next = slabs->take({.row_bytes = 8 * 1024}, kRows * 4, kLimit);
  CHECK(row.slab == next.slab);
  CHECK(next.index == row.index + 1);
}

TEST_CASE("rows that wait take no more memory than their limit, but for one row each", "[batch]") {
  std::mt19937 random(1);
  const auto below = [&random](std::size_t end) { return random() % end; };
  const auto slabs = std::make_shared<TensorSlabs>();
  std::vector<TensorSlabs::Slot> waiting;
  std::vector<std::shared_ptr<TensorSlab>> kept;  // by handlers
  bool is_bounded = true;
  bool is_inside = true;
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t event = below(10);
    if (event < 6) {
      const TensorSlab::Kind kind{.row_bytes = 64 * (1 + below(40) * below(40))};
      waiting.push_back(slabs->take(kind, kRows, kLimit));
    } else if (event < 8 && !waiting.empty()) {  // refused, or gone
      const std::size_t i = below(waiting.size());
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (!waiting.empty()) {  // all of a slab are a batch
      const auto slab = waiting[below(waiting.size())].slab;
      std::size_t first = kRows;
      std::size_t count = 0;
      std::erase_if(waiting, [&](const TensorSlabs::Slot& slot) {
        if (slot.slab != slab) return false;
        first = std::min(first, slot.index);
        ++count;
        return true;
      });
      slabs->batch_taken(*slab, first, count);
      kept.push_back(slab);
      if (kept.size() > 3) kept.erase(kept.begin());
    }
    std::map<const TensorSlab*, std::size_t> rows;
    for (const auto& slot : waiting)
      ++rows[slot.slab.get()];
    std::size_t bytes = 0;
    for (const auto& [slab, count] : rows)
      bytes += slab->capacity > 1 ? slab->bytes() : 0;
    is_bounded = is_bounded && bytes <= kLimit;
    for (const auto& slot : waiting)
      is_inside = is_inside && slot.index < slot.slab->capacity;
  }
  CHECK(is_bounded);
  CHECK(is_inside);
}

}  // namespace tensor_slabs_test
}  // namespace batchrpc
