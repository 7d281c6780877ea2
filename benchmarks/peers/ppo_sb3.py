#!/usr/bin/env python3
"""Stable-Baselines3's PPO in MinAtar's Breakout, with the network and settings of ppo --env minatar-breakout.
Measures after how many steps the mean return of the last 100 episodes is 10, and its value at the end.

    python3 -m venv .venv/sb3
    .venv/sb3/bin/pip install torch==2.13.0 stable-baselines3==2.9.2 minatar==1.0.15
    .venv/sb3/bin/python benchmarks/peers/ppo_sb3.py --seed 1 --until 10

Prints one JSON object. The learning rate is annealed over --total-steps 5000000, even if --until
or --most-steps ends the run earlier.
"""

import argparse
import json
import time

import gymnasium
import minatar
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

ENVS, STEPS = 64, 128


class Breakout(gymnasium.Env):
    """Like Gymnasium's MinAtar/Breakout-v1, but channels first, as PyTorch's convolutions need them."""

    def __init__(self, seed):
        self.game = minatar.Environment("breakout")
        self.game.seed(seed)
        self.actions = self.game.minimal_action_set()
        self.action_space = gymnasium.spaces.Discrete(len(self.actions))
        self.observation_space = gymnasium.spaces.Box(0, 1, (4, 10, 10), np.float32)

    def seen(self):
        return self.game.state().transpose(2, 0, 1).astype(np.float32)

    def reset(self, *, seed=None, options=None):
        self.game.reset()
        return self.seen(), {}

    def step(self, action):
        reward, ended = self.game.act(self.actions[action])
        return self.seen(), float(reward), bool(ended), False, {}


class Network(BaseFeaturesExtractor):
    """16 convolutions 3 x 3, 128 units."""

    def __init__(self, space):
        super().__init__(space, 128)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(4, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(1024, 128), torch.nn.ReLU()
        )

    def forward(self, planes):
        return self.layers(planes)


class Watch(BaseCallback):
    def __init__(self, until, most_steps):
        super().__init__()
        self.until, self.most_steps, self.reached = until, most_steps, None

    def mean(self):
        returns = [episode["r"] for episode in self.model.ep_info_buffer]
        return float(np.mean(returns)) if len(returns) == 100 else 0.0

    def _on_rollout_end(self):
        if self.reached is None and self.mean() >= self.until:
            self.reached = self.num_timesteps

    def _on_step(self):
        return self.reached is None and self.num_timesteps < self.most_steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--until", type=float, default=10, help="end at this mean return of 100 episodes")
    parser.add_argument("--total-steps", type=int, default=5_000_000)
    parser.add_argument("--most-steps", type=int, default=5_000_000, help="end after this many steps")
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    envs = VecMonitor(DummyVecEnv([lambda i=i: Breakout(1000 * arguments.seed + i) for i in range(ENVS)]))
    model = PPO(
        "CnnPolicy",
        envs,
        learning_rate=lambda left: arguments.learning_rate * left,
        n_steps=STEPS,
        batch_size=ENVS * STEPS // 8,
        n_epochs=4,
        ent_coef=0.01,
        seed=arguments.seed,
        device="cpu",
        policy_kwargs={"features_extractor_class": Network, "net_arch": [], "normalize_images": False,
                       "optimizer_kwargs": {"eps": 1e-5}},
    )
    watch = Watch(arguments.until, arguments.most_steps)
    begin = time.monotonic()
    model.learn(arguments.total_steps, callback=watch)
    seconds = time.monotonic() - begin
    print(json.dumps({
        "system": "Stable-Baselines3", "seed": arguments.seed, "learning_rate": arguments.learning_rate,
        "reached_after_steps": watch.reached, "env_steps": model.num_timesteps,
        "mean_return": watch.mean(), "env_steps_per_s": model.num_timesteps / seconds,
    }))


if __name__ == "__main__":
    main()
