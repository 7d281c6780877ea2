#pragma once

#include <cstddef>
#include <vector>

namespace batchrpc::detail {

/// Splits `rows` rows into batches of the sizes that a policy is compiled for (ascending, each at
/// least 1), largest first. The last batch may have unused rows. Chooses the cheapest plan: a batch
/// costs its size plus two rows. Among equal plans it chooses the one with the fewest batches. The
/// result depends on nothing else, so a run can be repeated exactly.
[[nodiscard]] std::vector<std::size_t> plan_batches(std::size_t rows,
                                                    const std::vector<std::size_t>& sizes);

}  // namespace batchrpc::detail
