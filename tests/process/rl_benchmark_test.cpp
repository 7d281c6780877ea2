#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/free_port.hpp"
#include "common/process.hpp"
#include "process/program_run.hpp"

// The program `rl_benchmark`, as people start it.
namespace batchrpc_examples {
namespace rl_benchmark_test {

class Benchmark {
 public:
  explicit Benchmark(const Folder& folder) : folder_(folder) {}

  [[nodiscard]] Words command(const Words& arguments) const {
    Words words{BATCHRPC_BIN_DIR "/rl_benchmark", "--output-file-path", folder_.file("report")};
    words.insert(words.end(), {"--master-port", std::to_string(port_)});
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }
  [[nodiscard]] ChildProcess start(const Words& arguments) const {
    return batchrpc_examples::start(folder_, "rl", command(arguments));
  }
  [[nodiscard]] int run(const Words& arguments) const {
    return end_of(start(arguments), folder_, "rl", 60s);
  }
  [[nodiscard]] nlohmann::json results() const {
    return folder_.json("report").at("benchmark_results");
  }
  [[nodiscard]] int port() const { return port_; }

 private:
  const Folder& folder_;
  int port_ = free_port();
};

const Words kEndless{"--episodes", "1000000", "--steps", "50"};

TEST_CASE("rl_benchmark measures all actions of all observers, over each transport") {
  const std::string batch = GENERATE("True", "False");
  const std::string transport = GENERATE("auto", "tcp", "unix");
  CAPTURE(batch, transport);
  const Folder folder;
  const Benchmark benchmark(folder);
  CHECK(benchmark.run({"--world-size", "5", "--episodes", "3", "--steps", "20", "--batch", batch,
                       "--transport", transport}) == 0);
  CHECK(folder.text("rl.err").empty());
  CHECK_THAT(folder.text("rl.out"),
             Catch::Contains("Episode 2 - ") && Catch::Contains("agent latency (seconds)"));
  REQUIRE(benchmark.results().size() == 1);
  const nlohmann::json result = benchmark.results().at(0);
  CHECK(result.at("actions") == 2 * 20 * 3);
  CHECK(result.at("warm_up").at("actions") == 20 * 3);
  CHECK(result.at("policy_runs") == (batch == "True" ? 2 * 20 : 2 * 20 * 3));
  CHECK(result.at("actions_per_s") > 0);
  CHECK(result.at("start_to_first_action_s") > 0);
  CHECK(result.at("incomplete").is_null());
}

TEST_CASE("rl_benchmark runs once for each value, with several agents and workers too") {
  const Folder folder;
  const Benchmark benchmark(folder);
  CHECK(benchmark.run({"--world-size", "5,8", "--agents", "2", "--num-worker-threads", "2",
                       "--episodes", "2", "--steps", "20"}) == 0);
  const nlohmann::json results = benchmark.results();
  REQUIRE(results.size() == 2);
  CHECK(results.at(0).at("world_size") == 5);
  CHECK(results.at(0).at("actions") == 20 * 2);
  CHECK(results.at(1).at("world_size") == 8);
  CHECK(results.at(1).at("actions") == 20 * 5);
  CHECK(results.at(1).at("policy_runs") == 20 * 2);
}

TEST_CASE("rl_benchmark gathers what has come when its agent is idle, or a wait is over") {
  const Words how = GENERATE(Words{"--gather", "idle"}, Words{"--max-wait", "1"});
  const Folder folder;
  const Benchmark benchmark(folder);
  Words words{"--world-size", "5", "--episodes", "2", "--steps", "20"};
  words.insert(words.end(), how.begin(), how.end());
  CHECK(benchmark.run(words) == 0);
  CHECK(benchmark.results().at(0).at("actions") == 20 * 3);
}

TEST_CASE("when an observer is killed, rl_benchmark reports what was measured and ends with 3") {
  const std::string batch = GENERATE("True", "False");
  CAPTURE(batch);
  const Folder folder;
  const Benchmark benchmark(folder);
  Words words{"--world-size", "5", "--batch", batch};
  words.insert(words.end(), kEndless.begin(), kEndless.end());
  ChildProcess run = benchmark.start(words);
  REQUIRE(has_printed(folder, "rl.out", "Episode 3 "));
  const std::vector<pid_t> others = children_of(run.pid());
  REQUIRE(others.size() == 4);
  ::kill(others.at(2), SIGKILL);  // the agent comes first
  CHECK(end_of(std::move(run), folder, "rl", 30s) == 3);
  CHECK_THAT(folder.text("rl.err"), Catch::Contains("the run ended early: observer3 was lost"));
  CHECK_THAT(folder.text("rl.out"), Catch::Contains("INCOMPLETE: observer3"));
  const nlohmann::json result = benchmark.results().at(0);
  CHECK(result.at("actions") >= 3 * 50 * 3);
  CHECK(result.at("episodes") >= 3);
  CHECK_THAT(result.at("incomplete"), Catch::Contains("observer3"));
}

TEST_CASE("when the agent is killed, rl_benchmark ends the same way") {
  const Folder folder;
  const Benchmark benchmark(folder);
  ChildProcess run = benchmark.start(kEndless);
  REQUIRE(has_printed(folder, "rl.out", "Episode 3 "));
  ::kill(children_of(run.pid()).at(0), SIGKILL);
  CHECK(end_of(std::move(run), folder, "rl", 30s) == 3);
  CHECK_THAT(folder.text("rl.err"), Catch::Contains("agent"));
  CHECK(benchmark.results().at(0).at("actions") > 0);
}

TEST_CASE("an interrupt ends rl_benchmark with a report of what was measured, and 3") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  const Folder folder;
  const Benchmark benchmark(folder);
  Words words{"--world-size", "4,5"};
  words.insert(words.end(), kEndless.begin(), kEndless.end());
  ChildProcess run = benchmark.start(words);
  REQUIRE(has_printed(folder, "rl.out", "Episode 3 "));
  const std::vector<pid_t> others = children_of(run.pid());
  for (const pid_t other : others)
    ::kill(other, SIGINT);  // as a terminal does, to all
  run.signal(signal);
  CHECK(end_of(std::move(run), folder, "rl", 30s) == 3);
  CHECK(folder.text("rl.err") == "rl_benchmark: the run ended early: interrupted\n");
  REQUIRE(benchmark.results().size() == 1);
  CHECK(benchmark.results().at(0).at("incomplete") == "interrupted");
  for (const pid_t other : others)
    CHECK(::kill(other, 0) != 0);
}

TEST_CASE("a port in use is told with the argument that chooses another") {
  const Folder folder;
  const Benchmark benchmark(folder);
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(benchmark.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener, 1) == 0);
  CHECK(benchmark.run({"--world-size", "3"}) == 1);
  ::close(listener);
  CHECK_THAT(folder.text("rl.err"),
             Catch::Contains("the address is taken") && Catch::Contains("--master-port"));
}

TEST_CASE("wrong arguments of rl_benchmark are one line on standard error, and exit code 2") {
  const Folder folder;
  const Benchmark benchmark(folder);
  const Words wrong = GENERATE(values<Words>({{"--world-size", "2"},
                                              {"--world-size", "3,4", "--batch", "True,False"},
                                              {"--output-file-path", "/no/such/folder/report"},
                                              {"--no-such-option"}}));
  CAPTURE(wrong);
  CHECK(benchmark.run(wrong) == 2);
  CHECK(folder.text("rl.out").empty());
  const std::string error = folder.text("rl.err");
  CHECK_THAT(error, Catch::StartsWith("rl_benchmark: ") && Catch::EndsWith("; see --help\n"));
  CHECK(std::count(error.begin(), error.end(), '\n') == 1);
}

TEST_CASE("processes that others have started join as one rank each, for several runs") {
  const Folder folder;
  const Benchmark benchmark(folder);
  const std::string port = std::to_string(free_port());
  std::vector<ChildProcess> processes;
  for (int rank = 0; rank < 4; ++rank) {
    Words command = benchmark.command({"--nlayers", "1,2", "--episodes", "2", "--steps", "20"});
    command.erase(command.begin() + 3, command.begin() + 5);  // --master-port is the environment's
    processes.push_back(start(folder, "rank" + std::to_string(rank), command,
                              {{"RANK", std::to_string(rank)},
                               {"WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "127.0.0.1"},
                               {"MASTER_PORT", port}}));
  }
  for (int rank = 0; rank < 4; ++rank) {
    const auto name = "rank" + std::to_string(rank);
    CHECK(end_of(std::move(processes[static_cast<std::size_t>(rank)]), folder, name, 60s) == 0);
  }
  const nlohmann::json results = benchmark.results();
  REQUIRE(results.size() == 2);
  CHECK(results.at(1).at("nlayers") == 2);
  CHECK(results.at(1).at("actions") == 20 * 2);
  CHECK(results.at(1).at("start_to_first_action_s").is_null());
}

}  // namespace rl_benchmark_test
}  // namespace batchrpc_examples
