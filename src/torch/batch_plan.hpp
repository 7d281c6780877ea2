#pragma once

#include <cstddef>
#include <vector>

namespace batchrpc::detail {

/// Batches of the sizes that a policy is compiled for (ascending, each at least 1) in which so many
/// rows run, largest first; the last may have room to spare. The cheapest, where a batch costs as
/// many rows as it has room for, and two more; of equal ones that of fewest batches. Depends on
/// nothing else, so that a run can be repeated exactly.
[[nodiscard]] std::vector<std::size_t> plan_batches(std::size_t rows,
                                                    const std::vector<std::size_t>& sizes);

}  // namespace batchrpc::detail
