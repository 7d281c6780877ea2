#pragma once

#include <cstdint>
#include <string>

namespace batchrpc_examples::ppo {

/// The settings of the algorithm, which the literature calls hyperparameters.
struct PpoSettings {
  std::int64_t steps = 128;      ///< of each environment between two updates
  std::int64_t epochs = 4;       ///< passes of an update over the samples
  std::int64_t minibatches = 4;  ///< in each epoch; each is one step of the optimizer
  double learning_rate = 2.5e-4;
  bool anneal = true;  ///< reduce the learning rate linearly to 0 at the last step of the training
  double gamma = 0.99;
  double gae_lambda = 0.95;
  double clip = 0.2;         ///< of the probability ratio: 1 - clip to 1 + clip
  bool clip_values = false;  ///< also keep values within `clip` of those at sampling time
  double entropy = 0.01;     ///< coefficient of the entropy bonus
  double value_coefficient = 0.5;
  double max_gradient_norm = 0.5;
  bool normalize_advantages = true;  ///< in each minibatch, to mean 0 and deviation 1
};

/// Calls `f` with the name of each setting and that member of each of `of`, which are structs with
/// members of these names.
template <class F, class... Settings>
void each_setting(const F& f, Settings&... of) {
  f("steps", of.steps...);
  f("epochs", of.epochs...);
  f("minibatches", of.minibatches...);
  f("learning_rate", of.learning_rate...);
  f("anneal", of.anneal...);
  f("gamma", of.gamma...);
  f("gae_lambda", of.gae_lambda...);
  f("clip", of.clip...);
  f("clip_values", of.clip_values...);
  f("entropy", of.entropy...);
  f("value_coefficient", of.value_coefficient...);
  f("max_gradient_norm", of.max_gradient_norm...);
  f("normalize_advantages", of.normalize_advantages...);
}

/// Settings tuned for 64 environments of that name of make_env(); for other names the defaults
/// above.
PpoSettings settings_for(const std::string& env);

/// All settings in one line. Trainings with the same line behave alike.
std::string to_string(const PpoSettings& settings);

}  // namespace batchrpc_examples::ppo
