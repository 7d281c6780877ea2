#include "ppo/settings.hpp"

#include <sstream>

namespace batchrpc_examples::ppo {

PpoSettings settings_for(const std::string& env) {
  PpoSettings settings;
  if (env == "cartpole") {
    settings.steps = 32;
    settings.epochs = 10;
    settings.minibatches = 8;
    settings.learning_rate = 2e-3;
    settings.entropy = 0;
  } else if (env == "minatar-breakout") {
    settings.steps = 128;
    settings.epochs = 4;
    settings.minibatches = 8;
    settings.learning_rate = 3e-3;
  } else if (env == "pixels") {
    settings.learning_rate = 5e-4;
  }
  return settings;
}

std::string to_string(const PpoSettings& settings) {
  std::ostringstream text;
  text << "steps " << settings.steps << ", epochs " << settings.epochs << ", minibatches "
       << settings.minibatches << ", learning rate " << settings.learning_rate
       << (settings.anneal ? " annealed" : "") << ", gamma " << settings.gamma << ", lambda "
       << settings.gae_lambda << ", clip " << settings.clip
       << (settings.clip_values ? " also of values" : "") << ", entropy " << settings.entropy
       << ", value coefficient " << settings.value_coefficient << ", gradient norm "
       << settings.max_gradient_norm
       << (settings.normalize_advantages ? ", normalized advantages" : "");
  return text.str();
}

}  // namespace batchrpc_examples::ppo
