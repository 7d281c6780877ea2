#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/adam.h>

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "cartpole_observer/returns.hpp"
#include "cartpole_observer/state_row.hpp"

namespace batchrpc_examples {

/// The policy of the batch RPC tutorial: Linear(4, 128), dropout, ReLU, Linear(128, 2). The caller
/// applies the softmax over the actions.
class PolicyImpl : public torch::nn::Module {
 public:
  static constexpr int kInputs = 4;
  static constexpr int kHidden = 128;
  static constexpr int kActions = 2;

  /// Draws the weights as `torch::nn::Linear` does, but from its own generator.
  explicit PolicyImpl(std::uint64_t seed);

  /// Maps states [B, 4] to logits [B, 2]. `dropout_mask` [B, 128] multiplies the hidden layer: 0
  /// for a dropped unit, 1 / (1 - p) for a kept one. An undefined mask drops nothing.
  at::Tensor forward(const at::Tensor& states, const at::Tensor& dropout_mask = {});

  torch::nn::Linear hidden{nullptr};
  torch::nn::Linear output{nullptr};
};
TORCH_MODULE(Policy);

struct ReinforceOptions {
  int observers = 1;
  int steps = 500;  ///< limit of each observer's steps per episode of the agent
  double learning_rate = 1e-2;
  double dropout = 0;             ///< 0.6 in the tutorial; in [0, 1)
  bool normalize_returns = true;  ///< to mean 0 and deviation 1 over all steps of all observers
  std::uint64_t seed = 543;
};

/// The rows that the agent keeps of an observer's episode, in order.
struct StoredRows {
  at::Tensor states;         ///< float [n, 4]
  at::Tensor actions;        ///< int64 [n]
  at::Tensor dropout_masks;  ///< float [n, 128]; undefined without dropout
};

/// REINFORCE (Williams 1992) as in the batch RPC tutorial. Actions are sampled during an episode,
/// and one step of Adam at its end minimises
///
///     loss = -Σ log π(action | state) · return ÷ observers.
///
/// The tutorial keeps the autograd graph of every inference of an episode. Here sampling keeps no
/// graph: states, actions and dropout masks are stored, and `update()` runs one forward pass over
/// all of them. The loss and its gradient are the same: the weights do not change in between, every
/// row of a batch is computed independently, and the masks are those of the sampling. Only the time
/// differs: one graph of [observers × steps] rows replaces `steps` small ones.
///
/// Each observer has its own random stream and its own place in the stored episode. So results do
/// not depend on how rows are distributed over batches or ordered in them, up to the rounding of a
/// matrix product. With the same seed and one observer they repeat bit for bit. With more observers
/// they also do if every batch holds all of them and rollouts come in one order, whatever the order
/// of the rows. Both need `use_one_torch_thread()`.
///
/// Only one thread at a time may use it, as a batcher's handler is called. Everything is on the
/// CPU.
class ReinforceAgent {
 public:
  /// Throws `std::invalid_argument` for options out of range.
  explicit ReinforceAgent(const ReinforceOptions& options);

  /// Samples an action for every row and keeps what `update()` needs. Rows may come from any of the
  /// observers, in any order. Throws `std::invalid_argument` for an unknown observer and
  /// `std::length_error` if an observer sends more than `steps` rows; it then takes no row.
  std::vector<std::int32_t> select_actions(std::span<const StateRow> rows);

  /// The same for tensors: maps float states [B, 4] of B observers to int64 actions [B].
  at::Tensor select_actions(const at::Tensor& states, std::span<const std::int64_t> observers);

  /// Drops the rows of the current episode. Call it before each episode.
  void begin_episode();

  /// Learns from an episode, begins the next, and returns the loss. Rows of observers that did not
  /// report are left out; without any rollout nothing is learnt. Throws `std::invalid_argument` if
  /// a rollout does not have one return for each of its observer's rows.
  double update(const std::vector<Rollout>& rollouts);

  /// The loss that `update()` minimises, with its graph; a scalar.
  at::Tensor loss(const std::vector<Rollout>& rollouts);

  [[nodiscard]] Policy& policy() { return policy_; }
  [[nodiscard]] const ReinforceOptions& options() const { return options_; }

  /// The rows of an observer in the current episode: views that are valid during the episode.
  /// Throws `std::invalid_argument` for an unknown observer.
  [[nodiscard]] StoredRows rows_of(std::int64_t observer) const;

 private:
  struct BatchRow {
    std::int64_t observer;
    const float* state;  // owned by the caller
    std::int64_t action;
  };

  void sample();
  at::Tensor draw_masks();
  void choose_and_store(const at::Tensor& all_logits, const at::Tensor& masks);

  ReinforceOptions options_;
  Policy policy_;
  torch::optim::Adam optimizer_;
  std::vector<std::mt19937_64> random_;  // one for each observer

  // The episode [observers, steps, …]; the first rows_[i] steps of observer i are filled.
  at::Tensor states_;
  at::Tensor actions_;
  at::Tensor masks_;  // undefined without dropout
  std::vector<int> rows_;

  // The current batch in order of arrival, and sorted by observer.
  std::vector<BatchRow> batch_;
  std::vector<BatchRow*> sorted_;
};

}  // namespace batchrpc_examples
