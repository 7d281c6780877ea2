#include "ppo/report.hpp"

#include <torch/version.h>

#include <array>
#include <batchrpc/base/version.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cartpole_observer/cartpole_env.hpp"
#include "common/command_line.hpp"
#include "common/machine.hpp"
#include "common/notice.hpp"

namespace batchrpc_examples::ppo {
namespace {

using Json = nlohmann::json;

// The mean return at which the environment counts as learned.
std::optional<double> goal(const PpoOptions& options) {
  if (options.until) return options.until;
  if (options.env == "cartpole") return CartPoleEnv::kSolvedAt;
  if (options.env == "minatar-breakout") return 10;
  return std::nullopt;
}

template <class... Numbers>
std::string format(const char* pattern, Numbers... numbers) {
  std::array<char, 300> text{};
  std::snprintf(text.data(), text.size(), pattern, numbers...);  // NOLINT: literals below
  return text.data();
}

double rate(std::int64_t steps, double seconds) {
  return seconds > 0 ? static_cast<double>(steps) / seconds : 0;
}

Json settings_json(const PpoOptions& options) {
  Json json = {{"env", options.env},
               {"workers", options.workers},
               {"envs_per_worker", options.envs_per_worker},
               {"inference", options.inference == InferencePlace::agent ? "agent" : "worker"},
               {"policy", to_string(options.policy)},
               {"policy_path", options.policy_path},
               {"env_threads", options.env_threads},
               {"torch_threads", options.torch_threads},
               {"buffers", options.buffers},
               {"total_steps", options.total_steps},
               {"seed", options.seed}};
  each_setting([&](const char* name, const auto& value) { json[name] = value; }, options.settings);
  return json;
}

CurvePoint last_of(const TrainingReport& report) {
  return report.curve.empty() ? CurvePoint{} : report.curve.back();
}

}  // namespace

std::string progress_line(const CurvePoint& point) {
  const UpdateReport& update = point.update;
  return format("Update %lld  %lld steps  %.0f steps/s  return %.2f of length %.0f (%lld episodes)",
                static_cast<long long>(point.version), static_cast<long long>(point.env_steps),
                rate(point.env_steps, point.seconds()), point.mean_return, point.mean_length,
                static_cast<long long>(point.episodes)) +
         format("  policy %.4f  value %.4f  entropy %.3f  kl %.4f  clipped %.2f  explained %.2f",
                update.policy_loss, update.value_loss, update.entropy, update.approx_kl,
                update.clip_fraction, update.explained_variance);
}

namespace {

std::string what_was_learned(const PpoOptions& options, const TrainingReport& report) {
  std::string text =
      format("mean return of the last 100 episodes %.2f", last_of(report).mean_return);
  if (const auto wanted = goal(options)) {
    const auto steps = steps_to_reach(report.curve, *wanted);
    text += steps
                ? format(", %.4g reached after %lld steps", *wanted, static_cast<long long>(*steps))
                : format(", %.4g not reached", *wanted);
  }
  return text;
}

}  // namespace

std::string summary(const PpoOptions& options, const TrainingReport& report) {
  const CurvePoint last = last_of(report);
  return format("%lld updates and %lld environment steps in %.1f s (%.0f steps/s; sampling %.0f); ",
                static_cast<long long>(last.version), static_cast<long long>(last.env_steps),
                last.seconds(), rate(last.env_steps, last.seconds()),
                rate(last.env_steps, last.sampling_seconds)) +
         what_was_learned(options, report);
}

nlohmann::json report_json(const PpoOptions& options, const TrainingReport& report) {
  const CurvePoint last = last_of(report);
  Json json = {{"system", "batchrpc"},
               {"settings", settings_json(options)},
               {"machine", machine_report()},
               {"versions",
                {{"batchrpc", batchrpc::version()},
                 {"libtorch", TORCH_VERSION},
                 {"compiler", __VERSION__}}}};
  json["updates"] = last.version;
  json["env_steps"] = last.env_steps;
  json["episodes"] = last.episodes;
  json["mean_return"] = last.mean_return;
  json["sampling_seconds"] = last.sampling_seconds;
  json["learning_seconds"] = last.learning_seconds;
  json["env_steps_per_s"] = rate(last.env_steps, last.seconds());
  json["sampling_env_steps_per_s"] = rate(last.env_steps, last.sampling_seconds);
  json["goal"] = Json(nullptr);
  json["goal_reached_after_steps"] = Json(nullptr);
  if (const auto wanted = goal(options)) {
    json["goal"] = *wanted;
    if (const auto steps = steps_to_reach(report.curve, *wanted))
      json["goal_reached_after_steps"] = *steps;
  }
  json["resumed_at_update"] = report.resumed_at;
  json["error"] = Json(nullptr);
  json["weights_hash"] = Json(nullptr);  // unknown, since a failed update may have changed them
  if (report.error.empty()) {
    json["weights_hash"] = format("%016llx", static_cast<unsigned long long>(report.weights_hash));
  } else {
    json["error"] = report.error;
  }
  json["curve"] = report.curve;
  return json;
}

Figure learning_curve(const PpoOptions& options, const TrainingReport& report) {
  Series series{.name = "mean return of the last 100 episodes"};
  for (const CurvePoint& point : report.curve) {
    if (point.episodes == 0) continue;
    series.points.push_back({static_cast<double>(point.env_steps), point.mean_return});
  }
  if (series.points.size() == 1) series.marker_size = 6;
  Figure figure;
  figure.title = "PPO, " + options.env + ", seed " + std::to_string(options.seed);
  figure.subtitle = what_was_learned(options, report);
  figure.x = {.label = "steps of all environments", .whole_numbers = true};
  figure.y = {.label = "return", .from = 0};
  figure.series = {series};
  if (const auto wanted = goal(options)) figure.reference_lines = {{.y = *wanted, .label = "goal"}};
  return figure;
}

void write_results(const PpoOptions& options, const TrainingReport& report) {
  std::string written;
  if (!options.json.empty()) {
    write_file(options.json, report_json(options, report).dump(2) + "\n");
    written += " " + options.json;
  }
  if (!options.figure.empty() && last_of(report).episodes == 0) {
    say(options.figure + " is not written, because no episode has ended yet");
  } else if (!options.figure.empty()) {
    const std::string png = std::filesystem::path(options.figure).replace_extension(".png");
    const Figure figure = learning_curve(options, report);
    write_svg(figure, options.figure);
    write_png(figure, png);
    written += " " + options.figure + " " + png;
  }
  if (!written.empty()) std::cout << "Wrote" << written << std::endl;
}

}  // namespace batchrpc_examples::ppo
