#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "ppo/learner.hpp"

namespace batchrpc_examples::ppo {

/// The state of a training after an update.
struct CurvePoint {
  std::int64_t version = 0;
  std::int64_t env_steps = 0;
  std::int64_t episodes = 0;
  double mean_return = 0;  ///< over the last 100 episodes
  double mean_length = 0;
  double sampling_seconds = 0;  ///< of all updates so far
  double learning_seconds = 0;
  UpdateReport update{};

  [[nodiscard]] double seconds() const { return sampling_seconds + learning_seconds; }
};

void to_json(nlohmann::json& json, const CurvePoint& point);
void from_json(const nlohmann::json& json, CurvePoint& point);

/// The number of steps after which the mean return of 100 episodes first reached that value;
/// nothing if it never did.
std::optional<std::int64_t> steps_to_reach(const std::vector<CurvePoint>& curve,
                                           double mean_return);

}  // namespace batchrpc_examples::ppo
