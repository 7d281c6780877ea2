#include "ppo/training.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "common/passing_folder.hpp"
#include "games/games.hpp"
#include "ppo/broken_env.hpp"
#include "ppo/report.hpp"

namespace batchrpc_examples::ppo {
namespace training_test {

namespace rpc = batchrpc;

struct Folder : PassingFolder {
  Folder() : PassingFolder("ppo_test") {}
  [[nodiscard]] std::string string() const { return path(); }
  [[nodiscard]] std::string checkpoint(int version) const {
    return path() / ("ppo." + std::to_string(version) + ".checkpoint");
  }
};

// Short ones: 4 environments, updates of 32 rows.
PpoOptions short_options(const std::string& env = "cartpole") {
  PpoOptions options;
  options.env = env;
  options.envs_per_worker = 4;
  options.total_steps = 320;
  options.settings = {.steps = 8, .epochs = 2, .minibatches = 2, .learning_rate = 1e-3};
  options.checkpoint_every = 1;
  return options;
}

TrainingReport trained(const PpoOptions& options, std::vector<std::string>* notices = nullptr) {
  const batchrpc::InterruptFlag interrupts;
  return train(
      options, interrupts, [](const CurvePoint&) {},
      [&](const std::string& notice) {
        if (notices) notices->push_back(notice);
      });
}

// Of a file whose size is another each time, as it holds how long things took: at that share of it.
void change_byte(const std::string& path, double share, int offset = 0) {
  const auto size = static_cast<double>(std::filesystem::file_size(path));
  const int at = static_cast<int>(share * size) + offset;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 1));
}

TEST_CASE("The same seed trains the same weights, another one others") {
  const std::string env = GENERATE("cartpole", "minatar-breakout");
  PpoOptions options = short_options(env);
  const TrainingReport report = trained(options);
  CHECK(report.curve.size() == 10);
  CHECK(report.curve.back().env_steps == 320);
  CHECK(report.curve.back().version == 10);
  CHECK(report.weights_hash == trained(options).weights_hash);
  options.seed = 2;
  CHECK(report.weights_hash != trained(options).weights_hash);
}

TEST_CASE("A training that goes on from a checkpoint goes on as if it had not ended") {
  const std::string env = GENERATE("cartpole", "minatar-breakout", "pixels");
  PpoOptions options = short_options(env);
  if (env == "pixels") options.total_steps = 128;
  Training whole(options);
  Training first(options);
  for (int i = 0; i < 2; ++i) {
    (void)whole.update();
    (void)first.update();
  }
  Training second(options);
  second.restore(first.checkpoint(first.moment()));
  CHECK(second.weights_hash() == first.weights_hash());
  while (!whole.finished())
    (void)whole.update();
  while (!second.finished())
    (void)second.update();
  CHECK(second.weights_hash() == whole.weights_hash());
  REQUIRE(second.curve().size() == whole.curve().size());
  CHECK(second.curve().back().mean_return == whole.curve().back().mean_return);
  CHECK(second.curve().back().episodes == whole.curve().back().episodes);
  CHECK(second.curve().back().update.approx_kl == whole.curve().back().update.approx_kl);
}

TEST_CASE("The last three checkpoints stay, and the newest is gone on from") {
  const Folder folder;
  PpoOptions options = short_options();
  const std::uint64_t whole = trained(options).weights_hash;
  options.checkpoint = folder.string();
  CHECK(trained(options).weights_hash == whole);  // to write changes nothing
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.string()))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  CHECK(names ==
        std::vector<std::string>{"ppo.10.checkpoint", "ppo.8.checkpoint", "ppo.9.checkpoint"});
  std::filesystem::remove(folder.checkpoint(10));
  std::vector<std::string> notices;
  const TrainingReport report = trained(options, &notices);
  CHECK(report.resumed_at == 9);
  CHECK(report.weights_hash == whole);
  CHECK(report.curve.size() == 10);
  REQUIRE(notices.size() == 1);
  CHECK_THAT(notices[0], Catch::Contains("continuing from") && Catch::Contains("ppo.9.checkpoint"));
}

TEST_CASE(
    "Of a training that is at its end and begun again it is said that nothing is left to do") {
  const Folder folder;
  PpoOptions options = short_options();
  options.checkpoint = folder.string();
  const bool by_steps = GENERATE(true, false);
  if (!by_steps) {
    options.total_steps = 100'000;
    options.until = 10;
  }
  const TrainingReport first = trained(options);
  std::vector<std::string> notices;
  const TrainingReport again = trained(options, &notices);
  const auto version = static_cast<int>(first.curve.back().version);
  CHECK(notices == std::vector{"nothing is left to do: the training has ended with " +
                               folder.checkpoint(version)});
  CHECK(again.weights_hash == first.weights_hash);
  CHECK(again.reached == !by_steps);
}

TEST_CASE("Of a damaged checkpoint it is said so, and the one before is used") {
  const Folder folder;
  PpoOptions options = short_options();
  options.checkpoint = folder.string();
  const std::uint64_t whole = trained(options).weights_hash;
  const auto goes_on_from = [&](int version) {
    std::vector<std::string> notices;
    const TrainingReport report = trained(options, &notices);
    CHECK(report.resumed_at == version);
    CHECK(report.weights_hash == whole);
    REQUIRE(notices.size() == static_cast<std::size_t>(11 - version));
    CHECK_THAT(notices[0], Catch::Contains(folder.checkpoint(10)) &&
                               Catch::Contains(folder.checkpoint(version) + " is used"));
    // It pushes out no whole one.
    CHECK(std::filesystem::exists(folder.checkpoint(10) + ".damaged"));
    CHECK(std::filesystem::exists(folder.checkpoint(version)) == (version > 7));
  };
  SECTION("a byte is another") {
    const auto [share, offset] = GENERATE(table<double, int>(
        {{0, 0}, {0, 8}, {0, 16}, {0, 24}, {0, 60}, {0, 400}, {0.5, 0}, {1, -9}, {1, -1}}));
    change_byte(folder.checkpoint(10), share, offset);
    goes_on_from(9);
  }
  SECTION("it is cut off") {
    const auto size = std::filesystem::file_size(folder.checkpoint(10));
    const int cut = GENERATE(0, 1, 2, 3);
    const std::uintmax_t sizes[] = {0, 10, size / 2, size - 1};
    std::filesystem::resize_file(folder.checkpoint(10), sizes[cut]);
    goes_on_from(9);
  }
  SECTION("it is longer") {
    std::ofstream(folder.checkpoint(10), std::ios::app) << 'x';
    goes_on_from(9);
  }
  SECTION("the one before, too") {
    change_byte(folder.checkpoint(10), 0.5);
    change_byte(folder.checkpoint(9), 0.3);
    goes_on_from(8);
  }
  SECTION("all of them") {
    for (const int version : {8, 9, 10})
      change_byte(folder.checkpoint(version), 0.5);
    CHECK_THROWS_AS(trained(options), CheckpointError);
    CHECK_THROWS_WITH(trained(options), Catch::Contains("all checkpoints in " + folder.string()));
  }
}

TEST_CASE("A folder in which another training writes its checkpoints is refused, and left alone") {
  const Folder folder;
  PpoOptions options = short_options();
  options.checkpoint = folder.string();
  {
    const CheckpointFolder used(folder.string());
    const std::string unfinished = folder.checkpoint(3) + ".new";
    std::ofstream(unfinished) << "being written";
    CHECK_THROWS_WITH(
        trained(options),
        folder.string() + ": another training uses it: end that one, or give another folder");
    CHECK(std::filesystem::exists(unfinished));
  }
  CHECK_NOTHROW(trained(options));
}

TEST_CASE("A checkpoint of a training with other settings is refused") {
  const Folder folder;
  PpoOptions options = short_options();
  options.checkpoint = folder.string();
  (void)trained(options);
  SECTION("another seed") {
    options.seed = 5;
    CHECK_THROWS_WITH(
        trained(options),
        Catch::Contains("belongs to another training, with seed 1 instead of seed 5: give"));
  }
  SECTION("another clip") {
    options.settings.clip = 0.1;
    CHECK_THROWS_WITH(trained(options), Catch::Contains("with clip 0.2 instead of clip 0.1: give"));
  }
}

TEST_CASE("A NaN of an environment stops the training with its checkpoint from before") {
  const Folder folder;
  PpoOptions options = short_options();
  options.checkpoint = folder.string();
  options.checkpoint_every = 1000;
  const batchrpc::InterruptFlag interrupts;
  Training training(options, [] { return std::make_unique<BrokenEnv>(); });
  std::uint64_t before = 0;
  const auto progress = [&](const CurvePoint&) { before = training.weights_hash(); };
  std::vector<std::string> notices;
  const auto run = [&] {
    (void)train(training, options, interrupts, progress,
                [&](const std::string& notice) { notices.push_back(notice); });
  };
  CHECK_THROWS_WITH(run(), Catch::Contains("observations are not finite"));
  CHECK(training.report().curve.size() == 2);  // what is known stays to be reported
  CHECK(notices == std::vector{"the previous state is in " + folder.checkpoint(2)});
  Training restored(options);
  restored.restore(read_checkpoint(folder.checkpoint(2)));
  CHECK(restored.weights_hash() == before);
  CHECK(restored.learner().env_steps() == 64);
}

TEST_CASE("It is said why nothing is saved when a training fails") {
  const Folder folder;
  PpoOptions options = short_options();
  const bool first = GENERATE(true, false);
  if (first) options.checkpoint = folder.string();
  const batchrpc::InterruptFlag interrupts;
  Training training(options, [=] { return std::make_unique<BrokenEnv>(first ? 3 : 20); });
  std::vector<std::string> notices;
  const auto notice = [&](const std::string& text) { notices.push_back(text); };
  CHECK_THROWS_AS(train(
                      training, options, interrupts, [](const CurvePoint&) {}, notice),
                  NotFinite);
  CHECK(notices == std::vector<std::string>{first
                                                ? "nothing is saved: there has been no update"
                                                : "nothing is saved: --checkpoint was not given"});
  CHECK(std::filesystem::is_empty(folder.string()));
}

TEST_CASE("A training ends as soon as its mean return is reached") {
  PpoOptions options = short_options();
  options.total_steps = 100'000;
  options.until = 10;  // of a hundred episodes: even a new policy has 20
  const TrainingReport report = trained(options);
  CHECK(report.reached);
  CHECK(report.curve.back().episodes >= 100);
  CHECK(report.curve.back().env_steps < 50'000);
  CHECK(steps_to_reach(report.curve, 10) == report.curve.back().env_steps);
  CHECK_FALSE(steps_to_reach(report.curve, 1000));
}

TEST_CASE("PPO learns to balance the pole for longer") {
  PpoOptions options = short_options();
  options.envs_per_worker = 16;
  options.total_steps = 20'000;
  options.settings = settings_for("cartpole");
  const TrainingReport report = trained(options);
  CHECK(report.curve.back().mean_return > 80);  // a new policy: 20
}

TEST_CASE("A report has the settings, the curve and when the goal was reached") {
  PpoOptions options = short_options();
  TrainingReport report = trained(options);
  report.curve.back().episodes = 100;
  report.curve.back().mean_return = 480;
  const nlohmann::json json = report_json(options, report);
  CHECK(json.at("settings").at("env") == "cartpole");
  CHECK(json.at("settings").at("learning_rate") == 1e-3);
  CHECK(json.at("settings").at("inference") == "agent");
  CHECK(json.at("settings").at("policy") == "eager");
  CHECK(json.at("env_steps") == 320);
  CHECK(json.at("goal") == 475.0);
  CHECK(json.at("goal_reached_after_steps") == 320);
  CHECK(json.at("curve").size() == 10);
  CHECK(json.at("curve").at(0).at("update").at("rows") == 32);
  CHECK(json.at("weights_hash").get<std::string>().size() == 16);
  CHECK_THAT(summary(options, report), Catch::Contains("10 updates and 320 environment steps") &&
                                           Catch::Contains("475 reached after 320 steps"));
  CHECK_THAT(progress_line(report.curve[1]), Catch::Contains("Update 2  64 steps"));
  CHECK(json.at("error").is_null());
  report.error = "interrupted";
  CHECK(report_json(options, report).at("error") == "interrupted");
  CHECK(report_json(options, report).at("weights_hash").is_null());
  report.curve.back().mean_return = 100;
  CHECK(report_json(options, report).at("goal_reached_after_steps").is_null());
  CHECK_THAT(summary(options, report), Catch::Contains("475 not reached"));
}

TEST_CASE("Results without an episode that has ended are written, but for the figure") {
  const Folder folder;
  PpoOptions options = short_options();
  options.json = folder.path() / "report.json";
  options.figure = folder.path() / "curve.svg";
  TrainingReport report = trained(options);
  for (CurvePoint& point : report.curve)
    point.episodes = 0;
  CHECK_NOTHROW(write_results(options, report));
  CHECK(std::filesystem::exists(options.json));
  CHECK_FALSE(std::filesystem::exists(options.figure));
  report.curve.back().episodes = 1;
  CHECK_NOTHROW(write_results(options, report));
  CHECK(std::filesystem::exists(options.figure));
}

}  // namespace training_test
}  // namespace batchrpc_examples::ppo
