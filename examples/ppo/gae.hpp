#pragma once

#include "ppo/sample.hpp"

namespace batchrpc_examples::ppo {

/// One number for each row of a sample; 0 if the row is not valid.
struct Advantages {
  at::Tensor advantages;  ///< float32 [T, N]
  at::Tensor returns;     ///< float32 [T, N]: advantages + values, the targets of the values
};

/// Generalized advantage estimation (Schulman et al. 2016):
///
///     δ_t = r_t + γ V(s_{t+1}) - V(s_t),   A_t = δ_t + γ λ A_{t+1}
///
/// After a termination V(s_{t+1}) is 0; after a truncation it is the value of the final
/// observation. In both cases A_{t+1} belongs to another episode and counts as 0. It also counts as
/// 0 before an invalid row, but V(s_{t+1}) is then used as usual. `next_values` [N] and
/// `final_values` [K] are the values of the sample's next_observations and final_observations.
/// Throws std::invalid_argument if a row that was truncated and not terminated is not in
/// `final_rows`.
Advantages advantages_of(const Sample& sample, const at::Tensor& next_values,
                         const at::Tensor& final_values, double gamma, double lambda);

}  // namespace batchrpc_examples::ppo
