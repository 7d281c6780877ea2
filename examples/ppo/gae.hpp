#pragma once

#include "ppo/sample.hpp"

namespace batchrpc_examples::ppo {

/// Of each row of a sample; 0 where it is not valid.
struct Advantages {
  at::Tensor advantages;  ///< float32 [T, N]
  at::Tensor returns;     ///< float32 [T, N]: advantages + values, what values are to become
};

/// Generalized advantage estimation (Schulman et al. 2016):
///
///     δ_t = r_t + γ V(s_{t+1}) - V(s_t),   A_t = δ_t + γ λ A_{t+1}
///
/// After a termination V(s_{t+1}) is 0, after a truncation it is the value of the final
/// observation, and in both cases A_{t+1}, of another episode, is 0. It is 0 also before a row that
/// is not valid, while V(s_{t+1}) is then as in every other row. `next_values` [N] and
/// `final_values` [K] are of the sample's observations of these names. Throws std::invalid_argument
/// when a row that was truncated and not terminated is not among `final_rows`.
Advantages advantages_of(const Sample& sample, const at::Tensor& next_values,
                         const at::Tensor& final_values, double gamma, double lambda);

}  // namespace batchrpc_examples::ppo
