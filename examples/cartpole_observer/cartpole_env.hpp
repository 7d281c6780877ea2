#pragma once

#include <array>
#include <cstdint>
#include <random>

namespace batchrpc_examples {

/// The state of CartPole in SI units: metres, radians, seconds.
struct CartPoleState {
  double position = 0;
  double velocity = 0;
  double angle = 0;  ///< of the pole; 0 is upright, positive leans right
  double angular_velocity = 0;

  friend bool operator==(const CartPoleState&, const CartPoleState&) = default;
};

/// Gymnasium's CartPole-v1 (Barto, Sutton and Anderson 1983), step for step: the same equations,
/// the explicit Euler step of 0.02 s in double precision, the same limits, and a reward of 1 per
/// step.
///
/// Only `reset()` differs: it uses its own generator, so a seed gives another start than in
/// Gymnasium. Not thread-safe. Needs no LibTorch.
class CartPoleEnv {
 public:
  static constexpr int kActions = 2;        ///< 0 pushes the cart left, 1 right
  static constexpr int kStepLimit = 500;    ///< steps after which a run is truncated
  static constexpr double kSolvedAt = 475;  ///< Gymnasium's threshold: mean length of 100 runs

  /// The policy's input: the state in single precision, in the order of its members.
  using Observation = std::array<float, 4>;

  struct Step {
    double reward = 0;
    bool terminated = false;  ///< the pole fell or the cart left the track
    bool truncated = false;   ///< the step limit was reached; both may be true

    [[nodiscard]] bool ended() const { return terminated || truncated; }
  };

  /// Starts with a first `reset()`.
  explicit CartPoleEnv(std::uint64_t seed);

  /// Begins a new run. Each member of the state is uniform in [-0.05, 0.05).
  Observation reset();

  /// Begins a run from the given state, as if it had already taken `steps_taken` steps.
  void reset_to(const CartPoleState& state, int steps_taken = 0);

  /// Throws `std::invalid_argument` for an action other than 0 and 1. Throws `std::logic_error` if
  /// the run has ended; call `reset()` first.
  Step step(int action);

  [[nodiscard]] const CartPoleState& state() const { return state_; }
  [[nodiscard]] Observation observation() const;

  /// The steps of this run so far.
  [[nodiscard]] int steps() const { return steps_; }

 private:
  double draw();

  std::mt19937_64 random_;
  CartPoleState state_;
  int steps_ = 0;
  bool ended_ = false;
};

}  // namespace batchrpc_examples
