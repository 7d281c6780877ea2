#include <catch2/catch.hpp>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "policy_benchmark/options.hpp"
#include "policy_benchmark/report.hpp"

namespace policy_benchmark {
namespace policy_benchmark_test {

using batchrpc_examples::UsageError;
using Catch::Contains;

Options parse(std::initializer_list<const char*> words) {
  std::vector<const char*> all{"policy_benchmark"};
  all.insert(all.end(), words);
  return parse_options(static_cast<int>(all.size()), all.data()).value();
}

/// Three rounds, in which the machine is of different speeds.
Table table_of(const std::string& network = "atari", int threads = 1) {
  const std::vector<double> eager{100, 200, 400};
  return {.network = network,
          .threads = threads,
          .titles = {"eager", "compiled, frozen"},
          .names = {"eager", "frozen"},
          .figures = {{{.passes_per_s = eager,
                        .served_passes_per_s = {80, 100, 400},
                        .p50_us = {9000, 1234, 1000},
                        .p99_us = {9000, 8000, 7000},
                        .mean_batch = {1, 1, 1}},
                       {.passes_per_s = eager,
                        .served_passes_per_s = {90, 200, 320},
                        .p50_us = {1000, 2000, 3000},
                        .p99_us = {1000, 2000, 3000},
                        .mean_batch = {16, 15, 16}}},
                      {{.passes_per_s = {210, 400, 1000},
                        .served_passes_per_s = {200, 320, 800},
                        .p50_us = {500, 400, 300},
                        .p99_us = {500, 400, 300},
                        .mean_batch = {1, 1, 1}},
                       {.passes_per_s = {139, 300, 400},
                        .served_passes_per_s = {139, 250, 360},
                        .p50_us = {500, 400, 300},
                        .p99_us = {500, 400, 300},
                        .mean_batch = {16, 16, 16}}}}};
}

struct Texts {
  std::string head;
  std::string direct;
  std::string served;
};

/// What is printed, without the spaces that make columns.
Texts printed(const Options& options, const Table& table) {
  const batchrpc::InterruptFlag interrupts;
  const auto text_of = [&](auto print) {
    std::ostringstream out;
    print(Run{options, out, interrupts});
    std::string text;
    for (const char c : out.str()) {
      if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
    }
    return text;
  };
  return {text_of([](const Run& run) { print_head(run); }),
          text_of([&](const Run& run) { print_direct(run, table); }),
          text_of([&](const Run& run) { print_served(run, table); })};
}

TEST_CASE("a policy's speed-up is the median of the rounds' ratios to eager, beside its goal") {
  const Options options = parse({"--batch", "1,16"});
  const std::string text = printed(options, table_of()).direct;
  CHECK_THAT(text, Contains("atari, 1 thread: forward passes/s"));
  CHECK_THAT(text, Contains("eager 200 200\n"));
  CHECK_THAT(text, Contains("compiled, frozen 400 +110 % met 300 +39 % missed\n"));
}

TEST_CASE("there are goals for RLlib's network and one thread only") {
  const Options options = parse({"--batch", "1,16"});
  const auto direct = [&](const Table& table) { return printed(options, table).direct; };
  CHECK_THAT(direct(table_of("mlp")), Contains("compiled, frozen 400 +110 % 300 +39 %\n"));
  CHECK_THAT(direct(table_of("atari", 2)), Contains("compiled, frozen 400 +110 % 300 +39 %\n"));
  CHECK_THAT(direct(table_of("atari", 2)), Contains("atari, 2 threads: "));
}

TEST_CASE("what serving adds to a pass is the median of the rounds' ratios of direct to served") {
  const Options options = parse({"--batch", "1,16", "--clients", "3"});
  const std::string text = printed(options, table_of()).served;
  CHECK_THAT(text, Contains("atari, 1 thread, served to 3 processes: "));
  CHECK_THAT(text, Contains("eager 100 +25 % 1.23 ms 200 +11 % 2.00 ms missed\n"));
  CHECK_THAT(text, Contains("compiled, frozen 320 +25 % 0.40 ms 250 +11 % 0.40 ms missed\n"));
  Table faster = table_of();
  faster.figures[1][1].served_passes_per_s = {139, 280, 380};
  CHECK_THAT(printed(options, faster).served,
             Contains("compiled, frozen 320 +25 % 0.40 ms 280 +5 % 0.40 ms met\n"));
}

TEST_CASE("the report of policies has each round, what came of it, and the goals") {
  const Options options = parse({"--batch", "1,16"});
  const nlohmann::json report = report_json(options, {table_of(), table_of("mlp")});
  REQUIRE(report["rows"].size() == 8);
  const nlohmann::json& frozen = report["rows"][2];
  CHECK(frozen["network"] == "atari");
  CHECK(frozen["form"] == "frozen");
  CHECK(frozen["batch"] == 1);
  CHECK(frozen["passes_per_s"]["median"] == 400);
  CHECK(frozen["passes_per_s"]["rounds"] == std::vector<double>{210, 400, 1000});
  CHECK(frozen["speed_up_percent"].get<double>() == Approx(110));
  CHECK(frozen["goal_percent"] == 100);
  CHECK(frozen["served_passes_per_s"]["median"] == 320);
  CHECK(frozen["serving_overhead_percent"].get<double>() == Approx(25));
  CHECK(frozen["served_p99_us"]["median"] == 400);
  CHECK(report["rows"][3]["goal_percent"] == 40);
  CHECK(report["rows"][3]["speed_up_percent"].get<double>() == Approx(39));
  CHECK(report["rows"][1]["served_mean_batch"]["rounds"] == std::vector<double>{16, 15, 16});
  CHECK(report["rows"][0]["speed_up_percent"] == 0);
  CHECK_FALSE(report["rows"][0].contains("goal_percent"));
  CHECK_FALSE(report["rows"][6].contains("goal_percent"));
}

TEST_CASE("figures of policies that are not served have nothing of serving") {
  Table table = table_of();
  for (auto& form : table.figures) {
    for (Figures& figures : form)
      figures = {.passes_per_s = figures.passes_per_s};
  }
  const nlohmann::json report = report_json(parse({"--batch", "1,16", "--clients", "0"}), {table});
  CHECK(report["rows"][2]["speed_up_percent"].get<double>() == Approx(110));
  CHECK_FALSE(report["rows"][2].contains("served_passes_per_s"));
  CHECK_FALSE(report["rows"][2].contains("serving_overhead_percent"));
}

TEST_CASE("the report of policies says where they ran") {
  CHECK_THAT(printed(parse({"--batch", "1,16"}), table_of()).head, Contains(", on cpu, "));
  const Options options = parse({"--batch", "1,16", "--device", "cuda:1", "--cuda-graphs"});
  CHECK_THAT(printed(options, table_of()).head, Contains(", on cuda:1 with CUDA graphs, "));
  const nlohmann::json settings = report_json(options, {})["settings"];
  CHECK(settings["device"] == "cuda:1");
  CHECK(settings["cuda_graphs"] == true);
}

TEST_CASE("options of policy_benchmark that cannot be are refused") {
  CHECK_THROWS_WITH(parse({"--cuda-graphs"}), Contains("--cuda-graphs needs a GPU"));
  CHECK_THROWS_WITH(parse({"--device", "abacus"}),
                    Contains("--device: abacus is not one of cpu, cuda and cuda:N"));
  CHECK_THROWS_AS(parse({"--device", "cuda:"}), UsageError);
  CHECK_THROWS_WITH(parse({"--form", "frozen"}), Contains("which needs --policies FOLDER"));
}

}  // namespace policy_benchmark_test
}  // namespace policy_benchmark
