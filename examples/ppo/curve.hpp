#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "ppo/learner.hpp"

namespace batchrpc_examples::ppo {

/// Where a training was after an update.
struct CurvePoint {
  std::int64_t version = 0;
  std::int64_t env_steps = 0;
  std::int64_t episodes = 0;
  double mean_return = 0;  ///< of the last 100 episodes
  double mean_length = 0;
  double sampling_seconds = 0;  ///< of all updates so far
  double learning_seconds = 0;
  UpdateReport update{};

  [[nodiscard]] double seconds() const { return sampling_seconds + learning_seconds; }
};

void to_json(nlohmann::json& json, const CurvePoint& point);
void from_json(const nlohmann::json& json, CurvePoint& point);

/// After how many steps the mean return of 100 episodes was first that; none: it never was.
std::optional<std::int64_t> steps_to_reach(const std::vector<CurvePoint>& curve,
                                           double mean_return);

}  // namespace batchrpc_examples::ppo
