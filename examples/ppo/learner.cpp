#include "ppo/learner.hpp"

#include <torch/serialize.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "ppo/gae.hpp"
#include "ppo/random.hpp"

namespace batchrpc_examples::ppo {
namespace {

constexpr std::int64_t kLargestBatch = 1024;  // for inference within an update

void require_finite(const at::Tensor& tensor, const std::string& what) {
  if (tensor.is_floating_point() && !at::isfinite(tensor).all().item<bool>()) {
    throw NotFinite(what + " are not finite: they contain NaN or infinity");
  }
}

double explained_variance(const Rows& rows) {
  const double of_returns = rows.returns.var(false).item<double>();
  if (of_returns == 0) return 0;
  return 1 - (rows.returns - rows.values).var(false).item<double>() / of_returns;
}

template <class T>
at::Tensor cat_of(const std::vector<Rows>& parts, T member) {
  std::vector<at::Tensor> tensors;
  for (const Rows& part : parts)
    tensors.push_back(part.*member);
  return tensors.size() == 1 ? tensors[0] : at::cat(tensors);
}

}  // namespace

Learner::Learner(std::shared_ptr<ActorCritic> network, const PpoSettings& settings,
                 std::int64_t total_steps, std::uint64_t seed)
    : network_(std::move(network)),
      parameters_(*network_),
      adam_(parameters_.values().numel()),
      settings_(settings),
      total_steps_(total_steps),
      seed_(seed) {}

double Learner::learning_rate() const {
  if (!settings_.anneal) return settings_.learning_rate;
  const double done = static_cast<double>(env_steps_) / static_cast<double>(total_steps_);
  return settings_.learning_rate * std::max(0.0, 1 - done);
}

at::Tensor Learner::values_of(const at::Tensor& observations) {
  const at::NoGradGuard no_grad;
  if (observations.size(0) == 0) return at::zeros({0});
  std::vector<at::Tensor> values;
  for (const at::Tensor& part : observations.split(kLargestBatch))
    values.push_back(evaluate(*network_, part).values);
  return at::cat(values);
}

Rows Learner::rows_of(const std::vector<Sample>& samples, UpdateReport& report) {
  std::vector<Rows> parts;
  for (const Sample& sample : samples) {
    const at::Tensor valid = sample.valid.flatten().nonzero().squeeze(1);
    if (valid.numel() == 0) continue;
    const bool all = valid.numel() == sample.valid.numel();
    const auto pick = [&](const at::Tensor& tensor) {
      const at::Tensor flat = tensor.flatten(0, 1);
      return all ? flat : flat.index_select(0, valid);
    };
    Rows rows{pick(sample.observations),
              pick(sample.actions),
              pick(sample.log_probs),
              pick(sample.values),
              {},
              {}};
    require_finite(rows.observations, "observations");
    const at::Tensor needed =
        sample.valid[-1].nonzero().squeeze(1);  // environments whose next value is needed
    require_finite(sample.next_observations.index_select(0, needed), "observations");
    require_finite(sample.final_observations, "observations");
    require_finite(rows.log_probs, "log-probabilities");
    require_finite(rows.values, "values");
    require_finite(pick(sample.rewards), "rewards");
    const Advantages advantages =
        advantages_of(sample, values_of(sample.next_observations),
                      values_of(sample.final_observations), settings_.gamma, settings_.gae_lambda);
    rows.advantages = pick(advantages.advantages);
    rows.returns = pick(advantages.returns);
    require_finite(rows.advantages, "advantages");
    report.version_lag += (version_ - pick(sample.versions))
                              .sum()
                              .item<double>();  // a sum for now, divided at the end
    parts.push_back(std::move(rows));
  }
  if (parts.empty()) return {};
  return {cat_of(parts, &Rows::observations), cat_of(parts, &Rows::actions),
          cat_of(parts, &Rows::log_probs),    cat_of(parts, &Rows::values),
          cat_of(parts, &Rows::advantages),   cat_of(parts, &Rows::returns)};
}

void Learner::step(const Rows& rows, UpdateReport& report) {
  const at::Tensor& gradients = parameters_.gradients();
  gradients.zero_();
  const Loss loss = ppo_loss(evaluate(*network_, rows.observations), rows, settings_);
  require_finite(loss.total, "losses");
  loss.total.backward();
  const at::Tensor norm = gradients.norm();
  require_finite(norm, "gradients");
  const double length = norm.item<double>();
  if (length > settings_.max_gradient_norm) {
    gradients.mul_(settings_.max_gradient_norm / (length + 1e-6));
  }
  adam_.step(parameters_.values(), gradients, report.learning_rate);
  report.policy_loss += loss.policy.item<double>();
  report.value_loss += loss.value.item<double>();
  report.entropy += loss.entropy.item<double>();
  report.approx_kl += loss.approx_kl.item<double>();
  report.clip_fraction += loss.clip_fraction.item<double>();
  report.gradient_norm += length;
}

UpdateReport Learner::update(const std::vector<Sample>& samples) {
  UpdateReport report;
  report.learning_rate = learning_rate();
  const Rows rows = rows_of(samples, report);
  if (rows.actions.defined()) {
    report.rows = rows.size();
    report.version_lag /= static_cast<double>(report.rows);
    report.explained_variance = explained_variance(rows);
    const std::int64_t parts = std::min(settings_.minibatches, report.rows);
    const std::uint64_t seed = mix(seed_, static_cast<std::uint64_t>(version_));
    for (std::int64_t epoch = 0; epoch < settings_.epochs; ++epoch) {
      const at::Tensor order = at::tensor(
          shuffled(report.rows, mix(seed, static_cast<std::uint64_t>(epoch))), at::kLong);
      for (const at::Tensor& numbers : order.tensor_split(parts))
        step(rows.select(numbers), report);
    }
    const auto steps = static_cast<double>(settings_.epochs * parts);
    for (double* sum : {&report.policy_loss, &report.value_loss, &report.entropy, &report.approx_kl,
                        &report.clip_fraction, &report.gradient_norm})
      *sum /= steps;
  }
  ++version_;
  env_steps_ += report.rows;
  return report;
}

std::string Learner::weights_file() const {
  std::ostringstream file;
  torch::save(std::static_pointer_cast<torch::nn::Module>(network_), file);
  return file.str();
}

void Learner::restore(std::int64_t version, std::int64_t env_steps, const at::Tensor& weights,
                      const at::Tensor& mean, const at::Tensor& square,
                      std::int64_t optimizer_steps) {
  const at::NoGradGuard no_grad;
  parameters_.values().copy_(weights);
  adam_.set_state(mean, square, optimizer_steps);
  version_ = version;
  env_steps_ = env_steps;
}

}  // namespace batchrpc_examples::ppo
