#include "ppo/curve.hpp"

#include <nlohmann/json.hpp>

#include "ppo/episodes.hpp"

namespace batchrpc_examples::ppo {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(UpdateReport, rows, learning_rate, policy_loss, value_loss,
                                   entropy, approx_kl, clip_fraction, gradient_norm,
                                   explained_variance, version_lag)

void to_json(nlohmann::json& json, const CurvePoint& point) {
  json = {{"version", point.version},
          {"env_steps", point.env_steps},
          {"episodes", point.episodes},
          {"mean_return", point.mean_return},
          {"mean_length", point.mean_length},
          {"sampling_seconds", point.sampling_seconds},
          {"learning_seconds", point.learning_seconds},
          {"update", point.update}};
}

void from_json(const nlohmann::json& json, CurvePoint& point) {
  json.at("version").get_to(point.version);
  json.at("env_steps").get_to(point.env_steps);
  json.at("episodes").get_to(point.episodes);
  json.at("mean_return").get_to(point.mean_return);
  json.at("mean_length").get_to(point.mean_length);
  json.at("sampling_seconds").get_to(point.sampling_seconds);
  json.at("learning_seconds").get_to(point.learning_seconds);
  json.at("update").get_to(point.update);
}

std::optional<std::int64_t> steps_to_reach(const std::vector<CurvePoint>& curve,
                                           double mean_return) {
  constexpr auto kEnough = static_cast<std::int64_t>(EpisodeStatistics::kWindow);
  for (const CurvePoint& point : curve)
    if (point.episodes >= kEnough && point.mean_return >= mean_return) return point.env_steps;
  return std::nullopt;
}

}  // namespace batchrpc_examples::ppo
