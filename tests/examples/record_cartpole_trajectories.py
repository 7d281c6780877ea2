#!/usr/bin/env python3
"""Records trajectories of Gymnasium's CartPole-v1 for cartpole_env_test.cpp.

Needs `pip install gymnasium` (recorded with 1.4.0); run it only to record anew:

    python3 record_cartpole_trajectories.py data/cartpole_trajectories.csv

One line a step. Line 0 of a trajectory is its initial state and has no action. States are those of
the unwrapped environment, in double precision and printed to be read back exactly; Gymnasium's own
observations are the same numbers in single precision.
"""

import random
import sys

import gymnasium

STEP_LIMIT = 500
FIELDS = (
    "trajectory,step,action,position,velocity,angle,angular_velocity,"
    "reward,terminated,truncated"
)


def balance(state):
    """Keeps the pole upright and the cart near the middle, for ever."""
    position, velocity, angle, angular_velocity = state
    lean = angle + 0.25 * angular_velocity + 0.02 * position + 0.05 * velocity
    return 1 if lean > 0 else 0


def drift(state):
    """Keeps the pole leaning to the right, so that the cart leaves the track."""
    _, _, angle, angular_velocity = state
    return 1 if angle - 0.03 + 0.25 * angular_velocity > 0 else 0


def run(start, policy):
    """The lines of one trajectory, to its end."""
    environment = gymnasium.make("CartPole-v1")
    environment.reset(seed=0)
    core = environment.unwrapped
    core.state = start
    lines = [(None, start, 0.0, False, False)]
    ended = False
    while not ended:
        action = policy(len(lines) - 1, [float(value) for value in core.state])
        _, reward, terminated, truncated, _ = environment.step(action)
        state = tuple(float(value) for value in core.state)
        lines.append((action, state, float(reward), terminated, truncated))
        ended = terminated or truncated
    environment.close()
    return lines


def falls_at_the_limit(start):
    """Balances, then pushes right, switching where both limits are reached in one step."""
    for switch in range(STEP_LIMIT - 40, STEP_LIMIT):
        lines = run(start, lambda step, state: 1 if step >= switch else balance(state))
        if lines[-1][3] and lines[-1][4]:
            return lines
    raise SystemExit("found no trajectory that terminates in its last step")


def main():
    draw = random.Random(543)

    def start():
        return tuple(draw.uniform(-0.05, 0.05) for _ in range(4))

    def chance(step, state):
        return draw.randrange(2)

    trajectories = {
        "left": run(start(), lambda step, state: 0),
        "right": run(start(), lambda step, state: 1),
        "alternating": run(start(), lambda step, state: step % 2),
        **{f"random {number}": run(start(), chance) for number in range(8)},
        "far out": run((1.8, -0.4, -0.1, 0.6), chance),
        "drift": run(start(), lambda step, state: drift(state)),
        "balance 0": run(start(), lambda step, state: balance(state)),
        "balance 1": run((-0.9, 0.2, 0.1, -0.3), lambda step, state: balance(state)),
        "falls at the limit": falls_at_the_limit(start()),
    }
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write(FIELDS + "\n")
        for name, lines in trajectories.items():
            for step, (action, state, reward, terminated, truncated) in enumerate(lines):
                numbers = ",".join(repr(float(value)) for value in state)
                out.write(
                    f"{name},{step},{'' if action is None else action},{numbers},"
                    f"{reward:g},{int(terminated)},{int(truncated)}\n"
                )
            print(f"{name}: {len(lines) - 1} steps, terminated {lines[-1][3]}, truncated {lines[-1][4]}")


if __name__ == "__main__":
    main()
