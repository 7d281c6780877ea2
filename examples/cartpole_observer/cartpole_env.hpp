#pragma once

#include <array>
#include <cstdint>
#include <random>

namespace batchrpc_examples {

/// What CartPole knows of the world, in SI units: metres, radians, seconds.
struct CartPoleState {
  double position = 0;
  double velocity = 0;
  double angle = 0;  ///< of the pole; 0 is upright, positive leans to the right
  double angular_velocity = 0;

  friend bool operator==(const CartPoleState&, const CartPoleState&) = default;
};

/// Gymnasium's CartPole-v1 (Barto, Sutton and Anderson 1983), step for step: the same equations,
/// the explicit Euler step of 0.02 s, in double precision, the same limits, the same reward of 1 a
/// step.
///
/// Only `reset()` differs: it draws from a generator of its own, so a seed gives another start here
/// than in Gymnasium. Not thread safe; needs no LibTorch.
class CartPoleEnv {
 public:
  static constexpr int kActions = 2;        ///< 0 pushes the cart to the left, 1 to the right
  static constexpr int kStepLimit = 500;    ///< steps after which a run is truncated
  static constexpr double kSolvedAt = 475;  ///< Gymnasium's threshold: mean length of 100 runs

  /// What a policy sees: the state in single precision, in the order of its members.
  using Observation = std::array<float, 4>;

  struct Step {
    double reward = 0;
    bool terminated = false;  ///< the pole fell or the cart left the track
    bool truncated = false;   ///< the step limit was reached; may come together with the above

    [[nodiscard]] bool ended() const { return terminated || truncated; }
  };

  /// Starts with a first `reset()`.
  explicit CartPoleEnv(std::uint64_t seed);

  /// Begins a new run: each member of the state uniform in [-0.05, 0.05).
  Observation reset();

  /// Begins a run from a given state, as if `steps_taken` steps of it had been made.
  void reset_to(const CartPoleState& state, int steps_taken = 0);

  /// Throws `std::invalid_argument` for an action other than 0 and 1, and `std::logic_error` when
  /// the run has ended: `reset()` comes first.
  Step step(int action);

  [[nodiscard]] const CartPoleState& state() const { return state_; }
  [[nodiscard]] Observation observation() const;

  /// Steps of this run so far.
  [[nodiscard]] int steps() const { return steps_; }

 private:
  double draw();

  std::mt19937_64 random_;
  CartPoleState state_;
  int steps_ = 0;
  bool ended_ = false;
};

}  // namespace batchrpc_examples
