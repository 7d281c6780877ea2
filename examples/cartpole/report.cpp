#include "cartpole/report.hpp"

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

namespace batchrpc_examples {
namespace {

using Json = nlohmann::json;

Json settings_json(const CartPoleOptions& options) {
  return {{"episodes", options.episodes},
          {"until_solved", options.until_solved},
          {"episodes_max", options.most_episodes},
          {"steps", options.steps},
          {"gamma", options.group.gamma},
          {"seed", options.group.seed},
          {"learning_rate", options.learning_rate},
          {"dropout", options.dropout},
          {"normalize_returns", options.normalize_returns},
          {"transport", transport_word(options.group.transport)}};
}

Json frame_json(const CartPoleOptions& options) {
  return {{"system", "batchrpc"},
          {"settings", settings_json(options)},
          {"machine", machine_report()},
          {"versions",
           {{"batchrpc", batchrpc::version()},
            {"libtorch", TORCH_VERSION},
            {"compiler", __VERSION__}}}};
}

std::string hex(std::uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return text.data();
}

Json work_json(const TrainingReport& report) {
  Json lost = Json::array();
  for (const std::string& observer : report.lost_observers)
    lost.push_back(observer);
  return {{"setup_seconds", report.setup_seconds},
          {"work_seconds", report.work_seconds},
          {"learning_seconds", report.learning_seconds},
          {"env_steps", report.env_steps},
          {"env_steps_per_s", report.env_steps_per_s()},
          {"running_reward", report.running_reward},
          {"lost_observers", lost}};
}

std::string text_of(const char* format, double a, double b = 0) {
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), format, a, b);  // NOLINT: literals below
  return text.data();
}

std::filesystem::path png_beside(const std::string& svg) {
  return std::filesystem::path(svg).replace_extension(".png");
}

}  // namespace

nlohmann::json training_json(const CartPoleOptions& options, const TrainingReport& report) {
  Json json = frame_json(options);
  json["world_size"] = options.group.world_size;
  json["batch"] = options.batch;
  json.update(work_json(report));
  json["solved_at_episode"] =
      report.solved_at_episode ? Json(*report.solved_at_episode) : Json(nullptr);
  json["policy_hash"] = hex(report.policy_hash);
  Json episodes = Json::array();
  for (const EpisodeRecord& episode : report.episodes) {
    episodes.push_back({{"episode", episode.episode},
                        {"observers", episode.observers},
                        {"env_steps", episode.env_steps},
                        {"seconds", episode.seconds},
                        {"last_reward", episode.last_reward},
                        {"running_reward", episode.running_reward},
                        {"mean_length", episode.mean_length}});
  }
  json["episodes"] = std::move(episodes);
  return json;
}

nlohmann::json sweep_json(const CartPoleOptions& options, const std::vector<SweepRow>& rows) {
  Json json = frame_json(options);
  Json sweep = Json::array();
  for (const SweepRow& row : rows) {
    sweep.push_back({{"world_size", row.world_size},
                     {"batch", work_json(row.batch)},
                     {"no_batch", work_json(row.no_batch)}});
  }
  json["sweep"] = std::move(sweep);
  return json;
}

Figure learning_curve(const CartPoleOptions& options, const TrainingReport& report) {
  Series last{.name = "last reward", .line_width = 1, .opacity = 0.5};
  Series running{.name = "average reward"};
  Series mean{.name = "mean length of the last 100 runs"};
  for (const EpisodeRecord& episode : report.episodes) {
    const auto x = static_cast<double>(episode.episode);
    last.points.push_back({x, episode.last_reward});
    running.points.push_back({x, episode.running_reward});
    mean.points.push_back({x, episode.mean_length});
  }
  if (report.episodes.size() == 1) {
    for (Series* series : {&last, &running, &mean})
      series->marker_size = 6;
  }
  Figure figure;
  figure.title = "CartPole-v1, " + std::to_string(options.observers()) + " observers";
  figure.subtitle = summary(options, report);
  figure.x = {.label = "episode of the agent", .whole_numbers = true};
  figure.y = {.label = "steps", .from = 0, .to = CartPoleEnv::kStepLimit + 20};
  figure.series = {last, running, mean};
  figure.reference_lines = {{.y = CartPoleEnv::kSolvedAt, .label = "solved"}};
  return figure;
}

Figure comparison(const CartPoleOptions& options, const std::vector<SweepRow>& rows) {
  Series batch{.name = "batch", .marker_size = 6};
  Series no_batch{.name = "no batch", .marker_size = 6};
  for (const SweepRow& row : rows) {
    const auto x = static_cast<double>(row.world_size);
    batch.points.push_back({x, row.batch.work_seconds});
    no_batch.points.push_back({x, row.no_batch.work_seconds});
  }
  Figure figure;
  figure.title = "CartPole: batch compared with no batch";
  figure.subtitle = std::to_string(options.episodes) + " episodes of " +
                    std::to_string(options.steps) + " steps per observer, without the set-up";
  figure.x = {.label = "world size (one agent, the rest observers)", .whole_numbers = true};
  figure.y = {.label = "seconds", .from = 0};
  figure.series = {batch, no_batch};
  return figure;
}

void write_results(const CartPoleOptions& options, const nlohmann::json& report,
                   const Figure& figure) {
  std::string written;
  if (!options.json.empty()) {
    write_file(options.json, report.dump(2) + "\n");
    written += " " + options.json;
  }
  if (!options.figure.empty()) {
    const std::string png = png_beside(options.figure);
    write_svg(figure, options.figure);
    write_png(figure, png);
    written += " " + options.figure + " " + png;
  }
  if (!written.empty()) std::cout << "Wrote" << written << std::endl;
}

std::string summary(const CartPoleOptions& options, const TrainingReport& report) {
  const auto episodes = std::to_string(report.episodes.size());
  std::string text;
  if (!options.until_solved) {
    text = episodes + " episodes";
  } else if (report.solved_at_episode) {
    text = "Solved after " + episodes + " episodes";
  } else {
    text = "Not solved after " + episodes + " episodes";
  }
  return text + " and " + std::to_string(report.env_steps) + " environment steps in " +
         text_of("%.2f s (%.0f steps/s)", report.work_seconds, report.env_steps_per_s()) +
         text_of(", after %.2f s of set-up", report.setup_seconds);
}

}  // namespace batchrpc_examples
