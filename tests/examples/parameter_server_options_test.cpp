#include "parameter_server/options.hpp"

#include <torch/cuda.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/command_line.hpp"

namespace batchrpc_examples {
namespace parameter_server_options_test {

ParameterServerOptions parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "parameter_server");
  const auto options =
      parse_parameter_server_options(static_cast<int>(arguments.size()), arguments.data());
  REQUIRE(options);
  return *options;
}

void refuse(const std::vector<const char*>& arguments, const std::string& because) {
  CAPTURE(arguments);
  try {
    parse(arguments);
    FAIL("these options were accepted");
  } catch (const UsageError& error) {
    CHECK_THAT(error.what(), Catch::Contains(because));
  }
}

class Environment {
 public:
  Environment(std::initializer_list<std::pair<const char*, const char*>> variables)
      : variables_(variables) {
    for (const auto& [name, value] : variables_)
      ::setenv(name, value, 1);
  }
  ~Environment() {
    for (const auto& variable : variables_)
      ::unsetenv(variable.first);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<const char*, const char*>> variables_;
};

TEST_CASE("parameter_server without options is as the tutorial's") {
  const ParameterServerOptions options = parse({});
  CHECK(options.trainers == 5);
  CHECK(options.iterations == 6);
  CHECK(options.batch_size == 20);
  CHECK(options.image == 64);
  CHECK(options.classes == 30);
  CHECK(options.learning_rate == 0.001);
  CHECK(options.momentum == 0.9);
  CHECK(options.mode == UpdateMode::batch);
  CHECK(options.servers == 1);
  CHECK_FALSE(options.rank);
  CHECK(options.is_server());
}

TEST_CASE("parameter_server refuses what is out of range, or does not go together") {
  refuse({"--trainers", "0"}, "--trainers");
  refuse({"--iterations", "none"}, "--iterations");
  refuse({"--momentum", "1.5"}, "--momentum");
  refuse({"--lr", "nan"}, "--lr");
  refuse({"--mode", "fast"}, "batch");
  refuse({"--servers", "0"}, "--servers");
  refuse({"--no-sum"}, "--synthetic");
  refuse({"--check", "--synthetic"}, "cannot be combined");
  refuse({"--check", "--mode", "async"}, "--mode batch");
  refuse({"--batch-size", "1", "--image", "32"}, "batch norm");
  refuse({"--figure", "a.png"}, ".svg");
  refuse({"--json", "/nowhere/a.json"}, "/nowhere/a.json");
  refuse({"--checkpoint", "/nowhere"}, "no such folder");
  refuse({"--checkpoint", "/proc"}, "cannot write /proc/server0");
  refuse({"--checkpoint", "/tmp", "--synthetic"}, "cannot be combined");
  refuse({"--checkpoint-every", "2"}, "--checkpoint");
  refuse({"--colour", "red"}, "--colour");
  if (!torch::cuda::is_available()) refuse({"--device", "cuda"}, "no CUDA device");
}

TEST_CASE("parameter_server refuses a figure whose .png cannot be written") {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("batchrpc_options_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "a.png");
  refuse({"--figure", (folder / "a.svg").c_str()}, "a.png");
  std::filesystem::remove_all(folder);
}

TEST_CASE("parameter_server refuses a report in the place of the figure") {
  const std::string where = std::filesystem::temp_directory_path();
  const std::string name = "batchrpc_options_test_" + std::to_string(::getpid());
  const std::string figure = where + "/" + name + ".svg";
  for (const std::string& json :
       {figure, where + "/./" + name + ".svg", where + "/" + name + ".png"})
    refuse({"--json", json.c_str(), "--figure", figure.c_str()}, "the same file");
  const std::string here = std::filesystem::current_path() / "a.svg";
  refuse({"--json", "a.svg", "--figure", here.c_str()}, "the same file");
  parse({"--json", (figure + ".json").c_str(), "--figure", figure.c_str()});
}

TEST_CASE("parameter_server is one process of several where the environment says so") {
  {
    const Environment all{
        {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}, {"RANK", "3"}, {"WORLD_SIZE", "6"}};
    const ParameterServerOptions options = parse({"--servers", "2"});
    CHECK(options.join == "tcp://127.0.0.1:29500");
    CHECK(options.trainers == 4);
    CHECK_FALSE(options.is_server());
    CHECK(options.trainer_index() == 1);
    CHECK(node_options(options).name == "trainer1");
    refuse({"--trainers", "3"}, "WORLD_SIZE");
    refuse({"--servers", "6"}, "there must be a trainer");
  }
  const Environment some{{"RANK", "0"}, {"WORLD_SIZE", "6"}};
  refuse({}, "missing: MASTER_ADDR, MASTER_PORT");
  const Environment no_port{{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "70000"}};
  refuse({}, "70000");
}

TEST_CASE("What a checkpoint must have in common names part, seed and optimizer") {
  ParameterServerOptions options = parse({});
  const std::string settings = model_settings(options);
  options.iterations = 100;
  options.trainers = 2;
  CHECK(model_settings(options) == settings);
  options.momentum = 0.5;
  CHECK(model_settings(options) != settings);
}

TEST_CASE("What a checkpoint must have in common tells numbers apart, and modes") {
  ParameterServerOptions options = parse({});
  const std::string settings = model_settings(options);
  options.learning_rate += 1e-12;
  CHECK(model_settings(options) != settings);
  options = parse({"--mode", "async"});
  CHECK(model_settings(options) != settings);
}

TEST_CASE("Whose gradients a model has had are the same words for the same gradients alone") {
  const std::string settings = gradient_settings(parse({}));
  CHECK(gradient_settings(parse({"--servers", "2", "--iterations", "9"})) == settings);
  CHECK(settings == "5 trainers, each with 20 images of 64 pixels, computed by the CPU");
  CHECK_THAT(gradient_settings(parse({"--trainers", "1"})), Catch::StartsWith("1 trainer, each "));
  CHECK(gradient_settings(parse({"--trainers", "2"})) != settings);
  CHECK(gradient_settings(parse({"--batch-size", "2"})) != settings);
  CHECK(gradient_settings(parse({"--image", "65"})) != settings);
}

}  // namespace parameter_server_options_test
}  // namespace batchrpc_examples
