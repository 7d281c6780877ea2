#include "parameter_server/report.hpp"

#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace batchrpc_examples {
namespace {

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

}  // namespace
}  // namespace batchrpc_examples
