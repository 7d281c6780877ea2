#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "rl_benchmark/options.hpp"
#include "rl_benchmark/world.hpp"

namespace rl_benchmark {
namespace rl_benchmark_options_test {

using batchrpc_examples::UsageError;
using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

Options parse(Words words) {
  words.insert(words.end(), {"--output-file-path", "/dev/null"});
  std::vector<const char*> all{"rl_benchmark"};
  for (const std::string& word : words)
    all.push_back(word.c_str());
  return parse_options(static_cast<int>(all.size()), all.data()).value();
}

std::string refusal(const Words& words) {
  try {
    parse(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "taken";
}

/// The environment while it lives.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const auto& [name, value] : variables) {
      ::setenv(name.c_str(), value.c_str(), 1);
      names_.push_back(name);
    }
  }
  ~Environment() {
    for (const std::string& name : names_)
      ::unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::string> names_;
};

TEST_CASE("without arguments the benchmark does what the original does") {
  const Options options = parse({});
  REQUIRE(options.settings.size() == 1);
  const Setting& setting = options.settings.front();
  CHECK(setting.world_size == 10);
  CHECK(setting.observers() == 8);
  CHECK(setting.master_addr == "127.0.0.1");
  CHECK(setting.master_port == 29501);
  CHECK(setting.batch);
  CHECK(setting.state_size == std::vector<std::int64_t>{10, 20, 10});
  CHECK(setting.nlayers == 5);
  CHECK(setting.out_features == 10);
  CHECK(setting.episodes == 10);
  CHECK(setting.steps == 100);
  CHECK(setting.gather == Gather::all);
  CHECK_FALSE(setting.inference);
  CHECK(options.x_axis.empty());
}

TEST_CASE("any one argument may have several values, each for a run of its own") {
  const Options worlds = parse({"--world-size", "3,10,20"});
  CHECK(worlds.x_axis == "world_size");
  REQUIRE(worlds.settings.size() == 3);
  CHECK(worlds.settings[2].world_size == 20);
  CHECK(value_json("world_size", worlds.x_values[1]) == 10);

  const Options batches = parse({"--batch", "True,no"});
  CHECK(batches.x_axis == "batch");
  CHECK(batches.settings[0].batch);
  CHECK_FALSE(batches.settings[1].batch);
  CHECK(value_json("batch", batches.x_values[1]) == false);

  const Options states = parse({"--state_size", "4,10-20-10"});  // the original's older names too
  CHECK(states.x_axis == "state_size");
  CHECK(states.settings[0].state_size == std::vector<std::int64_t>{4});
  CHECK(value_json("state_size", states.x_values[1]) == "10-20-10");

  CHECK(parse({"--transport", "tcp,unix"}).settings[1].transport ==
        batchrpc_examples::TransportChoice::unix_socket);
  CHECK(parse({"--max-wait", "0,250"}).settings[1].max_wait == std::chrono::microseconds(250));
}

TEST_CASE("two arguments with several values are an error that names both") {
  CHECK_THAT(refusal({"--world-size", "10,20", "--nlayers", "5,10"}),
             Catch::Contains("--world-size and --nlayers"));
}

TEST_CASE("what is out of range or no such thing is an error that names the argument") {
  const auto [words, flag] = GENERATE(table<Words, std::string>({
      {{"--world-size", "2"}, "--world-size"},
      {{"--world-size", "1001"}, "--world-size"},
      {{"--world-size", "ten"}, "--world-size"},
      {{"--world-size", "10,"}, "--world-size"},
      {{"--world-size", "10,2"}, "--world-size"},
      {{"--world-size", ""}, "--world-size"},
      {{"--master-addr", "no host"}, "--master-addr"},
      {{"--master-port", "0"}, "--master-port"},
      {{"--master-port", "65536"}, "--master-port"},
      {{"--batch", "maybe"}, "--batch"},
      {{"--state-size", "10-0"}, "--state-size"},
      {{"--state-size", "10-"}, "--state-size"},
      {{"--state-size", "4096-4096-2"}, "--state-size"},
      {{"--state-size", "-3"}, "--state-size"},
      {{"--nlayers", "-1"}, "--nlayers"},
      {{"--nlayers", "5.5"}, "--nlayers"},
      {{"--out-features", "0"}, "--out-features"},
      {{"--agents", "0"}, "--agents"},
      {{"--agents", "5"}, "--agents"},
      {{"--episodes", "1"}, "--episodes"},
      {{"--steps", "0"}, "--steps"},
      {{"--steps", "99999999999999999999"}, "--steps"},
      {{"--transport", "carrier pigeon"}, "--transport"},
      {{"--num-worker-threads", "1025"}, "--num-worker-threads"},
      {{"--max-wait", "-1"}, "--max-wait"},
      {{"--gather", "some"}, "--gather"},
      {{"--busy-poll", "1s"}, "--busy-poll"},
      {{"--inference", "2"}, "--inference"},
      {{"--seed", "-1"}, "--seed"},
      {{"--progress", "often"}, "--progress"},
      {{"--no-such-argument", "1"}, "--no-such-argument"},
  }));
  CAPTURE(words);
  CHECK_THAT(refusal(words), Catch::Contains(flag) && Catch::EndsWith("; see --help"));
}

TEST_CASE("a report that cannot be written is found out before the run") {
  const std::vector<const char*> words{"rl_benchmark", "--output-file-path", "/no/such/folder/x"};
  CHECK_THROWS_WITH(parse_options(static_cast<int>(words.size()), words.data()),
                    Catch::StartsWith("--output-file-path: cannot write /no/such/folder/x"));
}

TEST_CASE("by the environment the benchmark is one process of a run") {
  const Environment environment(
      {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "127.0.0.2"}, {"MASTER_PORT", "1234"}});
  const Options options = parse({"--steps", "7"});
  CHECK(options.rank == 2);
  CHECK(options.settings[0].world_size == 4);
  CHECK(options.settings[0].master_addr == "127.0.0.2");
  CHECK(options.settings[0].master_port == 1234);
  CHECK(options.settings[0].steps == 7);
  CHECK(parse({"--world-size", "4"}).rank == 2);
  CHECK_THAT(refusal({"--world-size", "5"}), Catch::Contains("WORLD_SIZE in the environment is 4"));
  CHECK_THAT(refusal({"--world-size", "4,5"}), Catch::Contains("--world-size"));
  CHECK(parse({"--nlayers", "1,2"}).settings.size() == 2);
}

TEST_CASE("half an environment is an error that says what is missing") {
  CHECK_THAT(
      [] {
        const Environment environment(Variables{{"RANK", "0"}});
        return refusal({});
      }(),
      Catch::Contains("RANK, but no WORLD_SIZE"));
  CHECK_THAT(
      [] {
        const Environment environment(Variables{{"RANK", "0"}, {"WORLD_SIZE", "3"}});
        return refusal({});
      }(),
      Catch::Contains("no MASTER_ADDR"));
  const Environment environment(
      {{"RANK", "3"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29501"}});
  CHECK_THAT(refusal({}), Catch::Contains("RANK 3 does not exist with --world-size 3"));
}

TEST_CASE("observers are dealt out to several agents, each of which has one") {
  const Setting setting = parse({"--world-size", "8", "--agents", "2"}).settings[0];
  CHECK(setting.observers() == 5);
  CHECK(name_of(setting, 0) == "coordinator");
  CHECK(agent_names(setting) == Words{"agent1", "agent2"});
  CHECK(observer_names(setting) ==
        Words{"observer3", "observer4", "observer5", "observer6", "observer7"});
  CHECK(observers_of(setting, 0) == Words{"observer3", "observer5", "observer7"});
  CHECK(observers_of(setting, 1) == Words{"observer4", "observer6"});
  CHECK(agent_of(setting, 3) == 1);
  CHECK(agent_names(parse({}).settings[0]) == Words{"agent"});
}

}  // namespace rl_benchmark_options_test
}  // namespace rl_benchmark
