#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/free_port.hpp"
#include "common/process.hpp"
#include "process/program_run.hpp"

// The program `ppo` with workers, as people start it.
namespace batchrpc_examples {
namespace ppo_test {

Words ppo(const Words& arguments) {
  Words command{std::string(BATCHRPC_BIN_DIR) + "/ppo"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Words training(const std::string& join, const Words& more) {
  Words words{"--workers", "3",  "--envs-per-worker", "4",
              "--steps",   "32", "--total-steps",     "100000000",
              "--join",    join};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_CASE("ppo goes on when a worker is killed, and a replacement takes its place") {
  const std::string inference = GENERATE("agent", "worker");
  CAPTURE(inference);
  const Folder folder;
  const std::string join = "tcp://127.0.0.1:" + std::to_string(free_port());
  ChildProcess agent = start(
      folder, "ppo",
      ppo(training(join, {"--inference", inference, "--checkpoint", folder.file("checkpoints"),
                          "--json", folder.file("report"), "--figure", folder.file("curve.svg")})));
  REQUIRE(has_printed(folder, "ppo.out", "Update ", 30s));
  const std::vector<pid_t> workers = children_of(agent.pid());
  REQUIRE(workers.size() == 3);
  ::kill(workers.at(1), SIGKILL);
  REQUIRE(has_printed(folder, "ppo.err", "worker2 is lost", 30s));
  const ChildProcess replacement =
      start(folder, "replacement", ppo(training(join, {"--inference", inference, "--rank", "2"})));
  CHECK(has_printed(folder, "ppo.err", "worker2 is back", 30s));

  ::kill(agent.pid(), SIGINT);
  const auto end = agent.wait_for(30s);
  REQUIRE(end);
  CHECK(end->code == 128 + SIGINT);
  // What was known is written.
  const nlohmann::json report = folder.json("report");
  CHECK(report.at("error") == "interrupted");
  CHECK(report.at("curve").size() == report.at("updates"));
  CHECK_FALSE(folder.text("curve.svg").empty());
}

TEST_CASE("ppo ends with a checkpoint and says why when all workers are killed, and resumes") {
  const Folder folder;
  const std::string join = "tcp://127.0.0.1:" + std::to_string(free_port());
  const Words words = training(join, {"--checkpoint", folder.file("checkpoints")});
  ChildProcess agent = start(folder, "ppo", ppo(words));
  REQUIRE(has_printed(folder, "ppo.out", "Update ", 30s));
  for (const pid_t worker : children_of(agent.pid()))
    ::kill(worker, SIGKILL);
  const auto end = agent.wait_for(60s);
  REQUIRE(end);
  CHECK(end->code == 1);
  CHECK_THAT(folder.text("ppo.err"), Catch::Contains("all workers are lost") &&
                                         Catch::Contains("the previous state is in"));

  ChildProcess again = start(folder, "again", ppo(words));
  REQUIRE(has_printed(folder, "again.out", "Update ", 30s));
  CHECK_THAT(folder.text("again.err") + folder.text("again.out"),
             Catch::Contains("continuing from"));
  ::kill(again.pid(), SIGINT);
  CHECK(again.wait_for(30s));
}

TEST_CASE("ppo's processes that do not fit together are told so, and by which options") {
  const Folder folder;
  const auto refused = [&folder](const std::string& name, const Words& words) {
    CHECK(end_of(start(folder, name, ppo(words)), folder, name, 30s) != 0);
    std::string text = folder.text(name + ".err");
    CHECK_THAT(text, Catch::Contains("--workers W is a world_size of W + 1, --rank the rank"));
    return text;
  };
  CHECK_THAT(refused("nowhere", {"--workers", "2", "--rank", "1", "--join", "nowhere"}),
             Catch::Contains("join: address 'nowhere'"));
  const std::string join = "tcp://127.0.0.1:" + std::to_string(free_port());
  const auto with = [&join](const std::string& workers, const std::string& rank) {
    return Words{"--workers", workers, "--rank",        rank,
                 "--join",    join,    "--total-steps", "100000000"};
  };
  const ChildProcess agent = start(folder, "ppo", ppo(with("1", "0")));
  const ChildProcess worker = start(folder, "worker", ppo(with("1", "1")));
  REQUIRE(has_printed(folder, "ppo.out", "Update ", 30s));
  CHECK_THAT(refused("more", with("2", "2")), Catch::Contains("give both the same world_size"));
  CHECK_THAT(refused("root", with("1", "0")), Catch::Contains("another NodeOptions::rank"));
  CHECK_THAT(refused("again", with("1", "1")), Catch::Contains("another NodeOptions::name"));
}

TEST_CASE("ppo steps as many environments a worker as its options take") {
  const std::string inference = GENERATE("agent", "worker");
  const Folder folder;
  CHECK(end_of(start(folder, "ppo",
                     ppo({"--workers", "1", "--envs-per-worker", "65536", "--inference", inference,
                          "--steps", "1", "--minibatches", "1", "--epochs", "1", "--total-steps",
                          "65536"})),
               folder, "ppo", 60s) == 0);
}

TEST_CASE("ppo says at once what is wrong with a policy that workers would load") {
  const Folder folder;
  std::ofstream(folder.file("some.pt")) << "some";
  ChildProcess agent = start(folder, "ppo",
                             ppo({"--inference", "worker", "--policy", "script", "--policy-path",
                                  folder.file("some.pt")}));
  const auto end = agent.wait_for(30s);  // a worker that does not come is waited for longer
  REQUIRE(end);
  CHECK(end->code == 2);
  CHECK_THAT(folder.text("ppo.err"), Catch::Contains("some.pt is not a TorchScript policy"));
}

TEST_CASE("ppo says at once that a worker sends no such number of steps in one message") {
  const Folder folder;
  ChildProcess agent =
      start(folder, "ppo",
            ppo({"--inference", "worker", "--steps", "200000", "--total-steps", "100000000"}));
  const auto end = agent.wait_for(60s);
  REQUIRE(end);
  CHECK(end->code == 2);
  CHECK_THAT(folder.text("ppo.err"),
             Catch::Contains("--steps 200000: ") && Catch::Contains("--inference agent"));
}

TEST_CASE("ppo refuses workers whose environments are others than its own") {
  const Folder folder;
  const std::string join = "tcp://127.0.0.1:" + std::to_string(free_port());
  ChildProcess agent = start(folder, "ppo", ppo({"--workers", "1", "--rank", "0", "--join", join}));
  const ChildProcess worker =
      start(folder, "worker",
            ppo({"--workers", "1", "--rank", "1", "--join", join, "--env", "minatar-breakout"}));
  const auto end = agent.wait_for(60s);
  REQUIRE(end);
  CHECK(end->code == 2);
  CHECK_THAT(folder.text("ppo.err"), Catch::Contains("differ from those of --env cartpole"));
}

TEST_CASE("ppo refuses workers that have a policy only here or there, and says how to start them") {
  const std::string agents = GENERATE("agent", "worker");
  const std::string workers = agents == "agent" ? "worker" : "agent";
  const Folder folder;
  const std::string join = "tcp://127.0.0.1:" + std::to_string(free_port());
  const Words common{"--workers", "1", "--join", join, "--rank"};
  const auto with = [&common](Words more) {
    more.insert(more.begin(), common.begin(), common.end());
    return ppo(more);
  };
  ChildProcess agent = start(folder, "ppo", with({"0", "--inference", agents}));
  const ChildProcess worker = start(folder, "worker", with({"1", "--inference", workers}));
  const auto end = agent.wait_for(60s);
  REQUIRE(end);
  CHECK(end->code == 2);
  CHECK_THAT(folder.text("ppo.err"),
             Catch::Contains(agents == "worker" ? "start each with --inference worker"
                                                : "start them without --inference worker"));
}

TEST_CASE("trainings of ppo with one worker and one seed are the same, bit for bit") {
  const Folder folder;
  const auto hash = [&](const Words& more) {
    Words words{
        "--workers", "1",      "--envs-per-worker",  "8", "--total-steps", "4096", "--minibatches",
        "2",         "--json", folder.file("report")};
    words.insert(words.end(), more.begin(), more.end());
    REQUIRE(end_of(start(folder, "ppo", ppo(words)), folder, "ppo", 60s) == 0);
    return folder.json("report").at("weights_hash").get<std::string>();
  };
  const std::string first = hash({});
  CHECK(first == hash({}));
  CHECK(first != hash({"--seed", "2"}));
  const Words at_worker{"--inference", "worker", "--buffers", "2"};
  CHECK(hash(at_worker) == hash(at_worker));
}

}  // namespace ppo_test
}  // namespace batchrpc_examples
