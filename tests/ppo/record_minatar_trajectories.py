#!/usr/bin/env python3
"""Records trajectories of MinAtar's Breakout for breakout_test.cpp.

Needs `pip install --no-deps MinAtar` and `pip install numpy` (recorded with 1.0.15); run it only to
record anew:

    python3 record_minatar_trajectories.py data/minatar_breakout_trajectories.csv

One line a step, with what was drawn at random: whether the action before was taken again (sticky),
and in the line of a reset, which has no action, the corner that the ball starts from (0: left).
Actions are those of Gymnasium's MinAtar/Breakout-v1: 0 none, 1 left, 2 right. The rest is read off
the observation: the cells of paddle, ball and trail as y * 10 + x, and the three rows of bricks, of
which the first cell is the highest of 30 bits, in hexadecimal.
"""

import logging
import sys

import numpy

logging.disable(logging.CRITICAL)  # MinAtar would like seaborn
from minatar import Environment  # noqa: E402

FIELDS = "episode,action,sticky,corner,reward,terminated,paddle,ball,trail,bricks"


class Recorder:
    """Notes what the game draws from its generator."""

    def __init__(self, seed):
        self.random = numpy.random.RandomState(seed)
        self.units = []
        self.corners = []

    def rand(self):
        self.units.append(self.random.rand())
        return self.units[-1]

    def randint(self, bound):
        assert bound == 2
        self.corners.append(int(self.random.randint(bound)))
        return self.corners[-1]


def only_cell(plane):
    cells = numpy.flatnonzero(plane)
    assert len(cells) == 1
    return int(cells[0])


def line_of(state):
    paddle, ball, trail, brick = (state[:, :, channel] for channel in range(4))
    assert not brick[0].any() and not brick[4:].any()
    bits = 0
    for cell in brick[1:4].flatten():
        bits = bits * 2 + int(cell)
    return f"{only_cell(paddle)},{only_cell(ball)},{only_cell(trail)},{bits:x}"


def follow(game, chooser, slack):
    """Keeps the paddle under where the ball comes down, mostly; so that games are long."""
    if chooser.random() < slack:
        return int(chooser.integers(3))
    x, step = game.ball_x, {0: -1, 1: 1, 2: 1, 3: -1}[game.ball_dir]
    if game.ball_dir in (2, 3):
        for _ in range(game.ball_y, 8):
            x, step = (x + step, step) if 0 <= x + step <= 9 else (x, -step)
    return 0 if x == game.pos else 1 if x < game.pos else 2


def main():
    environment = Environment("breakout", sticky_action_prob=0.1, difficulty_ramping=True)
    actions = environment.minimal_action_set()
    recorder = Recorder(19)
    environment.random = environment.env.random = recorder
    chooser = numpy.random.default_rng(20)
    slacks = [1.0] * 30 + [0.3] * 20 + [0.02, 0.0] * 10
    steps = 0
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write(FIELDS + "\n")
        for episode, slack in enumerate(slacks):
            environment.reset()
            out.write(f"{episode},,,{recorder.corners[-1]},0,0,{line_of(environment.state())}\n")
            total, count, ended = 0, 0, False
            while not ended and count < 1500:
                action = follow(environment.env, chooser, slack)
                reward, ended = environment.act(actions[action])
                sticky = int(recorder.units[-1] < 0.1)
                out.write(f"{episode},{action},{sticky},,{reward},{int(ended)},{line_of(environment.state())}\n")
                total, count = total + reward, count + 1
            steps += count
            print(f"episode {episode}: {count} steps, return {total}, terminated {ended}")
    print(f"{steps} steps")


if __name__ == "__main__":
    main()
