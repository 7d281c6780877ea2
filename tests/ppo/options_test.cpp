#include "ppo/options.hpp"

#include <batchrpc/base/error.hpp>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/command_line.hpp"

namespace batchrpc_examples::ppo {
namespace options_test {

PpoOptions parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ppo");
  return parse_options(static_cast<int>(arguments.size()), arguments.data()).value();
}

void refused(std::vector<const char*> arguments, const std::string& why) {
  INFO(why);
  CHECK_THROWS_AS(parsed(arguments), UsageError);
  CHECK_THROWS_WITH(parsed(arguments), Catch::Contains(why));
}

TEST_CASE("By default 64 CartPoles are trained with, in four processes") {
  const PpoOptions options = parsed({});
  CHECK(options.env == "cartpole");
  CHECK(options.workers == 4);
  CHECK(options.envs_per_worker == 16);
  CHECK(options.envs() == 64);
  CHECK(options.total_steps == 150'000);
  CHECK(options.seed == 1);
  CHECK(options.settings.steps == settings_for("cartpole").steps);
  CHECK(options.rows_per_update() == 64 * options.settings.steps);
}

TEST_CASE("Each environment has defaults of its own, and what is given goes before") {
  const PpoOptions options =
      parsed({"--workers", "0", "--env", "minatar-breakout", "--gamma", "0.5", "--epochs", "7",
              "--anneal", "false", "--envs-per-worker", "8", "--total-steps", "2000"});
  CHECK(options.settings.gamma == 0.5);
  CHECK(options.settings.epochs == 7);
  CHECK_FALSE(options.settings.anneal);
  CHECK(options.settings.learning_rate == settings_for("minatar-breakout").learning_rate);
  CHECK(options.envs() == 8);
  CHECK(options.total_steps == 2000);
  CHECK(parsed({"--env", "minatar-breakout"}).total_steps == 5'000'000);
  CHECK(parsed({"--until", "-7.5"}).until == -7.5);
  CHECK(parsed({"--seed", "18446744073709551615"}).seed == 18'446'744'073'709'551'615U);
}

TEST_CASE("An unknown environment is answered by those that there are") {
  CHECK_THROWS_AS(parsed({"--env", "pong"}), batchrpc::InvalidArgument);
  CHECK_THROWS_WITH(parsed({"--env", "pong"}),
                    Catch::Contains("known are cartpole, minatar-breakout, pixels"));
}

TEST_CASE("PPO's numbers are checked") {
  refused({"--gamma", "1.1"}, "not a number from 0 to 1");
  refused({"--gamma", "nan"}, "not a number");
  refused({"--clip", "0"}, "not a number");
  refused({"--learning-rate", "-1"}, "not a number");
  refused({"--epochs", "0"}, "not a number");
  refused({"--envs-per-worker", "0"}, "not a number");
  refused({"--workers", "-1"}, "not a number");
  refused({"--buffers", "3"}, "not a number");
  refused({"--envs-per-worker", "65537"}, "not a number from 1 to 65536");
  refused({"--until", "nan"}, "'nan' is not a number");
  refused({"--until", "inf"}, "'inf' is not a number");
  refused({"--seed", "-1"}, "'-1' is not a number from 0 to 18446744073709551615");
  refused({"--seed", "18446744073709551616"}, "not a number");
  for (const char* option : {"--anneal", "--clip-values", "--normalize-advantages"})
    refused({option, "maybe"}, std::string(option) + ": 'maybe' is not one of false|true");
  refused({"--inference", "nowhere"}, "'nowhere' is not one of agent|worker");
  refused({"--policy", "fast"}, "'fast' is not one of compiled|eager|script");
  refused({"--figure", "/tmp/a.pdf"}, "ends in .svg");
  refused({"--json", "/nowhere/a"}, "cannot write /nowhere/a");
}

TEST_CASE("Rows that minibatches do not divide are refused with what to change") {
  refused(
      {"--workers", "0", "--envs-per-worker", "5", "--steps", "7", "--minibatches", "4"},
      "5 environments × 7 steps are 35 rows per update, which cannot be split into 4 minibatches "
      "of equal size: give --minibatches 1");
  refused({"--workers", "0", "--envs-per-worker", "6", "--steps", "6", "--minibatches", "8"},
          "give --minibatches 6");
  CHECK_NOTHROW(
      parsed({"--workers", "0", "--envs-per-worker", "5", "--steps", "8", "--minibatches", "4"}));
  refused({"--total-steps", "100"}, "steps of one update");
}

TEST_CASE("More environments than the agent can choose for are refused, but not at the workers") {
  refused(
      {"--workers", "2", "--envs-per-worker", "32769"},
      "are 65538 environments, but the agent can choose actions for 65536 at most; use fewer, or "
      "--inference worker");
  CHECK_NOTHROW(
      parsed({"--workers", "2", "--envs-per-worker", "32768", "--total-steps", "5000000"}));
  CHECK_NOTHROW(parsed({"--workers", "2", "--envs-per-worker", "65536", "--inference", "worker",
                        "--total-steps", "5000000"}));
}

TEST_CASE("What needs workers, a rank or a file is refused without") {
  refused({"--workers", "0", "--inference", "worker"}, "needs workers");
  refused({"--workers", "0", "--buffers", "2"}, "needs workers");
  refused({"--workers", "0", "--env-threads", "2"}, "needs workers");
  refused({"--workers", "0", "--join", "tcp://127.0.0.1:1"}, "--join needs workers");
  refused({"--workers", "2", "--rank", "3", "--join", "tcp://127.0.0.1:1"}, "--rank 3 of 2");
  refused({"--workers", "2", "--rank", "1"}, "--rank needs --join");
  refused({"--policy", "compiled"}, "--policy-path");
  refused({"--policy-path", "/nowhere"}, "does not apply to an eager policy");
  refused({"--policy", "script", "--policy-path", "/nowhere"}, "no such file or folder");
  refused({"--checkpoint", "a/ppo.1.checkpoint"}, "give the folder");
  refused({"--workers", "2", "--envs-per-worker", "6", "--env-threads", "4"},
          "cannot be split evenly");
  refused({"--workers", "2", "--envs-per-worker", "5", "--buffers", "2"}, "buffers of equal size");
}

TEST_CASE("Trainings that differ in what they learn have other settings") {
  const std::string settings = training_settings(parsed({}));
  CHECK(settings == training_settings(parsed({"--checkpoint-every", "7", "--until", "3"})));
  for (const char* option : {"--seed", "--steps", "--epochs", "--minibatches"})
    CHECK(settings != training_settings(parsed({option, "2"})));
  for (const char* option : {"--gamma", "--gae-lambda", "--clip", "--entropy", "--learning-rate",
                             "--value-coefficient", "--max-gradient-norm"})
    CHECK(settings != training_settings(parsed({option, "0.123"})));
  for (const char* option : {"--clip-values"})
    CHECK(settings != training_settings(parsed({option, "true"})));
  for (const char* option : {"--anneal", "--normalize-advantages"})
    CHECK(settings != training_settings(parsed({option, "false"})));
  CHECK(settings != training_settings(parsed({"--total-steps", "140000"})));
}

}  // namespace options_test
}  // namespace batchrpc_examples::ppo
