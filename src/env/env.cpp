#include "batchrpc/env/env.hpp"

#include "batchrpc/base/error.hpp"

namespace batchrpc {

Env::~Env() = default;

std::string to_string(const EnvSpec& spec) {
  std::string text =
      "observation " + to_string(spec.observation) + ", action " + to_string(spec.action);
  if (spec.actions > 0) return text + " of " + std::to_string(spec.actions);
  return text + " from " + std::to_string(spec.action_low) + " to " +
         std::to_string(spec.action_high);
}

void require_usable(const EnvSpec& spec) {
  const auto refuse = [&](const std::string& what) {
    throw InvalidArgument("an environment's spec (" + to_string(spec) + ") " + what);
  };
  if (spec.observation.type > ElementType::float64) refuse("has an observation of an unknown type");
  if (spec.observation.elements() == 0) refuse("has an observation without elements");
  if (spec.action.elements() == 0) refuse("has an action without elements");
  if (spec.actions < 0) refuse("has a negative number of actions");
  const ElementType type = spec.action.type;
  if (spec.actions > 0) {
    if (type != ElementType::int64 && type != ElementType::int32) {
      refuse("has discrete actions that are neither int64 nor int32");
    }
  } else {
    if (type != ElementType::float32 && type != ElementType::float64) {
      refuse("has continuous actions that are neither float32 nor float64");
    }
    if (!(spec.action_low < spec.action_high)) refuse("has an empty range of actions");
  }
}

}  // namespace batchrpc
