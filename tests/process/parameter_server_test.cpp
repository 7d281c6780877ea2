#include "process/parameter_server_program.hpp"

namespace batchrpc_examples {
namespace parameter_server_test {

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
  check_twice(3, {"--trainers", "5", "--transport", "tcp"});
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
  for (const std::string name : {"trainer1", "trainer2"})
    CHECK_THAT(folder.text("0.err"), Catch::Contains("Notice: " + name + " has joined; "));
  CHECK_THAT(folder.text("0.err"), !Catch::Contains("trainer0 has joined"));
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
    // It is lost, or the connection to it has just broken.
    CHECK_THAT(error, Catch::Contains("trainer" + std::to_string(rank - 1) +
                                      " ends because its server is gone: ") &&
                          Catch::Contains("server0"));
    CHECK(std::count(error.begin(), error.end(), '\n') == 1);
  }
  CHECK(run(folder, {"--trainers", "2", "--iterations", "4", "--check", "--checkpoint",
                     folder.file(""), "--json", folder.file("report")}) == 0);
  const nlohmann::json report = folder.json("report");
  CHECK(report.at("first_iteration") >= 1);
  CHECK(report.at("check").at("relative_difference") <= 1e-6);
}

TEST_CASE(
    "a server's memory is that of model, sum, optimizer and half as much again as a message") {
  for (const std::string transport : {"tcp", "unix"}) {
    const Folder folder;
    CHECK(run(folder, {"--trainers", "5", "--iterations", "4", "--transport", transport, "--json",
                       folder.file("report")}) == 0);
    const nlohmann::json report = folder.json("report");
    const double messages =
        report.at("server_memory_bytes").get<double>() / report.at("message_bytes").get<double>();
    CHECK(messages > 3);
    CHECK(messages < 4.5);
  }
}

TEST_CASE("the help of parameter_server names the devices, and who comes in addition") {
  const Folder folder;
  CHECK(run(folder, {"--help"}) == 0);
  CHECK_THAT(folder.text("all.out"),
             Catch::Contains("--device ENUM:cpu|cuda=cpu") &&
                 Catch::Contains("a RANK from WORLD_SIZE on is an additional trainer"));
}

TEST_CASE("wrong options of parameter_server are answered with one line and exit code 2") {
  const Folder folder;
  CHECK(run(folder, {"--trainers", "none"}) == 2);
  const std::string error = folder.text("all.err");
  CHECK_THAT(error, Catch::StartsWith("parameter_server: ") && Catch::EndsWith("; see --help\n"));
  CHECK(std::count(error.begin(), error.end(), '\n') == 1);
}

}  // namespace parameter_server_test
}  // namespace batchrpc_examples
