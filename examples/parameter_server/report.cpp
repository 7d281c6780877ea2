#include "parameter_server/report.hpp"

#include <torch/version.h>

#include <algorithm>
#include <array>
#include <batchrpc/base/version.hpp>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/command_line.hpp"
#include "common/counted.hpp"
#include "common/machine.hpp"
#include "common/meeting_place.hpp"
#include "common/statistics.hpp"

namespace batchrpc_examples {
namespace {

using Json = nlohmann::json;

Json settings_json(const ParameterServerOptions& options) {
  return {{"trainers", options.trainers},
          {"servers", options.servers},
          {"iterations", options.iterations},
          {"batch_size", options.batch_size},
          {"image", options.image},
          {"classes", options.classes},
          {"lr", options.learning_rate},
          {"momentum", options.momentum},
          {"mode", to_string(options.mode)},
          {"device", options.cuda ? "cuda" : "cpu"},
          {"synthetic", options.synthetic},
          {"sum", options.sum},
          {"refuse_nan", options.refuse_nan},
          {"buffers", options.buffers},
          {"check", options.check},
          {"checkpoint", !options.checkpoint.empty()},
          {"checkpoint_every", options.checkpoint_every},
          {"transport", transport_word(options.transport)},
          {"seed", options.seed}};
}

Json iteration_json(const IterationRecord& iteration) {
  return {{"iteration", iteration.iteration},
          {"trainers", iteration.trainers},
          {"loss", iteration.loss},
          {"seconds", iteration.seconds},
          {"compute_seconds", iteration.compute_seconds},
          {"wait_seconds", iteration.wait_seconds},
          {"sum_seconds", iteration.sum_seconds},
          {"step_seconds", iteration.step_seconds},
          {"checkpoint_seconds", iteration.checkpoint_seconds},
          {"bytes", iteration.bytes},
          {"mean_staleness", iteration.mean_staleness}};
}

std::vector<double> iteration_seconds(const ServerRun& run) {
  std::vector<double> seconds;
  for (const IterationRecord& iteration : run.iterations)
    seconds.push_back(iteration.seconds);
  return seconds;
}

std::string values_hash(const at::Tensor& values) {
  const at::Tensor dense = values.contiguous();
  const auto* bytes = static_cast<const char*>(dense.data_ptr());
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, of words
  for (std::size_t at = 0; at + 4 <= dense.nbytes(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes + at, sizeof word);
    hash = (hash ^ word) * 0x100000001b3;
  }
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

// A text such as "5 trainers", or "3 to 5 trainers" if some were lost or joined later.
std::string trainers_text(const ParameterServerOptions& options, const ServerRun& run) {
  int fewest = options.trainers;
  int most = options.trainers;
  if (!run.iterations.empty()) {
    const auto [least, greatest] =
        std::minmax_element(run.iterations.begin(), run.iterations.end(),
                            [](const auto& a, const auto& b) { return a.trainers < b.trainers; });
    fewest = least->trainers;
    most = greatest->trainers;
  }
  const std::string range = fewest < most ? std::to_string(fewest) + " to " : "";
  return range + counted(most, "trainer");
}

}  // namespace

std::string parameters_hash(const ServerRun& run) {
  return values_hash(run.values.slice(0, 0, run.elements));
}

nlohmann::json run_json(const ParameterServerOptions& options, const ServerRun& run,
                        const std::optional<CheckResult>& check) {
  Json json = {
      {"system", "batchrpc"},
      {"settings", settings_json(options)},
      {"machine", machine_report()},
      {"versions",
       {{"batchrpc", batchrpc::version()}, {"libtorch", TORCH_VERSION}, {"compiler", __VERSION__}}},
      {"parameters", run.elements},
      {"message_bytes", run.message_bytes},
      {"setup_seconds", run.setup_seconds},
      {"work_seconds", run.work_seconds},
      {"first_iteration", run.first_iteration},
      {"server_memory_bytes", run.memory_bytes},
      {"lost_trainers", run.lost},
      {"failed_trainers", run.failed_trainers},
      {"checkpoint_error", run.checkpoint_error},
      {"failed_servers", run.failed_servers}};
  if (run.values.defined()) json["parameters_hash"] = parameters_hash(run);
  if (!run.error.empty()) json["error"] = run.error;
  Json iterations = Json::array();
  for (const IterationRecord& iteration : run.iterations)
    iterations.push_back(iteration_json(iteration));
  json["iterations"] = std::move(iterations);
  if (!run.iterations.empty()) json["iteration_median_seconds"] = median(iteration_seconds(run));
  if (check && !check->not_checked.empty()) {
    json["check"] = {{"not_checked", check->not_checked}, {"passed", false}};
  } else if (check) {
    json["check"] = {{"relative_difference", check->relative_difference},
                     {"most", CheckResult::kMost},
                     {"passed", check->passed()}};
  }
  return json;
}

Figure phases_figure(const ParameterServerOptions& options, const ServerRun& run) {
  Figure figure;
  figure.title = "ResNet-50, " + trainers_text(options, run) + ", mode " + to_string(options.mode);
  figure.subtitle = summary(options, run);
  figure.x = {.label = "iteration", .whole_numbers = true};
  figure.y = {.label = "seconds", .from = 0};
  using Member = double IterationRecord::*;
  const std::pair<const char*, Member> phases[] = {
      {"the slowest trainer's whole iteration", &IterationRecord::seconds},
      {"trainers compute", &IterationRecord::compute_seconds},
      {"trainers wait for the server", &IterationRecord::wait_seconds},
      {"the server adds up", &IterationRecord::sum_seconds},
      {"the server steps", &IterationRecord::step_seconds}};
  for (const auto& [name, member] : phases) {
    Series series{.name = name, .marker_size = 5};
    for (const IterationRecord& iteration : run.iterations)
      series.points.push_back({static_cast<double>(iteration.iteration), iteration.*member});
    figure.series.push_back(std::move(series));
  }
  return figure;
}

std::string summary(const ParameterServerOptions& options, const ServerRun& run) {
  const std::string trainers = trainers_text(options, run);
  std::array<char, 200> text{};
  const auto iterations = run.iterations.size();
  std::snprintf(
      text.data(), text.size(), "%s of %s in %.2f s (median %.3f s), after %.2f s of set-up",
      counted(static_cast<long long>(iterations), "iteration").c_str(), trainers.c_str(),
      run.work_seconds, iterations > 0 ? median(iteration_seconds(run)) : 0.0, run.setup_seconds);
  return text.data();
}

void write_results(const ParameterServerOptions& options, const ServerRun& run,
                   const std::optional<CheckResult>& check) {
  std::string written;
  if (!options.json.empty()) {
    write_file(options.json, run_json(options, run, check).dump(2) + "\n");
    written += " " + options.json;
  }
  if (!options.figure.empty() && !run.iterations.empty()) {
    const std::string png = png_beside(options.figure);
    const Figure figure = phases_figure(options, run);
    write_svg(figure, options.figure);
    write_png(figure, png);
    written += " " + options.figure + " " + png;
  }
  if (!written.empty()) std::cout << "Wrote" << written << std::endl;
}

}  // namespace batchrpc_examples
