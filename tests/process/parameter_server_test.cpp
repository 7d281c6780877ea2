#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/free_port.hpp"
#include "common/process.hpp"

// The program `parameter_server`, as people start it.
namespace batchrpc_examples {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / name()) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  [[nodiscard]] nlohmann::json json(const std::string& name) const {
    return nlohmann::json::parse(text(name));
  }

 private:
  static std::string name() {
    static int count = 0;
    return "batchrpc_parameter_server_test_" + std::to_string(::getpid()) + "_" +
           std::to_string(count++);
  }
  std::filesystem::path path_;
};

const Words kSmall{"--batch-size", "2", "--image", "32"};

// Starts the program with its output in files of the folder: NAME.out and NAME.err.
ChildProcess start(const Folder& folder, const std::string& name, const Words& words,
                   const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  ProcessOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c",
                       "out=$1; err=$2; shift 2; exec \"$@\" > \"$out\" 2> \"$err\"",
                       "sh",
                       folder.file(name + ".out"),
                       folder.file(name + ".err"),
                       std::string(BATCHRPC_BIN_DIR) + "/parameter_server"};
  for (const Words& some : {kSmall, words})
    options.arguments.insert(options.arguments.end(), some.begin(), some.end());
  options.environment = environment;
  return ChildProcess(options);
}

int run(const Folder& folder, const Words& words) {
  ChildProcess child = start(folder, "all", words);
  const auto end = child.wait_for(100s);
  UNSCOPED_INFO("stderr: " << folder.text("all.err"));
  REQUIRE(end);
  return end->signal != 0 ? -end->signal : end->code;
}

template <class Condition>
bool becomes_true(Condition condition, std::chrono::seconds limit = 60s) {
  const auto deadline = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

bool has_printed(const Folder& folder, const std::string& name, const std::string& text) {
  return becomes_true([&] { return folder.text(name).find(text) != std::string::npos; });
}

// A training whose processes are started one by one, as torchrun does.
struct Training {
  Training(const Folder& its_folder, int size, Words words)
      : folder(its_folder), world_size(size), arguments(std::move(words)) {}

  ChildProcess rank(int rank, const Words& more = {}) const {
    Words words = arguments;
    words.insert(words.end(), more.begin(), more.end());
    return start(folder, std::to_string(rank), words,
                 {{"MASTER_ADDR", "127.0.0.1"},
                  {"MASTER_PORT", std::to_string(port)},
                  {"RANK", std::to_string(rank)},
                  {"WORLD_SIZE", std::to_string(world_size)}});
  }

  const Folder& folder;
  int world_size;
  Words arguments;
  std::uint16_t port = free_port();
};

void check_twice(std::size_t iterations, Words words) {
  const Folder folder;
  std::string hash;
  words.insert(words.end(), {"--iterations", std::to_string(iterations), "--check", "--json",
                             folder.file("report")});
  for (int round = 0; round < 2; ++round) {
    CHECK(run(folder, words) == 0);
    const nlohmann::json report = folder.json("report");
    CHECK(report.at("check").at("relative_difference") <= 1e-6);
    CHECK(report.at("iterations").size() == iterations);
    if (round == 1) CHECK(report.at("parameters_hash") == hash);
    hash = report.at("parameters_hash");
  }
}

TEST_CASE("a parameter server's model is that of one process, and the same bits in each run") {
  check_twice(6, {"--trainers", "5", "--transport", "tcp"});
}

TEST_CASE("the model of two servers is that of one process, and the same bits in each run") {
  check_twice(2, {"--trainers", "3", "--transport", "unix", "--servers", "2"});
}

TEST_CASE("a parameter server trains in each mode, and draws the time by phase") {
  const std::string mode = GENERATE("batch", "sync", "async");
  CAPTURE(mode);
  const Folder folder;
  CHECK(run(folder, {"--trainers", "2", "--iterations", "2", "--mode", mode, "--json",
                     folder.file("report"), "--figure", folder.file("phases.svg")}) == 0);
  CHECK(folder.text("all.err").empty());
  CHECK_THAT(folder.text("all.out"), Catch::Contains("Iteration 1 | loss "));
  CHECK(std::filesystem::file_size(folder.file("phases.png")) > 0);
  for (const nlohmann::json& iteration : folder.json("report").at("iterations"))
    CHECK(iteration.at("trainers") == 2);
}

TEST_CASE("traffic alone needs no computing") {
  const Folder folder;
  CHECK(run(folder, {"--trainers", "2", "--iterations", "3", "--synthetic", "--no-sum", "--json",
                     folder.file("report")}) == 0);
  const nlohmann::json report = folder.json("report");
  CHECK(report.at("iterations").size() == 3);
  CHECK(report.at("iterations")[2].at("bytes") == 2 * 2 * 4 * 23'569'502.0);
}

TEST_CASE("training goes on without a trainer that is killed, and with one that comes late") {
  const Folder folder;
  const Training training(
      folder, 3, {"--iterations", "1000000", "--synthetic", "--no-sum", "--transport", "unix"});
  ChildProcess server = training.rank(0);
  ChildProcess stays = training.rank(1);
  ChildProcess killed = training.rank(2);
  REQUIRE(has_printed(folder, "0.out", "| 2 trainers |"));
  killed.signal(SIGKILL);
  REQUIRE(has_printed(folder, "0.out", "| 1 trainer |"));
  CHECK_THAT(folder.text("0.err"), Catch::Contains("Notice: trainer1 is lost: "));
  ChildProcess again = training.rank(2);
  ChildProcess another = training.rank(3);
  CHECK(has_printed(folder, "0.out", "| 3 trainers |"));
  CHECK_FALSE(server.poll());
  CHECK_FALSE(stays.poll());
}

TEST_CASE(
    "trainers end with a message within six seconds when the server is killed, which goes "
    "on from its checkpoint") {
  const Folder folder;
  Training training(folder, 3, {"--iterations", "4", "--check", "--checkpoint", folder.file("")});
  ChildProcess server = training.rank(0);
  std::vector<ChildProcess> trainers;
  trainers.push_back(training.rank(1));
  trainers.push_back(training.rank(2));
  REQUIRE(has_printed(folder, "0.out", "Iteration 0"));
  server.signal(SIGKILL);
  const auto end = Clock::now() + 6s;
  for (int rank = 1; rank <= 2; ++rank) {
    auto& trainer = trainers.at(static_cast<std::size_t>(rank) - 1);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    const auto exit = trainer.wait_for(left);
    REQUIRE(exit);
    CHECK(exit->code == 1);
    const std::string error = folder.text(std::to_string(rank) + ".err");
    CHECK_THAT(error, Catch::Contains("trainer" + std::to_string(rank - 1) +
                                      " ends, for its server is gone: server0 is lost"));
    CHECK(std::count(error.begin(), error.end(), '\n') == 1);
  }
  CHECK(run(folder, {"--trainers", "2", "--iterations", "4", "--check", "--checkpoint",
                     folder.file(""), "--json", folder.file("report")}) == 0);
  const nlohmann::json report = folder.json("report");
  CHECK(report.at("first_iteration") >= 1);
  CHECK(report.at("check").at("relative_difference") <= 1e-6);
}

TEST_CASE("servers go on from the newest checkpoint that all have, or say why not") {
  const Folder folder;
  const auto train = [&](const std::string& trainers, const std::string& iterations) {
    return run(folder,
               {"--trainers", trainers, "--iterations", iterations, "--servers", "2", "--check",
                "--checkpoint", folder.file(""), "--json", folder.file("report")});
  };
  CHECK(train("2", "2") == 0);
  CHECK(train("2", "2") == 1);
  CHECK_THAT(folder.text("all.err"), Catch::Contains("nothing is left to do"));

  // As if server 1 had been killed before it wrote its last one.
  REQUIRE(std::filesystem::remove(folder.file("server1.2.checkpoint")));
  CHECK(train("2", "3") == 0);
  CHECK(folder.json("report").at("first_iteration") == 1);
  CHECK(folder.json("report").at("check").at("relative_difference") <= 1e-6);

  CHECK(train("1", "4") == 1);
  CHECK_THAT(folder.text("all.out"),
             Catch::Contains("Not checked: the model has had gradients of 2 trainers, each with 2 "
                             "images"));
  CHECK_FALSE(folder.json("report").at("check").at("not_checked").empty());

  REQUIRE(std::filesystem::remove(folder.file("server0.3.checkpoint")));
  REQUIRE(std::filesystem::remove(folder.file("server0.4.checkpoint")));
  CHECK(train("2", "5") == 1);
  CHECK_THAT(folder.text("all.err"), Catch::Contains("server0 from 0, server1 from 3 4"));
}

TEST_CASE("checkpoints of another number of servers are refused, with what to do") {
  const Folder folder;
  const auto train = [&](const std::string& servers) {
    return run(folder, {"--trainers", "1", "--iterations", "1", "--servers", servers,
                        "--checkpoint", folder.file(""), "--json", folder.file("report")});
  };
  CHECK(train("2") == 0);
  const std::string others = GENERATE("1", "3");
  CHECK(train(others) == 1);
  const std::string error = folder.text("all.err");
  CHECK_THAT(error, Catch::Contains("server0.1.checkpoint: is of a training with --servers 2, and "
                                    "this one is with --servers " +
                                    others + ": go on with"));
  CHECK(std::count(error.begin(), error.end(), '\n') == 1);
  CHECK_THAT(folder.json("report").at("error").get<std::string>(), Catch::Contains("--servers 2"));
}

TEST_CASE("servers go on from the newest checkpoint that is damaged at none of them") {
  const Folder folder;
  const auto train = [&](const std::string& iterations) {
    return run(folder, {"--trainers", "1", "--iterations", iterations, "--servers", "2",
                        "--checkpoint", folder.file(""), "--json", folder.file("report")});
  };
  CHECK(train("2") == 0);
  std::filesystem::resize_file(folder.file("server1.2.checkpoint"), 1000);
  CHECK(train("3") == 0);
  CHECK_THAT(folder.text("all.err"),
             Catch::StartsWith("Notice: ") && Catch::Contains("server1.2.checkpoint: is cut off"));
  CHECK(folder.json("report").at("first_iteration") == 1);

  for (const std::string name : {"server1.2.checkpoint", "server1.3.checkpoint"})
    std::ofstream(folder.file(name)) << "garbage";
  CHECK(train("4") == 1);
  CHECK_THAT(folder.text("all.err"), Catch::Contains("all checkpoints of server1") &&
                                         Catch::Contains("are damaged") &&
                                         !Catch::Contains("interrupted"));
}

TEST_CASE("a checkpoint that another server cannot write makes the command fail") {
  const Folder folder;
  std::filesystem::create_directory(folder.file("server1.1.checkpoint.new"));
  CHECK(run(folder, {"--trainers", "1", "--servers", "2", "--iterations", "1", "--checkpoint",
                     folder.file(""), "--json", folder.file("report")}) == 1);
  CHECK(folder.json("report").at("failed_servers") == Words{"server1 exited with code 1"});
}

TEST_CASE("a trainer of another mode ends, and says why") {
  const Folder folder;
  const Training training(folder, 3, {"--iterations", "2", "--synthetic", "--no-sum"});
  ChildProcess server = training.rank(0);
  ChildProcess other = training.rank(1, {"--mode", "sync"});
  ChildProcess trainer = training.rank(2);
  CHECK(other.wait_for(60s)->code == 1);
  CHECK_THAT(folder.text("1.err"),
             Catch::Contains("server0 trains with --mode batch, this trainer with --mode sync"));
  CHECK(trainer.wait_for(60s)->success());
  CHECK(server.wait_for(60s)->success());
}

TEST_CASE("a training that fails reports why, and what it has measured") {
  const Folder folder;
  const Training training(folder, 2,
                          {"--iterations", "1000000", "--synthetic", "--no-sum", "--mode", "async",
                           "--json", folder.file("report")});
  ChildProcess server = training.rank(0);
  ChildProcess trainer = training.rank(1);
  REQUIRE(has_printed(folder, "0.out", "| 1 trainer |"));
  std::string why;
  SECTION("when every trainer is killed") {
    trainer.signal(SIGKILL);
    CHECK(server.wait_for(60s)->code == 1);
    why = "every trainer is lost, after ";
  }
  SECTION("when it is interrupted") {
    server.signal(SIGTERM);
    CHECK(server.wait_for(60s)->code == 128 + SIGTERM);
    why = "interrupted";
  }
  CHECK_THAT(folder.text("0.err"), Catch::Contains(why));
  const nlohmann::json report = folder.json("report");
  CHECK_THAT(report.at("error").get<std::string>(), Catch::StartsWith(why));
  CHECK_FALSE(report.at("iterations").empty());
  CHECK(report.at("work_seconds") > 0);
}

TEST_CASE("a training whose loss is NaN goes on, and says so once") {
  const Folder folder;
  CHECK(run(folder, {"--trainers", "2", "--iterations", "4", "--lr", "1000000", "--json",
                     folder.file("report")}) == 0);
  const std::string error = folder.text("all.err");
  CHECK_THAT(error, Catch::StartsWith("Notice: the loss of trainer"));
  CHECK(std::count(error.begin(), error.end(), '\n') == 1);
  CHECK_FALSE(folder.json("report").contains("error"));
}

TEST_CASE("a server tells that another one is lost") {
  const Folder folder;
  const Training training(folder, 3,
                          {"--iterations", "1000000", "--synthetic", "--no-sum", "--servers", "2"});
  ChildProcess server = training.rank(0);
  ChildProcess killed = training.rank(1);
  ChildProcess trainer = training.rank(2);
  REQUIRE(has_printed(folder, "0.out", "| 1 trainer |"));
  killed.signal(SIGKILL);
  CHECK(trainer.wait_for(60s)->code == 1);
  CHECK(server.wait_for(60s)->code == 1);
  CHECK_THAT(folder.text("0.err"), Catch::Contains("Notice: server1 is lost: "));
}

TEST_CASE(
    "a server's memory is that of model, sum, optimizer and half as much again as a message") {
  const Folder folder;
  CHECK(run(folder, {"--trainers", "5", "--iterations", "4", "--json", folder.file("report")}) ==
        0);
  const nlohmann::json report = folder.json("report");
  const double messages =
      report.at("server_memory_bytes").get<double>() / report.at("message_bytes").get<double>();
  CHECK(messages > 3);
  CHECK(messages < 4.5);
}

TEST_CASE("the help of parameter_server names the devices") {
  const Folder folder;
  CHECK(run(folder, {"--help"}) == 0);
  CHECK_THAT(folder.text("all.out"), Catch::Contains("--device ENUM:cpu|cuda=cpu"));
}

TEST_CASE("wrong options of parameter_server are answered with one line and exit code 2") {
  const Folder folder;
  CHECK(run(folder, {"--trainers", "none"}) == 2);
  const std::string error = folder.text("all.err");
  CHECK_THAT(error, Catch::StartsWith("parameter_server: ") && Catch::EndsWith("; see --help\n"));
  CHECK(std::count(error.begin(), error.end(), '\n') == 1);
}

}  // namespace
}  // namespace batchrpc_examples
