#include "cartpole/options.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/command_line.hpp"

namespace batchrpc_examples {
namespace cartpole_options_test {

CartPoleOptions parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "cartpole");
  const auto options = parse_options(static_cast<int>(arguments.size()), arguments.data());
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

// What torchrun sets, for the time of a test.
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

/// The same, and nothing more is said.
void refuse_ending(const std::vector<const char*>& arguments, const std::string& end) {
  refuse(arguments, end);
  CHECK_THROWS_WITH(parse(arguments), Catch::EndsWith(end + "; see --help"));
}

TEST_CASE("cartpole without options starts eleven processes for ten episodes in batches") {
  const CartPoleOptions options = parse({});
  CHECK(options.group.world_size == 11);
  CHECK(options.observers() == 10);
  CHECK_FALSE(options.group.rank);
  CHECK(options.batch);
  CHECK(options.episodes == 10);
  CHECK(options.steps == 500);
  CHECK(options.group.gamma == 0.99);
  CHECK(options.group.seed == 543);
  CHECK(options.learning_rate == 1e-2);
  CHECK(options.normalize_returns);
  CHECK(options.dropout == 0);
  CHECK_FALSE(options.until_solved);
  CHECK(options.sweep.empty());
}

TEST_CASE("cartpole takes the options that it documents") {
  const CartPoleOptions options = parse({"--world-size",
                                         "3",
                                         "--batch",
                                         "false",
                                         "--episodes",
                                         "4",
                                         "--steps",
                                         "20",
                                         "--gamma",
                                         "1",
                                         "--seed",
                                         "7",
                                         "--dropout",
                                         "0.6",
                                         "--transport",
                                         "unix",
                                         "--normalize-returns",
                                         "false",
                                         "--progress",
                                         "none"});
  CHECK(options.group.world_size == 3);
  CHECK_FALSE(options.batch);
  CHECK(options.episodes == 4);
  CHECK(options.steps == 20);
  CHECK(options.group.gamma == 1);
  CHECK(options.group.seed == 7);
  CHECK(options.dropout == 0.6);
  CHECK(options.group.transport == TransportChoice::unix_socket);
  CHECK_FALSE(options.normalize_returns);
  CHECK(options.progress == ProgressMode::none);
}

TEST_CASE("cartpole refuses options out of range, and says which") {
  refuse({"--world-size", "1"}, "--world-size");
  refuse({"--world-size", "many"}, "--world-size");
  refuse({"--episodes", "0"}, "--episodes");
  refuse({"--steps", "-1"}, "--steps");
  refuse({"--gamma", "1.5"}, "--gamma");
  refuse({"--seed", "-1"}, "--seed");
  refuse({"--learning-rate", "0"}, "--learning-rate");
  refuse({"--dropout", "1"}, "--dropout");
  refuse({"--batch", "perhaps"}, "--batch");
  refuse({"--transport", "pigeon"}, "--transport: 'pigeon' is not one of auto|tcp|unix");
  refuse({"--no-such-option"}, "--no-such-option");
  refuse({"stray"}, "stray");
  refuse({"--episodes"}, "--episodes");
}

TEST_CASE("cartpole takes no number that is none, and says what it takes") {
  for (const char* option : {"--gamma", "--learning-rate", "--dropout"}) {
    for (const char* value : {"nan", "-nan", "inf", "-inf"}) {
      refuse({option, value}, std::string(option) + ": '" + value + "' is not a number from ");
    }
  }
  refuse_ending({"--gamma", "nan"}, "from 0 to 1");
  refuse_ending({"--seed", "-1"}, "'-1' is not a number from 0 to 18446744073709551615");
  refuse({"--seed", "18446744073709551616"}, "--seed");
  CHECK(parse({"--seed", "18446744073709551615"}).group.seed == 18'446'744'073'709'551'615U);
}

TEST_CASE("cartpole finds out before the run whether its results can be written") {
  refuse({"--json", "/no/such/folder/report.json"}, "--json");
  refuse({"--figure", "/no/such/folder/curve.svg"}, "--figure");
  refuse({"--figure", "curve.gif"}, ".svg");
  const auto path = std::filesystem::temp_directory_path() / "cartpole_options_test.json";
  std::filesystem::remove(path);
  CHECK(parse({"--json", path.c_str()}).json == path);
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a process with a rank needs to know where to join") {
  refuse({"--rank", "1"}, "--join");
  refuse({"--join", "tcp://127.0.0.1:29500"}, "--rank");
  refuse({"--rank", "3", "--world-size", "3", "--join", "tcp://127.0.0.1:29500"}, "ranks are 0");
  const CartPoleOptions options =
      parse({"--rank", "2", "--world-size", "3", "--join", "tcp://127.0.0.1:29500"});
  CHECK(options.group.rank == 2);
  CHECK(options.group.join == "tcp://127.0.0.1:29500");
}

TEST_CASE("what torchrun sets makes this process one of a run") {
  const Environment environment{
      {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  const CartPoleOptions options = parse({});
  CHECK(options.group.rank == 1);
  CHECK(options.group.world_size == 3);
  CHECK(options.group.join == "env://");

  const CartPoleOptions named =
      parse({"--rank", "0", "--world-size", "5", "--join", "tcp://127.0.0.1:1"});
  CHECK(named.group.rank == 0);
  CHECK(named.group.world_size == 5);
}

TEST_CASE("what torchrun sets is checked as well") {
  const Environment environment{
      {"RANK", "one"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  refuse({}, "RANK");
}

TEST_CASE("what mpirun sets gives the rank of a run with --join") {
  const Environment environment{{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  const CartPoleOptions options = parse({"--join", "tcp://127.0.0.1:29500"});
  CHECK(options.group.rank == 2);
  CHECK(options.group.world_size == 4);
}

TEST_CASE("one of several processes of a launcher never starts them all for want of an address") {
  {
    const Environment environment{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}};
    refuse({}, "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE");
    refuse_ending({}, "missing: --join");
    refuse_ending({"--world-size", "3"}, "missing: --join");
    refuse({"--sweep", "2-3"}, "OMPI_COMM_WORLD_RANK");
  }
  const Environment environment{{"RANK", "1"}, {"WORLD_SIZE", "3"}};
  refuse_ending({}, "missing: --join, or in the environment MASTER_ADDR and MASTER_PORT");
  refuse_ending({"--world-size", "3"}, "MASTER_ADDR and MASTER_PORT");
  refuse({"--join", "env://"}, "MASTER_ADDR is not set");
  CHECK(parse({"--join", "tcp://127.0.0.1:29500"}).group.rank == 1);
  {
    const Environment more{{"MASTER_ADDR", "127.0.0.1"}};
    refuse_ending({}, "in the environment MASTER_PORT");
  }
  const Environment more{{"MASTER_ADDR", ""}, {"MASTER_PORT", "29500"}};
  refuse_ending({}, "in the environment MASTER_ADDR");
}

TEST_CASE("a rank without a size in the environment, or a size without a rank, is refused") {
  {
    const Environment environment{{"RANK", "1"}};
    refuse({}, "RANK, but no WORLD_SIZE");
  }
  const Environment environment{{"WORLD_SIZE", "3"}};
  refuse({}, "WORLD_SIZE, but no RANK");
}

TEST_CASE("the only process of a launcher starts the others itself") {
  const Environment environment{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  CHECK_FALSE(parse({}).group.rank);
  CHECK(parse({}).group.world_size == 11);
}

TEST_CASE("a process of a launcher does not sweep") {
  const Environment environment{
      {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  refuse({"--sweep", "2-3"}, "the environment marks this process as one of several");
}

TEST_CASE("an address that no process could join at is answered with the usage") {
  refuse({"--rank", "1", "--join", "foo://x"}, "--join: address 'foo://x'");
  refuse({"--rank", "1", "--join", "tcp://127.0.0.1"}, "the port is missing");
  refuse({"--rank", "1", "--join", "tcp://127.0.0.1:0"}, "only rank 0 knows the port");
  refuse({"--rank", "1", "--join", "file://here"}, "file://here");
  refuse({"--rank", "0", "--join", "inproc://x"}, "inproc://x");
  refuse({"--rank", "0", "--join", "env://"}, "cannot be combined");
  CHECK(parse({"--rank", "0", "--join", "tcp://127.0.0.1:0"}).group.rank == 0);
  CHECK(parse({"--rank", "1", "--join", "file:///tmp/run"}).group.rank == 1);

  for (const char* port : {"99999", "0", "-1", "29500x"}) {
    CAPTURE(port);
    const Environment environment{
        {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}};
    refuse({}, "MASTER_PORT is not a ");
  }
  const Environment environment{
      {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "no host"}, {"MASTER_PORT", "29500"}};
  refuse({}, "MASTER_ADDR: ");
}

TEST_CASE("a sweep takes ranges and lists of world sizes") {
  CHECK(parse_world_sizes("2-5") == std::vector<int>{2, 3, 4, 5});
  CHECK(parse_world_sizes("2,8,5") == std::vector<int>{2, 5, 8});
  CHECK(parse_world_sizes("2-4,4,11") == std::vector<int>{2, 3, 4, 11});
  CHECK(parse({"--sweep", "2-3"}).sweep == std::vector<int>{2, 3});
  for (const char* wrong :
       {"", "1-3", "5-2", "2,", ",2", "a", "2-", "-2", "2-3-4", "2..5", "9999"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_world_sizes(wrong), UsageError);
  }
  CHECK_THROWS_WITH(parse_world_sizes("2,99999"), Catch::Contains("from 2 to 1024"));
}

TEST_CASE("a sweep varies what it varies, and nobody else sets it") {
  refuse({"--sweep", "2-3", "--world-size", "4"}, "--world-size");
  refuse({"--sweep", "2-3", "--batch", "true"}, "--batch");
  refuse({"--sweep", "2-3", "--until-solved"}, "--until-solved");
  refuse({"--sweep", "2-3", "--rank", "0"}, "--sweep and --rank cannot be combined");
  refuse({"--sweep", "2-3", "--join", "tcp://127.0.0.1:1"}, "--join");
}

TEST_CASE("an observer's command line says what the agent's did") {
  GroupOptions group;
  group.world_size = 4;
  group.join = "unix-abstract:somewhere";
  group.transport = TransportChoice::unix_socket;
  group.seed = 18'000'000'000'000'000'000U;
  group.gamma = 0.1 + 0.2;  // has many digits
  const std::vector<std::string> arguments = observer_arguments(group, 3);
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments)
    pointers.push_back(argument.c_str());
  const GroupOptions parsed = parse(pointers).group;
  CHECK(parsed.rank == 3);
  CHECK(parsed.world_size == 4);
  CHECK(parsed.join == group.join);
  CHECK(parsed.transport == group.transport);
  CHECK(parsed.seed == group.seed);
  CHECK(parsed.gamma == group.gamma);
  CHECK(parsed.launched);
}

}  // namespace cartpole_options_test
}  // namespace batchrpc_examples
