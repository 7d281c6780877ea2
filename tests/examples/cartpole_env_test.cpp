#include "cartpole_observer/cartpole_env.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "recorded_rows.hpp"

namespace batchrpc_examples {
namespace cartpole_env_test {

struct RecordedStep {
  int action = -1;
  CartPoleState state;
  double reward = 0;
  bool terminated = false;
  bool truncated = false;
};

using Trajectories = std::map<std::string, std::vector<RecordedStep>>;

// data/cartpole_trajectories.csv, written by record_cartpole_trajectories.py from Gymnasium.
Trajectories recorded() {
  Trajectories trajectories;
  for (const std::vector<std::string>& fields :
       batchrpc::test::recorded_rows("tests/examples/data/cartpole_trajectories.csv", 10)) {
    RecordedStep step;
    if (!fields[2].empty()) step.action = std::stoi(fields[2]);
    step.state = {std::stod(fields[3]), std::stod(fields[4]), std::stod(fields[5]),
                  std::stod(fields[6])};
    step.reward = std::stod(fields[7]);
    step.terminated = fields[8] == "1";
    step.truncated = fields[9] == "1";
    trajectories[fields[0]].push_back(step);
  }
  return trajectories;
}

double distance(const CartPoleState& a, const CartPoleState& b) {
  return std::max({std::abs(a.position - b.position), std::abs(a.velocity - b.velocity),
                   std::abs(a.angle - b.angle), std::abs(a.angular_velocity - b.angular_velocity)});
}

// Follows a trajectory and gives the largest distance from it. The pole is unstable: a difference
// in the last bit of a sine grows by e^8 in 100 steps and by e^40 in 500, so long trajectories are
// taken up anew from the recorded state every `stretch` steps.
double follow(const std::vector<RecordedStep>& trajectory, std::size_t stretch) {
  CartPoleEnv env(1);
  double largest = 0;
  for (std::size_t i = 1; i < trajectory.size(); ++i) {
    if ((i - 1) % stretch == 0) {
      env.reset_to(trajectory[i - 1].state, static_cast<int>(i) - 1);
    }
    const CartPoleEnv::Step step = env.step(trajectory[i].action);
    INFO("step " << i);
    CHECK(step.reward == trajectory[i].reward);
    CHECK(step.terminated == trajectory[i].terminated);
    CHECK(step.truncated == trajectory[i].truncated);
    CHECK(env.steps() == static_cast<int>(i));
    largest = std::max(largest, distance(env.state(), trajectory[i].state));
  }
  return largest;
}

TEST_CASE("CartPole follows Gymnasium's trajectories, one step at a time") {
  for (const auto& [name, trajectory] : recorded()) {
    INFO(name);
    CHECK(follow(trajectory, 1) < 1e-13);
  }
}

TEST_CASE("CartPole follows Gymnasium's trajectories, 100 steps at a time") {
  for (const auto& [name, trajectory] : recorded()) {
    INFO(name);
    CHECK(follow(trajectory, 100) < 1e-9);
  }
}

TEST_CASE("the recorded CartPole trajectories cover every kind of end") {
  int terminated = 0;
  int truncated = 0;
  int both = 0;
  for (const auto& [name, trajectory] : recorded()) {
    const RecordedStep& last = trajectory.back();
    terminated += last.terminated && !last.truncated;
    truncated += !last.terminated && last.truncated;
    both += last.terminated && last.truncated;
  }
  CHECK(terminated >= 10);
  CHECK(truncated >= 2);
  CHECK(both >= 1);
}

TEST_CASE("CartPole starts within 0.05 of the upright rest in every member") {
  CartPoleEnv env(543);
  CartPoleState sum;
  for (int run = 0; run < 1000; ++run) {
    env.reset();
    CHECK(distance(env.state(), {}) <= 0.05);
    CHECK(env.steps() == 0);
    sum.position += env.state().position;
    sum.angular_velocity += env.state().angular_velocity;
  }
  CHECK(std::abs(sum.position / 1000) < 0.005);
  CHECK(std::abs(sum.angular_velocity / 1000) < 0.005);
}

TEST_CASE("CartPole repeats its starts with the same seed, and only with it") {
  CartPoleEnv one(7);
  CartPoleEnv same(7);
  CartPoleEnv other(8);
  CHECK(one.state() == same.state());
  CHECK_FALSE(one.state() == other.state());
  CHECK(one.reset() == same.reset());
}

TEST_CASE("CartPole refuses unknown actions and steps after the end") {
  CartPoleEnv env(1);
  CHECK_THROWS_AS(env.step(2), std::invalid_argument);
  CHECK_THROWS_AS(env.step(-1), std::invalid_argument);
  while (!env.step(0).ended()) {
  }
  CHECK_THROWS_AS(env.step(0), std::logic_error);
  env.reset();
  CHECK_FALSE(env.step(0).ended());
}

TEST_CASE("CartPole shows a policy its state in single precision") {
  CartPoleEnv env(1);
  env.reset_to({.position = 1, .velocity = -2, .angle = 0.1, .angular_velocity = 3});
  CHECK(env.observation() == CartPoleEnv::Observation{1.0F, -2.0F, 0.1F, 3.0F});
}

}  // namespace cartpole_env_test
}  // namespace batchrpc_examples
