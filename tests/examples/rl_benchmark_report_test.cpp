#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "rl_benchmark/metrics.hpp"
#include "rl_benchmark/options.hpp"
#include "rl_benchmark/policy.hpp"
#include "rl_benchmark/report.hpp"

namespace rl_benchmark {
namespace rl_benchmark_report_test {

using Json = nlohmann::ordered_json;

EpisodeRecord episode(double seconds, const std::vector<double>& latencies) {
  EpisodeRecord record;
  record.seconds = seconds;
  record.actions = static_cast<std::int64_t>(latencies.size());
  record.observer_latency = latencies;
  record.agent_latency = latencies;
  for (const double latency : latencies)
    record.agent_throughput.push_back(2 / latency);
  return record;
}

Options options_of(const std::vector<std::string>& words) {
  std::vector<const char*> all{"rl_benchmark", "--output-file-path", "/dev/null"};
  for (const std::string& word : words)
    all.push_back(word.c_str());
  return parse_options(static_cast<int>(all.size()), all.data()).value();
}

RunRecord run_of(const Setting& setting, std::vector<EpisodeRecord> episodes) {
  RunRecord run;
  run.setting = setting;
  run.episodes = std::move(episodes);
  run.private_memory = 100 << 20;
  return run;
}

Json report_of(const std::vector<std::string>& words) {
  const Options options = options_of(words);
  std::vector<RunRecord> runs;
  for (const Setting& setting : options.settings)
    runs.push_back(
        run_of(setting, {episode(9, {9, 9}), episode(1, {0.1, 0.2}), episode(1, {0.3, 0.4, 0.5})}));
  return report_json(options, runs, {.private_memory = 60 << 20, .resident_memory = 80 << 20});
}

std::optional<Metrics> metrics_of(const RunRecord& run) {
  const Counted which = counted(run);
  return metrics_of(run.episodes, which.first, which.last);
}

TEST_CASE("percentiles are of all samples of all episodes but the first") {
  const auto metrics = metrics_of(
      run_of({}, {episode(9, {9, 9, 9}), episode(2, {0.5, 0.1}), episode(3, {0.2, 0.4, 0.3})}));
  REQUIRE(metrics);
  CHECK(metrics->observer_latency[0] == Approx(0.3));
  CHECK(metrics->observer_latency[1] == Approx(0.4));
  CHECK(metrics->observer_latency[3] == Approx(0.48));  // as NumPy's: linear between the nearest
  CHECK(metrics->observer_throughput[0] == Approx(1 / 0.3));
  CHECK(metrics->observer_throughput[3] == Approx(9));
  CHECK(metrics->agent_throughput[0] == Approx(2 / 0.3));
  CHECK(metrics->seconds == Approx(5));
  CHECK(metrics->actions == 5);
  CHECK(metrics->actions_per_s() == Approx(1));
}

TEST_CASE("a run that has got no further than its first episode is reported by that") {
  const auto metrics = metrics_of(run_of({}, {episode(2, {0.5})}));
  REQUIRE(metrics);
  CHECK(metrics->observer_latency[0] == Approx(0.5));
  CHECK_FALSE(metrics_of(run_of({}, {episode(2, {})})));
  CHECK_FALSE(metrics_of(run_of({}, {})));
}

TEST_CASE("an episode that was cut is reported apart, unless there is no other") {
  const Options options = options_of({});
  RunRecord run =
      run_of(options.settings[0], {episode(9, {9, 9}), episode(1, {0.1, 0.1}), episode(20, {5})});
  run.episodes.back().cut = true;
  run.incomplete = "interrupted";
  const auto result = [&] { return report_json(options, {run}, {}).at("benchmark_results").at(0); };
  CHECK(result().at("actions_per_s") == 2);
  CHECK(result().at("episodes") == 1);
  CHECK(result().at("cut").at("actions") == 1);
  CHECK(result().at("warm_up").at("actions") == 2);
  run.episodes.erase(run.episodes.begin() + 1);
  CHECK(result().at("only_warm_up") == true);
  CHECK(result().at("actions") == 2);
  run.episodes.erase(run.episodes.begin());
  CHECK(result().at("actions") == 1);
  CHECK(result().at("cut").at("actions") == 1);
}

// PyTorch's benchmarks/distributed/rpc/rl/plot_benchmark_report.py, what it reads and nothing else.
TEST_CASE("a report has what the original's plotting script reads") {
  const Json report = report_of({"--world-size", "10,20"});
  REQUIRE(report.contains("x_axis_name"));
  const std::string x_axis = report.at("x_axis_name");
  CHECK(x_axis == "world_size");
  std::vector<int> labels;
  for (const Json& run : report.at("benchmark_results")) {
    labels.push_back(run.at(x_axis));
    for (const char* metric :
         {"agent throughput", "observer throughput", "agent latency", "observer latency"}) {
      CHECK(run.at(metric).at("50").is_number());
      CHECK(run.at(metric).at("95").is_number());
    }
  }
  CHECK(labels == std::vector<int>{10, 20});
}

TEST_CASE("a report has the keys of the original's coordinator and launcher") {
  const Json report = report_of({"--world-size", "10,20"});
  for (const char* key : {"master_addr", "master_port", "batch", "state_size", "nlayers",
                          "out_features", "output_file_path", "x_axis_name"}) {
    CHECK(report.contains(key));
  }
  CHECK_FALSE(report.contains("world_size"));  // of a swept argument each result has its value
  CHECK(report.at("batch") == true);
  CHECK(report.at("master_port") == "29501");
  for (const Json& run : report.at("benchmark_results")) {
    for (const char* metric : {"agent latency (seconds)", "agent throughput",
                               "observer latency (seconds)", "observer throughput"}) {
      for (const char* percent : {"p50", "p75", "p90", "p95"})
        CHECK(run.at(metric).at(percent) == run.at(metric).at(percent + 1));
    }
  }
  CHECK_FALSE(report_of({}).contains("x_axis_name"));
}

TEST_CASE("a result has more under keys of its own") {
  const Json run = report_of({"--seed", "7"}).at("benchmark_results").at(0);
  CHECK(run.at("actions_per_s") == 2.5);
  CHECK(run.at("warm_up").at("actions") == 2);
  CHECK(run.at("steps") == 100);
  CHECK(run.at("gradients") == true);
  CHECK(run.at("incomplete").is_null());
  CHECK(run.at("cut").is_null());
  CHECK(run.at("settings").at("world_size") == 10);
  CHECK(run.at("seeds").size() == 9);
  CHECK(run.at("seeds").at(0) == 8);
  CHECK(run.at("machine").at("cpus") > 0);
  CHECK(run.at("versions").contains("libtorch"));
  CHECK(report_of({"--inference", "yes"}).at("benchmark_results").at(0).at("gradients") == false);
}

TEST_CASE("the table is the original's, column for column") {
  std::ostringstream out;
  print_report(out, report_of({"--batch", "True,False"}));
  std::istringstream lines(out.str());
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);)
    all.push_back(line);
  CHECK(all[0] == std::string(62, '-'));
  CHECK(all[2] == all[0]);
  CHECK(std::find(all.begin(), all.end(), "state_size : 10-20-10") != all.end());
  CHECK(std::find(all.begin(), all.end(), "x_axis_name : batch") != all.end());
  const auto heading = std::find_if(
      all.begin(), all.end(), [](const std::string& line) { return line.starts_with("batch | "); });
  REQUIRE(heading != all.end());
  const auto words = [](const std::string& line) {
    std::istringstream stream(line);
    return std::vector<std::string>{std::istream_iterator<std::string>(stream), {}};
  };
  CHECK_THAT(*heading, Catch::Contains("agent latency (seconds)") &&
                           Catch::Contains("agent throughput") &&
                           Catch::Contains("observer latency (seconds)") &&
                           Catch::Contains("observer throughput"));
  CHECK(words(heading[1]).size() == 16);
  const std::vector<std::string> row = words(heading[2]);
  REQUIRE(row.size() == 17);
  CHECK(row[0] == "True");
  CHECK(row[1] == "0.300000");
  CHECK(row[13] == "3");
  CHECK(words(heading[3])[0] == "False");
  for (const char* metric :
       {"agent latency (seconds)", "agent throughput", "observer throughput"}) {
    const std::size_t column = heading->find(metric);
    CHECK(heading[1].substr(column, 3) == "p50");
    CHECK(heading[2][column] != ' ');
    CHECK(heading[2][column - 1] == ' ');
  }
}

TEST_CASE("a run that ended early says so") {
  const Options options = options_of({});
  RunRecord run = run_of(options.settings[0], {episode(1, {0.1})});
  run.incomplete = "observer5 was lost: it was killed";
  const Json report = report_json(options, {run}, {});
  CHECK(report.at("benchmark_results").at(0).at("incomplete") == run.incomplete);
  CHECK(report.at("benchmark_results").at(0).at("only_warm_up") == true);
  std::ostringstream out;
  print_report(out, report);
  CHECK_THAT(out.str(), Catch::Contains("INCOMPLETE: observer5 was lost"));

  run.episodes.clear();
  CHECK(report_json(options, {run}, {}).at("benchmark_results").empty());
}

TEST_CASE("the policy is the original's: its softmax runs over the batch") {
  Setting setting;
  setting.state_size = {3, 2};
  setting.nlayers = 2;
  setting.out_features = 4;
  at::manual_seed(1);
  Policy policy(setting);
  const Choice alone = policy.choose(at::rand({1, 3, 2}));
  // Over a batch of one each action has the same probability, whatever the weights.
  CHECK(alone.log_probs.item<double>() == Approx(-1.3862944));
  CHECK(alone.log_probs.requires_grad());
  const Choice many = policy.choose(at::rand({5, 3, 2}));
  CHECK(many.actions.sizes() == at::IntArrayRef{5});
  CHECK(many.actions.scalar_type() == at::kLong);
  CHECK(many.actions.ge(0).logical_and(many.actions.lt(4)).all().item<bool>());
  CHECK(many.log_probs.sizes() == at::IntArrayRef{5});

  setting.inference = true;
  CHECK_FALSE(Policy(setting).choose(at::rand({5, 3, 2})).log_probs.requires_grad());
}

}  // namespace rl_benchmark_report_test
}  // namespace rl_benchmark
