#include "parameter_server/report.hpp"

#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace batchrpc_examples {
namespace parameter_server_report_test {

TEST_CASE("A parameter server's report has the settings that change a run") {
  ParameterServerOptions options;
  options.refuse_nan = true;
  options.checkpoint_every = 7;
  const nlohmann::json settings = run_json(options, {}, std::nullopt).at("settings");
  CHECK(settings.at("refuse_nan") == true);
  CHECK(settings.at("checkpoint_every") == 7);
}

TEST_CASE("The hash of parameters is the same with buffers behind them") {
  ServerRun run;
  run.elements = 3;
  run.values = at::arange(3, at::kFloat);
  const nlohmann::json alone = run_json({}, run, std::nullopt);
  run.values = at::arange(5, at::kFloat);
  const nlohmann::json with_buffers = run_json({}, run, std::nullopt);
  CHECK(alone.at("parameters_hash") == with_buffers.at("parameters_hash"));
}

TEST_CASE("The summary of a training tells how many trainers an iteration had") {
  ParameterServerOptions options;
  options.trainers = 3;
  ServerRun run;
  CHECK_THAT(summary(options, run), Catch::Contains("0 iterations of 3 trainers in"));
  run.iterations = {{.trainers = 3}, {.trainers = 3}};
  CHECK_THAT(summary(options, run), Catch::Contains("2 iterations of 3 trainers in"));
  run.iterations.push_back({.trainers = 1});
  run.iterations.push_back({.trainers = 4});
  CHECK_THAT(summary(options, run), Catch::Contains("4 iterations of 1 to 4 trainers in"));
}

}  // namespace parameter_server_report_test
}  // namespace batchrpc_examples
