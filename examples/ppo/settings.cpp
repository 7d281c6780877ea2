#include "ppo/settings.hpp"

#include <sstream>
#include <utility>

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
  text << std::boolalpha;
  const char* between = "";
  each_setting(
      [&](const char* name, const auto& value) {
        text << std::exchange(between, ", ") << name << ' ' << value;
      },
      settings);
  return text.str();
}

}  // namespace batchrpc_examples::ppo
