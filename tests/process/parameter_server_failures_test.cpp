#include "process/parameter_server_program.hpp"

// What the program `parameter_server` says and reports when something goes wrong.
namespace batchrpc_examples {
namespace parameter_server_failures_test {

TEST_CASE("servers go on from the newest checkpoint that all have, or say why not") {
  const Folder folder;
  const auto train = [&](const std::string& trainers, const std::string& iterations) {
    return run(folder,
               {"--trainers", trainers, "--iterations", iterations, "--servers", "2", "--check",
                "--checkpoint", folder.file(""), "--json", folder.file("report")});
  };
  CHECK(train("2", "2") == 0);
  CHECK(train("2", "2") == 0);
  CHECK_THAT(folder.text("all.err"), Catch::StartsWith("Notice: nothing is left to do: ") &&
                                         Catch::Contains("are from after 2 iterations"));
  CHECK(folder.json("report").at("check").at("passed") == true);
  CHECK(train("2", "1") == 1);  // --check has nothing to compare with
  CHECK_THAT(folder.json("report").at("error").get<std::string>(),
             Catch::Contains("the model has already had 2 iterations, but --iterations is 1"));

  // As if server 1 had been killed before it wrote its last one.
  REQUIRE(std::filesystem::remove(folder.file("server1.2.checkpoint")));
  CHECK(train("2", "3") == 0);
  CHECK_THAT(folder.text("all.err"),
             Catch::Contains("server0.2.checkpoint was removed, because not all servers have it"));
  CHECK(folder.json("report").at("first_iteration") == 1);
  CHECK(folder.json("report").at("check").at("relative_difference") <= 1e-6);

  CHECK(train("1", "4") == 1);
  CHECK_THAT(folder.text("all.err"),
             Catch::Contains(
                 "not checked: the model was trained with gradients of 2 trainers, each with 2 "
                 "images"));
  CHECK_FALSE(folder.json("report").at("check").at("not_checked").empty());
  CHECK_THAT(folder.json("report").at("error").get<std::string>(),
             Catch::StartsWith("not checked: the model was trained with gradients of 2 trainers"));

  REQUIRE(std::filesystem::remove(folder.file("server0.3.checkpoint")));
  REQUIRE(std::filesystem::remove(folder.file("server0.4.checkpoint")));
  CHECK(train("2", "5") == 1);
  const std::string error = folder.text("all.err");
  CHECK_THAT(error, Catch::Contains("server0 has none, server1 has 3 4; restore"));
  CHECK(std::count(error.begin(), error.end(), '\n') == 1);
}

TEST_CASE("servers with a checkpoint each, and none in common, remove nothing") {
  const Folder folder;
  const auto train = [&](const std::string& iterations) {
    return run(folder, {"--trainers", "1", "--servers", "2", "--iterations", iterations,
                        "--checkpoint", folder.file("")});
  };
  CHECK(train("2") == 0);
  REQUIRE(std::filesystem::remove(folder.file("server0.1.checkpoint")));
  REQUIRE(std::filesystem::remove(folder.file("server1.2.checkpoint")));
  CHECK(train("3") == 1);
  CHECK_THAT(folder.text("all.err"), Catch::Contains("server0 has 2, server1 has 1; restore"));
  CHECK(std::filesystem::exists(folder.file("server0.2.checkpoint")));
  CHECK(std::filesystem::exists(folder.file("server1.1.checkpoint")));
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
  CHECK_THAT(error,
             Catch::Contains("server0.1.checkpoint: belongs to a training with --servers 2, but "
                             "this one has --servers " +
                             others + ": use the same number"));
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
  const std::string error = folder.text("all.err");
  const std::string last = error.substr(error.rfind('\n', error.size() - 2) + 1);
  CHECK_THAT(last, Catch::StartsWith("parameter_server: all checkpoints of server1") &&
                       Catch::Contains("are damaged"));
  CHECK(std::count(error.begin(), error.end(), '\n') == 3);  // two of what is damaged
  CHECK_THAT(folder.json("report").at("error").get<std::string>(),
             Catch::StartsWith("all checkpoints of server1"));
}

TEST_CASE("a checkpoint that another server cannot write makes the command fail") {
  const Folder folder;
  std::filesystem::create_directory(folder.file("server1.1.checkpoint.new"));
  CHECK(run(folder, {"--trainers", "1", "--servers", "2", "--iterations", "1", "--checkpoint",
                     folder.file(""), "--json", folder.file("report")}) == 1);
  CHECK(folder.json("report").at("failed_servers") == Words{"server1 exited with code 1"});
  CHECK(folder.json("report").at("error") == "server1 exited with code 1");
}

TEST_CASE("a last checkpoint that cannot be written makes the command fail, and is why") {
  const Folder folder;
  std::filesystem::create_directory(folder.file("server0.1.checkpoint.new"));
  CHECK(run(folder, {"--trainers", "1", "--iterations", "1", "--checkpoint", folder.file(""),
                     "--json", folder.file("report")}) == 1);
  const std::string error = folder.text("all.err");
  CHECK_THAT(error, Catch::StartsWith("parameter_server: no checkpoint after 1 iteration: ") &&
                        Catch::Contains("server0.1.checkpoint.new"));
  CHECK(std::count(error.begin(), error.end(), '\n') == 1);
  CHECK("parameter_server: " + folder.json("report").at("error").get<std::string>() + "\n" ==
        error);
}

TEST_CASE("a trainer of another mode ends, and says why") {
  const Folder folder;
  const Training training(
      folder, 3, {"--iterations", "2", "--synthetic", "--no-sum", "--json", folder.file("report")});
  ChildProcess server = training.rank(0);
  ChildProcess other = training.rank(1, {"--mode", "sync"});
  ChildProcess trainer = training.rank(2);
  CHECK(other.wait_for(60s)->code == 1);
  CHECK_THAT(folder.text("1.err"),
             Catch::Contains("server0 uses --mode batch, but this trainer uses --mode sync"));
  CHECK(trainer.wait_for(60s)->success());
  CHECK(server.wait_for(60s)->success());
  CHECK(folder.text("0.err") ==
        "Notice: trainer0 ends: server0 uses --mode batch, but this trainer uses --mode sync\n");
  CHECK(folder.json("report").at("lost_trainers").empty());
  CHECK(folder.json("report").at("failed_trainers").size() == 1);
}

TEST_CASE("a trainer, or another server, that waits for server 0 says where") {
  const Folder folder;
  const Training training(folder, 3, {"--servers", "2"});
  const ChildProcess server = training.rank(1);
  const ChildProcess trainer = training.rank(2);
  const std::string where =
      " waits for server0 at tcp://127.0.0.1:" + std::to_string(training.port);
  CHECK(has_printed(folder, "1.err", "Notice: server1" + where));
  CHECK(has_printed(folder, "2.err", "Notice: trainer0" + where));
}

TEST_CASE("a process that ends before the training has begun is named") {
  const Folder folder;
  ChildProcess server =
      start(folder, "all", parameter_server({"--trainers", "2", "--iterations", "1"}));
  REQUIRE(becomes_true([&] { return children_of(server.pid()).size() == 2; }));
  ::kill(children_of(server.pid()).at(1), SIGKILL);
  CHECK(end_of(std::move(server), folder, "all", 60s) == 1);
  CHECK(folder.text("all.err") ==
        "parameter_server: trainer1 was ended by signal 9 (Killed) before the training had "
        "begun\n");
}

TEST_CASE("a training whose gradients are refused says why") {
  const Folder folder;
  CHECK(run(folder, {"--trainers", "2", "--iterations", "3", "--lr", "1000000", "--refuse-nan",
                     "--json", folder.file("report")}) == 1);
  const nlohmann::json report = folder.json("report");
  CHECK_THAT(report.at("error").get<std::string>(),
             Catch::StartsWith("every trainer is lost or has failed, after ") &&
                 Catch::Contains(": the gradient contains NaN or infinity"));
  CHECK(report.at("failed_trainers").size() == 2);
  CHECK(report.at("lost_trainers").empty());
}

TEST_CASE("a trainer that stands still is lost, and has not failed when it wakes") {
  const Folder folder;
  const Training training(
      folder, 3,
      {"--iterations", "1000000", "--synthetic", "--no-sum", "--json", folder.file("report")});
  ChildProcess server = training.rank(0);
  const ChildProcess trainer = training.rank(1);
  ChildProcess stopped = training.rank(2);
  REQUIRE(has_printed(folder, "0.out", "| 2 trainers |"));
  stopped.signal(SIGSTOP);
  REQUIRE(has_printed(folder, "0.err", "trainer1 is lost: "));
  stopped.signal(SIGCONT);
  CHECK(stopped.wait_for(60s)->code == 1);
  CHECK_THAT(folder.text("2.err"), Catch::StartsWith("parameter_server: trainer1"));
  server.signal(SIGTERM);
  CHECK(server.wait_for(60s)->code == 128 + SIGTERM);
  CHECK(folder.json("report").at("lost_trainers") == Words{"trainer1"});
  CHECK(folder.json("report").at("failed_trainers").empty());
}

TEST_CASE("a parameter server that is interrupted misses nobody") {
  const Folder folder;
  ChildProcess server =
      start(folder, "all",
            parameter_server({"--trainers", "2", "--servers", "2", "--iterations", "1000000",
                              "--synthetic", "--no-sum", "--json", folder.file("report")}));
  REQUIRE(has_printed(folder, "all.out", "| 2 trainers |"));
  const int number = GENERATE(SIGTERM, SIGINT);
  server.signal(number);
  CHECK(server.wait_for(60s)->code == 128 + number);
  CHECK(folder.text("all.err") == "parameter_server: interrupted\n");
  CHECK(folder.json("report").at("lost_trainers").empty());
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
                          {"--iterations", "1000000", "--synthetic", "--no-sum", "--servers", "2",
                           "--json", folder.file("report")});
  ChildProcess server = training.rank(0);
  ChildProcess killed = training.rank(1);
  ChildProcess trainer = training.rank(2);
  REQUIRE(has_printed(folder, "0.out", "| 1 trainer |"));
  killed.signal(SIGKILL);
  CHECK(trainer.wait_for(60s)->code == 1);
  CHECK(server.wait_for(60s)->code == 1);
  CHECK_THAT(folder.text("0.err"), Catch::Contains("Notice: server1 is lost: "));
  const nlohmann::json report = folder.json("report");
  CHECK_THAT(report.at("error").get<std::string>(),
             Catch::StartsWith("server1 is lost: ") && Catch::Contains(", after "));
  CHECK(report.at("failed_servers").size() == 1);
  CHECK(report.at("lost_trainers").empty());
}

}  // namespace parameter_server_failures_test
}  // namespace batchrpc_examples
