#include "cartpole/reinforce.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace batchrpc_examples {

namespace {

constexpr std::int64_t kInputs = PolicyImpl::kInputs;
constexpr std::int64_t kHidden = PolicyImpl::kHidden;
constexpr std::int64_t kActions = PolicyImpl::kActions;

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

const ReinforceOptions& checked(const ReinforceOptions& options) {
  require(options.observers >= 1, "REINFORCE needs at least one observer");
  require(options.steps >= 1, "REINFORCE needs at least one step per episode");
  require(options.learning_rate > 0, "the learning rate must be above 0");
  require(options.dropout >= 0 && options.dropout < 1, "the dropout must be in [0, 1)");
  return options;
}

void check_observer(std::int64_t observer, const ReinforceOptions& options) {
  if (observer < 0 || observer >= options.observers) {
    throw std::invalid_argument("there is no observer " + std::to_string(observer) +
                                "; observers are 0 to " + std::to_string(options.observers - 1));
  }
}

// A number in [0, 1) with 53 random bits.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1.0p-53; }

}  // namespace

PolicyImpl::PolicyImpl(std::uint64_t seed) {
  hidden = register_module("hidden", torch::nn::Linear(kInputs, kHidden));
  output = register_module("output", torch::nn::Linear(kHidden, kActions));
  const at::NoGradGuard no_grad;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (torch::nn::Linear& layer : {std::ref(hidden), std::ref(output)}) {
    const double bound = 1 / std::sqrt(static_cast<double>(layer->weight.size(1)));
    layer->weight.uniform_(-bound, bound, generator);
    layer->bias.uniform_(-bound, bound, generator);
  }
}

at::Tensor PolicyImpl::forward(const at::Tensor& states, const at::Tensor& dropout_mask) {
  at::Tensor units = hidden->forward(states);
  if (dropout_mask.defined()) units = units * dropout_mask;
  return output->forward(at::relu(units));
}

ReinforceAgent::ReinforceAgent(const ReinforceOptions& options)
    : options_(checked(options)),
      policy_(options.seed),
      optimizer_(policy_->parameters(), torch::optim::AdamOptions(options.learning_rate)),
      rows_(static_cast<std::size_t>(options.observers), 0) {
  for (int observer = 0; observer < options.observers; ++observer) {
    std::seed_seq sequence{static_cast<std::uint32_t>(options.seed),
                           static_cast<std::uint32_t>(options.seed >> 32),
                           static_cast<std::uint32_t>(observer)};
    random_.emplace_back(sequence);
  }

  states_ = at::empty({options.observers, options.steps, kInputs}, at::kFloat);
  actions_ = at::empty({options.observers, options.steps}, at::kLong);
  if (options.dropout > 0) {
    masks_ = at::empty({options.observers, options.steps, kHidden}, at::kFloat);
  }
}

std::vector<std::int32_t> ReinforceAgent::select_actions(std::span<const StateRow> rows) {
  batch_.clear();
  for (const StateRow& row : rows)
    batch_.push_back({row.observer, row.state.data(), 0});
  sample();
  std::vector<std::int32_t> actions;
  actions.reserve(rows.size());
  for (const BatchRow& row : batch_)
    actions.push_back(static_cast<std::int32_t>(row.action));
  return actions;
}

at::Tensor ReinforceAgent::select_actions(const at::Tensor& states,
                                          std::span<const std::int64_t> observers) {
  const auto size = static_cast<std::int64_t>(observers.size());
  require(states.dim() == 2 && states.size(0) == size && states.size(1) == kInputs,
          "the states must be [B, 4], with one observer for each");
  require(states.is_cpu() && states.scalar_type() == at::kFloat,
          "the states must be single precision numbers on the CPU");
  const at::Tensor contiguous = states.contiguous();
  batch_.clear();
  for (std::int64_t i = 0; i < size; ++i) {
    batch_.push_back(
        {observers[static_cast<std::size_t>(i)], contiguous.data_ptr<float>() + i * kInputs, 0});
  }
  sample();
  at::Tensor actions = at::empty({size}, at::kLong);
  std::transform(batch_.begin(), batch_.end(), actions.data_ptr<std::int64_t>(),
                 [](const BatchRow& row) { return row.action; });
  return actions;
}

void ReinforceAgent::sample() {
  if (batch_.empty()) return;
  std::vector<int> rows = rows_;
  for (const BatchRow& row : batch_) {
    check_observer(row.observer, options_);
    if (++rows[static_cast<std::size_t>(row.observer)] > options_.steps) {
      throw std::length_error("observer " + std::to_string(row.observer) + " sent more than " +
                              std::to_string(options_.steps) + " states in an episode");
    }
  }

  // Sorts by observer, because the rounding of a row may depend on its position.
  sorted_.clear();
  for (BatchRow& row : batch_)
    sorted_.push_back(&row);
  std::stable_sort(sorted_.begin(), sorted_.end(),
                   [](const BatchRow* a, const BatchRow* b) { return a->observer < b->observer; });

  const c10::InferenceMode inference;
  const at::Tensor states =
      at::empty({static_cast<std::int64_t>(sorted_.size()), kInputs}, at::kFloat);
  auto* gathered = states.data_ptr<float>();
  for (const BatchRow* row : sorted_)
    gathered = std::copy_n(row->state, kInputs, gathered);
  const at::Tensor masks = masks_.defined() ? draw_masks() : at::Tensor();
  choose_and_store(policy_->forward(states, masks), masks);
}

at::Tensor ReinforceAgent::draw_masks() {
  at::Tensor masks = at::empty({static_cast<std::int64_t>(sorted_.size()), kHidden}, at::kFloat);
  const auto kept = static_cast<float>(1 / (1 - options_.dropout));
  auto* mask = masks.data_ptr<float>();
  for (const BatchRow* row : sorted_) {
    std::mt19937_64& random = random_[static_cast<std::size_t>(row->observer)];
    mask = std::generate_n(mask, kHidden,
                           [&] { return uniform(random) < options_.dropout ? 0.0F : kept; });
  }
  return masks;
}

void ReinforceAgent::choose_and_store(const at::Tensor& all_logits, const at::Tensor& masks) {
  const auto* logits = all_logits.data_ptr<float>();
  const auto* mask = masks.defined() ? masks.data_ptr<float>() : nullptr;
  for (BatchRow* row : sorted_) {
    const auto observer = static_cast<std::size_t>(row->observer);
    // The softmax of two logits is the logistic function of their difference.
    const double right = 1 / (1 + std::exp(double{logits[0]} - double{logits[1]}));
    row->action = uniform(random_[observer]) < right ? 1 : 0;
    logits += kActions;

    const std::int64_t place = row->observer * options_.steps + rows_[observer]++;
    std::copy_n(row->state, kInputs, states_.data_ptr<float>() + place * kInputs);
    actions_.data_ptr<std::int64_t>()[place] = row->action;
    if (mask != nullptr) {
      std::copy_n(mask, kHidden, masks_.data_ptr<float>() + place * kHidden);
      mask += kHidden;
    }
  }
}

void ReinforceAgent::begin_episode() { std::fill(rows_.begin(), rows_.end(), 0); }

StoredRows ReinforceAgent::rows_of(std::int64_t observer) const {
  check_observer(observer, options_);
  const std::int64_t rows = rows_[static_cast<std::size_t>(observer)];
  const auto filled = [&](const at::Tensor& all) {
    return all.defined() ? all.select(0, observer).narrow(0, 0, rows) : all;
  };
  return {filled(states_), filled(actions_), filled(masks_)};
}

at::Tensor ReinforceAgent::loss(const std::vector<Rollout>& rollouts) {
  require(!rollouts.empty(), "no observer reported");
  std::vector<at::Tensor> states;
  std::vector<at::Tensor> actions;
  std::vector<at::Tensor> masks;
  std::vector<float> returns;
  for (const Rollout& rollout : rollouts) {
    const StoredRows rows = rows_of(rollout.observer);
    if (rows.actions.size(0) != static_cast<std::int64_t>(rollout.returns.size())) {
      throw std::invalid_argument("observer " + std::to_string(rollout.observer) + " sent " +
                                  std::to_string(rows.actions.size(0)) + " states and reported " +
                                  std::to_string(rollout.returns.size()) + " returns");
    }
    states.push_back(rows.states);
    actions.push_back(rows.actions);
    if (rows.dropout_masks.defined()) masks.push_back(rows.dropout_masks);
    returns.insert(returns.end(), rollout.returns.begin(), rollout.returns.end());
  }

  at::Tensor weights = at::tensor(returns, at::kFloat);
  if (options_.normalize_returns) {
    weights = weights - weights.mean();
    if (weights.numel() > 1) {
      weights = weights / (weights.std() + std::numeric_limits<float>::epsilon());
    }
  }
  const at::Tensor logits =
      policy_->forward(at::cat(states), masks.empty() ? at::Tensor() : at::cat(masks));
  const at::Tensor log_probabilities =
      at::log_softmax(logits, 1).gather(1, at::cat(actions).unsqueeze(1)).squeeze(1);
  return -(log_probabilities * weights).sum() / static_cast<double>(rollouts.size());
}

double ReinforceAgent::update(const std::vector<Rollout>& rollouts) {
  if (rollouts.empty()) {
    begin_episode();
    return 0;
  }
  const at::AutoGradMode with_grad(true);
  const at::Tensor value = loss(rollouts);
  optimizer_.zero_grad();
  value.backward();
  optimizer_.step();
  begin_episode();
  return value.item<double>();
}

}  // namespace batchrpc_examples
