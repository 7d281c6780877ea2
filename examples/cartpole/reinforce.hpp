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

/// The policy of the batch RPC tutorial: Linear(4, 128), dropout, ReLU, Linear(128, 2), and a
/// softmax over the actions, which is left to the caller.
class PolicyImpl : public torch::nn::Module {
 public:
  static constexpr int kInputs = 4;
  static constexpr int kHidden = 128;
  static constexpr int kActions = 2;

  /// Draws the weights as `torch::nn::Linear` does, but from a generator of its own.
  explicit PolicyImpl(std::uint64_t seed);

  /// states [B, 4] to logits [B, 2]. `dropout_mask` [B, 128] multiplies the hidden layer: 0 where a
  /// unit is dropped, 1 / (1 - p) where it is kept; an undefined tensor drops nothing.
  at::Tensor forward(const at::Tensor& states, const at::Tensor& dropout_mask = {});

  torch::nn::Linear hidden{nullptr};
  torch::nn::Linear output{nullptr};
};
TORCH_MODULE(Policy);

struct ReinforceOptions {
  int observers = 1;
  int steps = 500;  ///< of each observer in an episode of the agent's, at most
  double learning_rate = 1e-2;
  double dropout = 0;             ///< the tutorial's is 0.6; in [0, 1)
  bool normalize_returns = true;  ///< over all steps of all observers, to mean 0 and deviation 1
  std::uint64_t seed = 543;
};

/// What the agent keeps of an observer's episode, in the order of its n rows.
struct StoredRows {
  at::Tensor states;         ///< float [n, 4]
  at::Tensor actions;        ///< int64 [n]
  at::Tensor dropout_masks;  ///< float [n, 128]; undefined without dropout
};

/// REINFORCE (Williams 1992) as in the batch RPC tutorial: actions are sampled during an episode,
/// and one step of Adam at its end minimises
///
///     loss = -Σ log π(action | state) · return ÷ observers.
///
/// The tutorial keeps the autograd graph of every one of an episode's inferences. Here sampling
/// keeps no graph: states, actions and dropout masks are stored, and `update()` runs one forward
/// pass over all of them. The loss and its gradient are the same, because the weights do not change
/// between the two, every row of a batch is computed independently of the others, and the masks are
/// those that were sampled with. What differs is the time: one graph of [observers × steps] rows
/// instead of `steps` small ones.
///
/// Each observer has its own random stream and its own place in the stored episode, so results
/// depend neither on how rows are spread over batches nor on their order in one, up to the rounding
/// of a matrix product. With the same seed and one observer they repeat bit for bit, and with more
/// observers too when every batch holds all of them and rollouts come in one order, whatever the
/// order of the rows (both with `use_one_torch_thread()`).
///
/// One thread at a time; a batcher's handler is called so. Everything on the CPU.
class ReinforceAgent {
 public:
  /// Throws `std::invalid_argument` for options out of range.
  explicit ReinforceAgent(const ReinforceOptions& options);

  /// Samples an action for every row and keeps what `update()` needs. Rows come from any of the
  /// observers, in any order. Throws `std::invalid_argument` for an unknown observer and
  /// `std::length_error` for more rows of one than `steps`; no row is then taken.
  std::vector<std::int32_t> select_actions(std::span<const StateRow> rows);

  /// The same for tensors: states float [B, 4] and their B observers to actions int64 [B].
  at::Tensor select_actions(const at::Tensor& states, std::span<const std::int64_t> observers);

  /// Forgets the rows of the episode under way. To be called before an episode.
  void begin_episode();

  /// Learns from an episode and begins the next. Rows of observers that did not report, having
  /// died, are left out; without any rollout nothing is learnt. Gives the loss. Throws
  /// `std::invalid_argument` when a rollout has not one return for each of its observer's rows.
  double update(const std::vector<Rollout>& rollouts);

  /// What `update()` minimises, with its graph; a scalar.
  at::Tensor loss(const std::vector<Rollout>& rollouts);

  [[nodiscard]] Policy& policy() { return policy_; }
  [[nodiscard]] const ReinforceOptions& options() const { return options_; }

  /// The rows of an observer in the episode under way: views, for as long as it lasts.
  /// Throws `std::invalid_argument` for an unknown observer.
  [[nodiscard]] StoredRows rows_of(std::int64_t observer) const;

 private:
  struct BatchRow {
    std::int64_t observer;
    const float* state;  // the caller's
    std::int64_t action;
  };

  void sample();
  at::Tensor draw_masks();
  void choose_and_store(const at::Tensor& all_logits, const at::Tensor& masks);

  ReinforceOptions options_;
  Policy policy_;
  torch::optim::Adam optimizer_;
  std::vector<std::mt19937_64> random_;  // one an observer

  // The episode: [observers, steps, …], of which the first rows_[i] of observer i are filled.
  at::Tensor states_;
  at::Tensor actions_;
  at::Tensor masks_;  // undefined without dropout
  std::vector<int> rows_;

  // The batch under way as it came, and the same by observer.
  std::vector<BatchRow> batch_;
  std::vector<BatchRow*> sorted_;
};

}  // namespace batchrpc_examples
