#!/usr/bin/env python3
"""Ray as a peer of remote environments: actors, stepped by a driver.

    .venv/peers/bin/python benchmarks/peers/env_ray.py --actors 16 --envs 6 --step-ms 1

It prints one line of JSON. Each actor has environments whose common step takes the given
time (it sleeps); one call steps them. `--envs 1` is how Ray's users distribute environments: one per actor.
`sync` waits for all actors before the next step, `wait` continues with those that are ready (ray.wait). With
`--buffers 2` each actor has two groups of environments: one is stepped while the other's actions
are being sent. It starts a local Ray, and stops it again.
"""

import argparse
import json
import os
import time

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read by the import

import numpy  # noqa: E402
import ray  # noqa: E402


@ray.remote(num_cpus=0)
class Environments:
    def __init__(self, envs, observation_bytes, step_s):
        self.envs, self.observation_bytes, self.step_s = envs, observation_bytes, step_s

    def step(self, actions):
        time.sleep(self.step_s)
        ended = numpy.zeros(self.envs, dtype=bool)
        observations = numpy.zeros((self.envs, self.observation_bytes), dtype=numpy.uint8)
        return observations, numpy.ones(self.envs, dtype=numpy.float32), ended, ended

    def ready(self):
        return True


def measure(options):
    actors = [
        Environments.remote(options.envs, options.observation_bytes, options.step_ms / 1e3)
        for _ in range(options.actors)
    ]
    ray.get([actor.ready.remote() for actor in actors])
    actions = numpy.ones(options.envs, dtype=numpy.int64)
    under_way = [
        {actor.step.remote(actions): actor for actor in actors} for _ in range(options.buffers)
    ]
    pending = {call: actor for buffer in under_way for call, actor in buffer.items()}

    def step_all():
        """The oldest buffer of all actors."""
        buffer = under_way.pop(0)
        ray.get(list(buffer))
        under_way.append({actor.step.remote(actions): actor for actor in buffer.values()})
        return options.actors

    def step_ready():
        ray.wait(list(pending), num_returns=1)
        ready, _ = ray.wait(list(pending), num_returns=len(pending), timeout=0)  # all that are
        ray.get(ready)
        for call in ready:
            actor = pending.pop(call)
            pending[actor.step.remote(actions)] = actor
        return len(ready)

    step = step_all if options.mode == "sync" else step_ready

    def run_for(seconds):
        groups, begin = 0, time.monotonic()
        while time.monotonic() - begin < seconds:
            groups += step()
        return groups * options.envs / (time.monotonic() - begin)

    run_for(1.0)
    return run_for(options.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--actors", type=int, default=16)
    parser.add_argument("--envs", type=int, default=1, help="environments per actor and buffer")
    parser.add_argument("--step-ms", type=float, default=1.0)
    parser.add_argument("--observation-bytes", type=int, default=16, help="bytes per environment")
    parser.add_argument("--buffers", type=int, default=1)
    parser.add_argument("--mode", choices=["sync", "wait"], default="sync")
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    counts = (options.actors, options.envs, options.observation_bytes, options.buffers)
    if min(counts) < 1 or options.seconds <= 0:
        parser.error("actors, envs, observation-bytes, buffers and seconds must be above 0")
    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        rate = measure(options)
    finally:
        ray.shutdown()
    ideal = options.actors * options.envs / (options.step_ms / 1e3)
    print(
        json.dumps(
            {
                "system": "Ray",
                "version": ray.__version__,
                "steps_per_second": rate,
                "efficiency": rate / ideal,
                **vars(options),
            }
        )
    )


if __name__ == "__main__":
    main()
