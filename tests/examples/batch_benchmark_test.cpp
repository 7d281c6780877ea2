#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "batch_benchmark/acting_policy.hpp"
#include "batch_benchmark/load.hpp"
#include "batch_benchmark/options.hpp"
#include "batch_benchmark/report.hpp"
#include "batch_benchmark/sections.hpp"
#include "common/command_line.hpp"
#include "common/process.hpp"

namespace batch_benchmark {
namespace batch_benchmark_test {

using namespace std::chrono_literals;
using batchrpc_examples::ChildProcess;

constexpr auto kProgram = BATCHRPC_BIN_DIR "/batch_benchmark";

Options parse(const std::vector<std::string>& arguments) {
  std::vector<const char*> all{"batch_benchmark"};
  for (const std::string& argument : arguments)
    all.push_back(argument.c_str());
  return parse_options(static_cast<int>(all.size()), all.data()).value();
}

/// A folder for what the program writes.
class Folder {
 public:
  Folder() { std::filesystem::create_directory(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(file(name)).rdbuf();
    return text.str();
  }
  /// Runs the program to its end; its output is in the files "out" and "error".
  [[nodiscard]] batchrpc_examples::ProcessExit run(const std::string& arguments) const {
    const std::string command = "exec '" + std::string(kProgram) + "' " + arguments + " >'" +
                                file("out") + "' 2>'" + file("error") + "'";
    return ChildProcess({.arguments = {"-c", command}, .environment = {}, .program = "/bin/sh"})
        .wait();
  }

 private:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("batchrpc_batch_benchmark_" + std::to_string(::getpid()));
};

TEST_CASE("batch_benchmark measures all sections but peer by default, and what is named else") {
  const Options all = parse({});
  CHECK(all.sections ==
        std::vector<std::string>{"inprocess", "remote", "isolate", "memory", "adaptive", "sweeps"});
  CHECK(all.observers.size() == 16);
  CHECK(all.seconds == .2);

  const Options some =
      parse({"remote", "isolate", "--observers", "1,4", "--batcher", "all-of,min-size-workers",
             "--transport", "tcp", "--seconds", "1.5", "--rounds", "2"});
  CHECK(some.sections == std::vector<std::string>{"remote", "isolate"});
  CHECK(some.observers == std::vector<int>{1, 4});
  CHECK(some.batchers.at(1).name() == "min-size-workers");
  CHECK(some.transport == batchrpc_examples::TransportChoice::tcp);
  CHECK(parse({"peer"}).seconds == 5);
  CHECK(parse({"peer", "--seconds", "2"}).seconds == 2);
}

TEST_CASE("a name of a setting says how a batch starts, and where its handler runs") {
  const std::vector<std::string> observers{"a", "b"};
  CHECK(Setting("idle").options(observers).short_handler);
  CHECK_FALSE(Setting("idle-workers").options(observers).short_handler);
  CHECK(Setting("all-of").options(observers).all_of == observers);
  CHECK(Setting("min-size").options(observers).min_size == 2);
}

TEST_CASE("batch_benchmark refuses a malformed command line and says what it takes") {
  const std::vector<std::vector<std::string>> malformed{
      {"remotely"},           {"--observers", "0"},      {"--observers", "65"},
      {"--observers", "1,x"}, {"--batcher", "greedy"},   {"--transport", "udp"},
      {"--seconds", "0"},     {"--seconds", "nan"},      {"--rounds", "0"},
      {"--rounds", "1.5"},    {"--work", "rest"},        {"--json", "/no/such/folder/file"},
      {"--batch", "0"},       {"--figures", "/no/such"}, {"--latency-target", "0"},
      {"--callers", "0"},     {"--no-such-option"},      {"--warm-up", "-1"},
  };
  for (const auto& arguments : malformed) {
    CAPTURE(arguments);
    CHECK_THROWS_AS(parse(arguments), batchrpc_examples::UsageError);
  }
  const Folder folder;
  CHECK(folder.run("remotely").code == 2);
  CHECK(folder.text("out").empty());
  CHECK_THAT(folder.text("error"), Catch::EndsWith("there is no section 'remotely'; see --help\n"));
}

TEST_CASE("a ratio is the median of the ratios of each round") {
  CHECK(median_ratio({50, 180, 300}, {100, 200, 400}) == Approx(.75));
}

TEST_CASE("the policy acts for each row, with gradients and without") {
  for (const bool grad : {false, true}) {
    ActingPolicy policy(grad, 8);
    for (int i = 0; i < 5; ++i) {
      const at::Tensor actions = policy.act(at::rand({3, 4}));
      CHECK(actions.sizes() == at::IntArrayRef{3});
      CHECK(((actions == 0) | (actions == 1)).all().item<bool>());
    }
    const std::int64_t action = policy.act_once(at::rand({4}));
    CHECK((action == 0 || action == 1));
  }
}

TEST_CASE("an open loop has the rate that was asked for, and counts what is refused") {
  const Ask answer = [] { return batchrpc::make_ready_future(std::int64_t{1}); };
  const Span span{.warm_up = .02, .seconds = .2};
  const Load load = open_loop(answer, 5000, span, 1);
  CHECK(load.us.size() == Approx(1000).margin(200));
  CHECK(load.failed == 0);
  CHECK(load.keeps(1e6, 99));
  CHECK_FALSE(load.keeps(0, 99));

  int calls = 0;
  const Ask refuse_half = [&calls] {
    if (++calls % 2 == 0) return batchrpc::make_ready_future(std::int64_t{1});
    batchrpc::Promise<std::int64_t> promise;
    promise.set_error(std::make_exception_ptr(batchrpc::Overloaded("full", {})));
    return promise.get_future();
  };
  const Load half = open_loop(refuse_half, 5000, span, 1);
  CHECK(half.failed == Approx(half.us.size()).margin(1));
  CHECK_FALSE(half.keeps(1e6, 99));
}

TEST_CASE("a closed loop that is held up for longer than its sample counts from then on") {
  int calls = 0;
  const Ask stalls_once = [&calls] {
    if (++calls == 2) std::this_thread::sleep_for(20ms);
    return batchrpc::make_ready_future(std::int64_t{1});
  };
  const Load load = closed_loop(stalls_once, 1, {.warm_up = .005, .seconds = .001});
  CHECK_FALSE(load.us.empty());
}

TEST_CASE("batch_benchmark writes all sections, with the median and the rounds of each figure") {
  const Folder folder;
  const auto end = folder.run("--rounds 2 --seconds 0.02 --warm-up 0.01 --observers 1,2 --json '" +
                              folder.file("json") + "' --figures '" + folder.file("") + "'");
  CAPTURE(folder.text("error"));
  REQUIRE(end.success());
  CHECK_THAT(folder.text("out"), Catch::Contains("by hand") && Catch::Contains("poisoned"));

  const auto report = nlohmann::json::parse(folder.text("json"));
  for (const std::string key : {"machine", "versions", "settings"})
    CHECK(report.contains(key));
  for (const auto& entry : report.at("inprocess")) {
    CHECK(entry.at("ns_a_row").at("median") > 0);
    CHECK(entry.at("ns_a_row").at("rounds").size() == 2);
  }
  const auto& remote = report.at("remote");
  CHECK(remote.at("rows").size() == std::size_t{2 * 6});
  CHECK(remote.at("comparisons").size() == 2);
  for (const auto& row : remote.at("rows")) {
    CHECK(row.at("actions_per_s").at("median") > 0);
    CHECK(row.at("p99_us").at("median") >= row.at("p50_us").at("median"));
  }
  CHECK(report.at("isolate").at("met") == true);
  for (const auto& entry : report.at("memory"))
    CHECK(entry.at("bytes_a_row") < 8);
  CHECK(report.at("adaptive").at("loads").size() == 5);
  std::size_t sizes = 0;
  for (const auto& row : report.at("sweeps"))
    sizes += row.at("sweep") == "max_size" ? 1 : 0;
  CHECK(sizes == 7);
  for (const std::string name : {"max_size", "max_wait", "observers"}) {
    CHECK(std::filesystem::exists(folder.file("batching_" + name + "_rate.svg")));
    CHECK(std::filesystem::exists(folder.file("batching_" + name + "_p99.png")));
  }
}

TEST_CASE("batch_benchmark peer prints what the comparison of peers wants, and nothing else") {
  const Folder folder;
  const auto end = folder.run(
      "peer --callers 2 --batch 2 --seconds 0.1 --warm-up 0.01 --grad --transport tcp --json -");
  CAPTURE(folder.text("error"));
  REQUIRE(end.success());
  const auto report = nlohmann::json::parse(folder.text("out"));
  for (const std::string key : {"rows_per_s", "p50_us", "p90_us", "p99_us", "mean_batch"})
    CHECK(report.at(key) > 0);
  CHECK(report.at("callers") == 2);
  CHECK(report.at("grad") == true);
}

TEST_CASE("Ctrl-C ends batch_benchmark and its observers soon") {
  ChildProcess program({.arguments = {"peer", "--callers", "2", "--seconds", "60"},
                        .environment = {},
                        .program = kProgram});
  const std::string id = std::to_string(program.pid());
  std::vector<pid_t> observers;
  while (observers.size() < 2 && !program.poll()) {
    std::ifstream file("/proc/" + id + "/task/" + id + "/children");
    observers.clear();
    for (pid_t child = 0; file >> child;)
      observers.push_back(child);
    std::this_thread::sleep_for(5ms);
  }
  program.signal(SIGINT);
  const auto end = program.wait_for(10s);
  REQUIRE(end);
  CHECK(end->code == 128 + SIGINT);
  for (const pid_t observer : observers)
    CHECK(::kill(observer, 0) == -1);
}

}  // namespace batch_benchmark_test
}  // namespace batch_benchmark
