#include "cartpole_observer/cartpole_env.hpp"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

namespace batchrpc_examples {

namespace {

constexpr double kGravity = 9.8;
constexpr double kPoleMass = 0.1;
constexpr double kTotalMass = kPoleMass + 1.0;
constexpr double kHalfPoleLength = 0.5;
constexpr double kPoleMoment = kPoleMass * kHalfPoleLength;
constexpr double kForce = 10.0;
constexpr double kTimeStep = 0.02;
constexpr double kPositionLimit = 2.4;
constexpr double kAngleLimit = 12 * 2 * std::numbers::pi / 360;
constexpr double kStartRange = 0.05;

}  // namespace

CartPoleEnv::CartPoleEnv(std::uint64_t seed) : random_(seed) { reset(); }

// std::uniform_real_distribution may differ between standard libraries; this function does not.
double CartPoleEnv::draw() {
  const double unit = static_cast<double>(random_() >> 11) * 0x1.0p-53;
  return (2 * unit - 1) * kStartRange;
}

CartPoleEnv::Observation CartPoleEnv::reset() {
  // One statement for each, because the evaluation order of arguments is not fixed.
  CartPoleState start;
  start.position = draw();
  start.velocity = draw();
  start.angle = draw();
  start.angular_velocity = draw();
  reset_to(start);
  return observation();
}

void CartPoleEnv::reset_to(const CartPoleState& state, int steps_taken) {
  state_ = state;
  steps_ = steps_taken;
  ended_ = false;
}

CartPoleEnv::Step CartPoleEnv::step(int action) {
  if (action < 0 || action >= kActions) {
    throw std::invalid_argument("CartPole's actions are 0 and 1, not " + std::to_string(action));
  }
  if (ended_) {
    throw std::logic_error("this CartPole run has ended: call reset() before the next step");
  }

  // Same operations in the same order as Gymnasium, so that results are equal to the last bit.
  const double force = action == 1 ? kForce : -kForce;
  const double cosine = std::cos(state_.angle);
  const double sine = std::sin(state_.angle);
  const double push =
      (force + kPoleMoment * (state_.angular_velocity * state_.angular_velocity) * sine) /
      kTotalMass;
  const double angular_acceleration =
      (kGravity * sine - cosine * push) /
      (kHalfPoleLength * (4.0 / 3.0 - kPoleMass * (cosine * cosine) / kTotalMass));
  const double acceleration = push - kPoleMoment * angular_acceleration * cosine / kTotalMass;

  state_ = {.position = state_.position + kTimeStep * state_.velocity,
            .velocity = state_.velocity + kTimeStep * acceleration,
            .angle = state_.angle + kTimeStep * state_.angular_velocity,
            .angular_velocity = state_.angular_velocity + kTimeStep * angular_acceleration};
  ++steps_;

  Step result;
  result.reward = 1;
  result.terminated = state_.position < -kPositionLimit || state_.position > kPositionLimit ||
                      state_.angle < -kAngleLimit || state_.angle > kAngleLimit;
  result.truncated = steps_ >= kStepLimit;
  ended_ = result.ended();
  return result;
}

CartPoleEnv::Observation CartPoleEnv::observation() const {
  return {static_cast<float>(state_.position), static_cast<float>(state_.velocity),
          static_cast<float>(state_.angle), static_cast<float>(state_.angular_velocity)};
}

}  // namespace batchrpc_examples
