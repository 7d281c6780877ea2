#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/free_port.hpp"
#include "common/process.hpp"
#include "process/program_run.hpp"

// The program `cartpole`, as people start it.
namespace batchrpc_examples {
namespace cartpole_test {

const std::string kPrograms = BATCHRPC_BIN_DIR;

Words cartpole(const Words& arguments, const std::string& program = "cartpole") {
  Words command{kPrograms + "/" + program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

// Runs to its end; gives the exit code, or minus the signal.
int run(const Folder& folder, const Words& arguments) {
  return end_of(start(folder, "cartpole", cartpole(arguments)), folder, "cartpole", 60s);
}

bool runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.at(name_end + 2) != 'Z';
}

bool has_begun(const Folder& folder, const std::string& name = "cartpole") {
  return has_printed(folder, name + ".out", "Episode 0 ", 30s);
}

const Words kEndless{"--episodes", "1000000", "--steps", "100"};
Words endless(const Words& more) {
  Words all = kEndless;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_CASE(
    "cartpole trains with processes of its own, in batches and without, over each transport") {
  const std::string batch = GENERATE("true", "false");
  const std::string transport = GENERATE("auto", "tcp", "unix");
  CAPTURE(batch, transport);
  const Folder folder;
  const int code = run(folder, {"--world-size", "4", "--episodes", "3", "--steps", "50", "--batch",
                                batch, "--transport", transport, "--json", folder.file("report"),
                                "--figure", folder.file("curve.svg")});
  CHECK(code == 0);
  CHECK(folder.text("cartpole.err").empty());
  CHECK_THAT(folder.text("cartpole.out"), Catch::StartsWith("Episode 0  Last reward: "));
  CHECK_THAT(folder.text("cartpole.out"), Catch::Contains("\nEpisode 2  Last reward: "));
  CHECK(std::filesystem::file_size(folder.file("curve.svg")) > 0);
  CHECK(std::filesystem::file_size(folder.file("curve.png")) > 0);

  const nlohmann::json report = folder.json("report");
  CHECK(report.at("setup_seconds") > 0);
  CHECK(report.at("work_seconds") > 0);
  CHECK(report.at("env_steps") == 3 * 3 * 50);
  CHECK(report.at("env_steps_per_s") > 0);
  CHECK(report.at("running_reward") > 0);
  CHECK(report.at("solved_at_episode").is_null());
  CHECK(report.at("episodes").size() == 3);
  CHECK(report.at("settings").at("transport") == transport);
  CHECK(report.at("machine").at("cpus") > 0);
  CHECK_FALSE(report.at("versions").at("libtorch").empty());
}

TEST_CASE("runs of cartpole with one seed and one observer are the same, bit for bit") {
  const Folder folder;
  const auto result = [&](const std::string& seed) {
    const std::string file = folder.file("report");
    REQUIRE(run(folder, {"--world-size", "2", "--episodes", "4", "--steps", "200", "--seed", seed,
                         "--json", file}) == 0);
    nlohmann::json report = folder.json("report");
    nlohmann::json same{report.at("policy_hash"), report.at("running_reward")};
    for (const auto& episode : report.at("episodes"))
      same.push_back(episode.at("last_reward"));
    return same;
  };
  const nlohmann::json first = result("543");
  CHECK(first == result("543"));
  CHECK(first != result("544"));
}

TEST_CASE("cartpole's training goes on when an observer is killed") {
  const std::string batch = GENERATE("true", "false");
  CAPTURE(batch);
  const Folder folder;
  ChildProcess agent = start(folder, "cartpole",
                             cartpole({"--world-size", "5", "--episodes", "60", "--steps", "200",
                                       "--batch", batch, "--json", folder.file("report")}));
  REQUIRE(has_begun(folder));
  const std::vector<pid_t> observers = children_of(agent.pid());
  REQUIRE(observers.size() == 4);
  ::kill(observers.at(1), SIGKILL);
  const auto end = agent.wait_for(60s);
  REQUIRE(end);
  CHECK(end->success());
  CHECK_THAT(folder.text("cartpole.err"), Catch::Contains("observer2 is lost"));
  const nlohmann::json report = folder.json("report");
  CHECK(report.at("lost_observers") == nlohmann::json{"observer2"});
  CHECK(report.at("episodes").size() == 60);
  CHECK(report.at("episodes").front().at("observers") == 4);
  CHECK(report.at("episodes").back().at("observers") == 3);
}

TEST_CASE("cartpole ends with a message when its only observer is killed") {
  const Folder folder;
  ChildProcess agent = start(folder, "cartpole", cartpole(endless({"--world-size", "2"})));
  REQUIRE(has_begun(folder));
  ::kill(children_of(agent.pid()).at(0), SIGKILL);
  const auto end = agent.wait_for(10s);
  REQUIRE(end);
  CHECK(end->code == 1);
  CHECK_THAT(folder.text("cartpole.err"), Catch::Contains("all observers are lost"));
}

TEST_CASE("observers end with a message within six seconds when the agent is killed") {
  const std::string observer = GENERATE("cartpole", "cartpole_observer");
  CAPTURE(observer);
  const Folder folder;
  const Words group{"--world-size", "3", "--join",
                    "tcp://127.0.0.1:" + std::to_string(free_port())};
  const auto with_rank = [&](const std::string& rank, Words words) {
    words.insert(words.end(), {"--rank", rank});
    words.insert(words.end(), group.begin(), group.end());
    return words;
  };
  ChildProcess agent = start(folder, "agent", cartpole(with_rank("0", kEndless)));
  ChildProcess first = start(folder, "first", cartpole(with_rank("1", {}), observer));
  ChildProcess second = start(folder, "second", cartpole(with_rank("2", {}), observer));
  REQUIRE(has_begun(folder, "agent"));
  agent.signal(SIGKILL);
  const auto killed = Clock::now();
  for (ChildProcess* child : {&first, &second}) {
    const auto end = child->wait_for(10s);
    REQUIRE(end);
    CHECK(end->code == 1);
  }
  CHECK(Clock::now() - killed < 6s);
  CHECK_THAT(folder.text("first.err"), Catch::Contains("observer1: the agent was lost"));
  CHECK_THAT(folder.text("second.err"), Catch::Contains("observer2: the agent was lost"));
}

TEST_CASE("the observers that a killed agent had started do not outlive it") {
  const Folder folder;
  ChildProcess agent = start(folder, "cartpole", cartpole(endless({"--world-size", "4"})));
  REQUIRE(has_begun(folder));
  const std::vector<pid_t> observers = children_of(agent.pid());
  REQUIRE(observers.size() == 3);
  agent.signal(SIGKILL);
  for (const pid_t observer : observers)
    CHECK(becomes_true([&] { return !runs(observer); }, 6s));
  CHECK_THAT(folder.text("cartpole.err"), Catch::Contains("observer3: the agent was lost"));
}

TEST_CASE("an interrupt ends cartpole and its observers in good order") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  const Folder folder;
  ChildProcess agent = start(folder, "cartpole", cartpole(endless({"--world-size", "4"})));
  REQUIRE(has_begun(folder));
  const std::vector<pid_t> observers = children_of(agent.pid());
  for (const pid_t observer : observers)
    ::kill(observer, SIGINT);  // as a terminal does, to all
  agent.signal(signal);
  const auto end = agent.wait_for(10s);
  REQUIRE(end);
  CHECK(end->describe() == "exited with code " + std::to_string(128 + signal));
  for (const pid_t observer : observers)
    CHECK_FALSE(runs(observer));
  CHECK(folder.text("cartpole.err") == "cartpole: interrupted\n");
}

TEST_CASE("an interrupt ends cartpole while it waits for others to join") {
  const Folder folder;
  ChildProcess agent = start(folder, "cartpole",
                             cartpole({"--world-size", "2", "--rank", "0", "--join",
                                       "tcp://127.0.0.1:" + std::to_string(free_port())}));
  std::this_thread::sleep_for(2s);
  agent.signal(SIGINT);
  const auto end = agent.wait_for(10s);
  REQUIRE(end);
  CHECK(end->describe() == "exited with code 130");
}

TEST_CASE("wrong options are answered with one line on standard error, and exit code 2") {
  const Folder folder;
  const Words wrong = GENERATE(values<Words>({{"--world-size", "1"},
                                              {"--no-such-option"},
                                              {"--sweep", "5-2"},
                                              {"--json", "/no/such/folder/report.json"},
                                              {"--rank", "1"},
                                              {"--rank", "1", "--join", "foo://x"},
                                              {"--gamma", "nan"}}));
  CAPTURE(wrong);
  CHECK(run(folder, wrong) == 2);
  CHECK(folder.text("cartpole.out").empty());
  const std::string error = folder.text("cartpole.err");
  CHECK_THAT(error, Catch::StartsWith("cartpole: ") && Catch::EndsWith("; see --help\n"));
  CHECK(std::count(error.begin(), error.end(), '\n') == 1);
}

TEST_CASE("cartpole says when it has not solved the task") {
  const Folder folder;
  CHECK(run(folder, {"--world-size", "2", "--until-solved", "--episodes-max", "2", "--steps", "50",
                     "--json", folder.file("report")}) == 1);
  CHECK_THAT(folder.text("cartpole.out"), Catch::Contains("Not solved after 2 episodes"));
  CHECK(folder.json("report").at("solved_at_episode").is_null());
}

TEST_CASE("a sweep times batch against no batch, and draws both") {
  const Folder folder;
  CHECK(run(folder, {"--sweep", "2-3", "--episodes", "2", "--steps", "50", "--json",
                     folder.file("report"), "--figure", folder.file("sweep.svg")}) == 0);
  CHECK_THAT(folder.text("cartpole.out"),
             Catch::StartsWith("world size, seconds batch, seconds no batch"));
  CHECK(std::filesystem::file_size(folder.file("sweep.png")) > 0);
  const nlohmann::json rows = folder.json("report").at("sweep");
  REQUIRE(rows.size() == 2);
  CHECK(rows.at(1).at("world_size") == 3);
  CHECK(rows.at(1).at("batch").at("env_steps") == 2 * 2 * 50);
  CHECK(rows.at(1).at("no_batch").at("work_seconds") > 0);
}

TEST_CASE("torchrun starts cartpole as one process a rank") {
  const Folder folder;
  ChildProcess probe =
      start(folder, "probe", {"/usr/bin/python3", "-c", "import torch.distributed.run"});
  if (!probe.wait().success()) {
    WARN("left out: /usr/bin/python3 has no torch (Debian: python3-torch)");
    return;
  }
  const std::string port = std::to_string(free_port());
  Words command{"/usr/bin/python3", "-m", "torch.distributed.run", "--no_python"};
  for (const Words& more :
       {Words{"--nproc_per_node", "3", "--master_port", port},
        Words{"--redirects", "1", "--tee", "1", "--log_dir", folder.file("log")},
        cartpole({"--episodes", "2", "--steps", "50", "--json", folder.file("report")})}) {
    command.insert(command.end(), more.begin(), more.end());
  }
  const auto run = [&] { return start(folder, "torchrun", command).wait_for(60s); };
  auto end = run();
  // The port that torchrun finds is free until somebody else takes it before rank 0 does.
  if (folder.text("torchrun.err").find("the address is taken") != std::string::npos) end = run();
  INFO(folder.text("torchrun.err"));
  REQUIRE(end);
  CHECK(end->success());
  const nlohmann::json report = folder.json("report");
  CHECK(report.at("world_size") == 3);
  CHECK(report.at("env_steps") == 2 * 2 * 50);
}

}  // namespace cartpole_test
}  // namespace batchrpc_examples
