#!/usr/bin/python3
"""Acting on torch.distributed.rpc, the peer of batchrpc's `rl_benchmark`.

    /usr/bin/python3 benchmarks/peers/rl_torch_rpc.py --world-size 10 --batch true

A coordinator (rank 0), an agent (1) and observers (from 2 on), each in its own process. In an episode each
observer sends the agent random states, one after the other, and waits for the action for each. The
agent keeps all log-probabilities, with their graphs, until the episode ends. With `--batch true` the
agent gathers the states of all observers in an asynchronous function and infers once; with
`--batch false` it infers for each request separately.

Prints one line of JSON. The first episode is for warming up and is reported separately. Latencies and throughputs are
percentiles of all samples of the other episodes: of the agent from a batch's first state (or a
request's arrival) to its actions, of an observer from its call to its action. `actions_per_s` is of
the episodes' times as the coordinator sees them, `start_to_first_action_s` begins with this process.

The workload is that of PyTorch's benchmark of this name, rewritten. It is faster for three reasons: autograd
does not look for anomalies, calls carry no reference to the agent, and torch uses one thread.
"""

import argparse
import json
import math
import os
import pathlib
import random
import sys
import threading
import time

from ranks import start_ranks

os.environ.setdefault("GLOG_minloglevel", "2")  # no notes on shutting down; read by the imports

COORDINATOR, AGENT = "coordinator", "agent"
PERCENTILES = (50, 75, 90, 95)


def memory():
    """The resident memory of this process, and the part of it that belongs to no file, in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file)
    in_all, anonymous, shared = (
        int(lines[key].split()[0]) * 1024 for key in ("VmRSS", "RssAnon", "RssShmem")
    )
    return in_all, anonymous + shared


# The process that starts the ranks needs no torch, and does not wait for its import.
if "--rank" in sys.argv:
    import torch
    import torch.distributed.rpc as rpc

    LOADED = memory()
    async_execution = rpc.functions.async_execution
else:

    def async_execution(function):
        return function


class Agent:
    """The policy, and the actions of this episode."""

    def __init__(self, options):
        self.observers = options.world_size - 2
        inner = [
            torch.nn.Linear(options.out_features, options.out_features)
            for _ in range(options.nlayers)
        ]
        self.policy = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(math.prod(options.state_size), options.out_features),
            *inner,
        )
        self.lock = threading.Lock()
        self.begin_episode()
        self.begin_batch()

    def begin_episode(self):
        self.log_probs = []
        self.latencies = []

    def begin_batch(self):
        self.states = [None] * self.observers
        self.missing = self.observers
        self.actions = torch.futures.Future()

    def sample(self, states):
        scores = torch.nn.functional.softmax(self.policy(states), dim=0)
        distribution = torch.distributions.Categorical(scores, validate_args=False)
        actions = distribution.sample()
        self.log_probs.append(distribution.log_prob(actions))
        return actions

    def act(self, state):
        start = time.perf_counter()
        action = self.sample(state.unsqueeze(0)).item()
        self.latencies.append(time.perf_counter() - start)
        return action

    def act_in_batch(self, observer, state):
        with self.lock:
            if self.missing == self.observers:
                self.first_arrival = time.perf_counter()
            self.states[observer] = state
            self.missing -= 1
            mine = self.actions.then(lambda actions: actions.value()[observer].item())
            if self.missing > 0:
                return mine
            full, actions = self.actions, self.sample(torch.stack(self.states))
            self.latencies.append(time.perf_counter() - self.first_arrival)
            self.begin_batch()
        full.set_result(actions)
        return mine

    def finish_episode(self):
        latencies = self.latencies
        self.begin_episode()
        return latencies


agent = None  # in the agent's process


def make_agent(options):
    global agent
    agent = Agent(options)


@async_execution
def select_action_batched(observer, state):
    return agent.act_in_batch(observer, state)


def select_action(_, state):
    return agent.act(state)


def finish_episode():
    return agent.finish_episode()


def agent_process():
    """For the agent's process: memory now, memory with only torch loaded, and threads."""
    return memory(), LOADED, len(os.listdir("/proc/self/task"))


class Observer:
    """An observer, in its process."""

    def __init__(self, index, options):
        self.index = index
        self.state_size = options.state_size
        self.select = select_action_batched if options.batch else select_action
        self.random = random.Random(options.seed + index)

    def ready(self):
        """Answers once this object exists."""
        return True

    def run_episode(self, steps):
        """The time of its first action, and the seconds of each call."""
        rewards = torch.zeros(steps)
        first, latencies = None, []
        state = torch.rand(self.state_size)
        for step in range(steps):
            start = time.perf_counter()
            rpc.rpc_sync(AGENT, self.select, args=(self.index, state))
            latencies.append(time.perf_counter() - start)
            first = first or time.time()
            state = torch.rand(self.state_size)
            rewards[step] = self.random.randint(0, 1)
        return first, latencies


def percentiles(values):
    """Percentiles of all values, interpolated between neighbours."""
    ordered = sorted(values)
    result = {}
    for percent in PERCENTILES:
        place = (len(ordered) - 1) * percent / 100
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        result[str(percent)] = ordered[low] + (ordered[high] - ordered[low]) * (place - low)
    return result


def run_episodes(options, observers):
    """The time of the first action; and for each episode its seconds, the agent's latencies and
    the observers'."""
    first, episodes = None, []
    for _ in range(options.episodes):
        start = time.perf_counter()
        results = torch.futures.wait_all(
            [observer.rpc_async(timeout=0).run_episode(options.steps) for observer in observers]
        )
        seconds = time.perf_counter() - start
        first = first or min(began for began, _ in results)
        latencies = [latency for _, each in results for latency in each]
        episodes.append((seconds, rpc.rpc_sync(AGENT, finish_episode), latencies))
    return first, episodes


def run_coordinator(options):
    rpc.rpc_sync(AGENT, make_agent, args=(options,))
    count = options.world_size - 2
    observers = [
        rpc.remote(f"observer{index}", Observer, args=(index, options)) for index in range(count)
    ]
    for observer in observers:
        observer.rpc_sync().ready()
    first, episodes = run_episodes(options, observers)
    agent, loaded, threads = rpc.rpc_sync(AGENT, agent_process)

    warm_up, *measured = episodes
    actions = count * options.steps
    of_agent = [value for _, values, _ in measured for value in values]
    of_observers = [value for _, _, values in measured for value in values]
    at_once = count if options.batch else 1
    report = {
        "system": "torch.distributed.rpc",
        "torch": torch.__version__,
        "world_size": options.world_size,
        "batch": options.batch,
        "state_size": options.state_size,
        "nlayers": options.nlayers,
        "out_features": options.out_features,
        "episodes": options.episodes,
        "steps": options.steps,
        "agent latency (seconds)": percentiles(of_agent),
        "agent throughput": percentiles([at_once / value for value in of_agent]),
        "observer latency (seconds)": percentiles(of_observers),
        "observer throughput": percentiles([1 / value for value in of_observers]),
        "actions_per_s": actions * len(measured) / sum(seconds for seconds, _, _ in measured),
        "warm_up": {"actions_per_s": actions / warm_up[0]},
        "start_to_first_action_s": first - options.started,
        "agent_rss_bytes": agent[0],
        "agent_anonymous_bytes": agent[1],
        "loaded_rss_bytes": loaded[0],
        "loaded_anonymous_bytes": loaded[1],
        "agent_threads": threads,
    }
    print(json.dumps(report), flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def run_rank(options):
    torch.set_num_threads(1)
    torch.manual_seed(options.seed + options.rank)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(options.port)
    names = [COORDINATOR, AGENT]
    rpc.init_rpc(
        names[options.rank] if options.rank < len(names) else f"observer{options.rank - 2}",
        rank=options.rank,
        world_size=options.world_size,
        rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
            num_worker_threads=options.worker_threads
        ),
    )
    if options.rank == 0:
        run_coordinator(options)
    rpc.shutdown()


def process_start():
    """The start of this process, on the clock of time.time()."""
    with open("/proc/self/stat", encoding="utf-8") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])  # since the machine's boot
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age


def flag(text):
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError("must be true or false")
    return text.lower() == "true"


def shape(text):
    try:
        sizes = [int(size) for size in text.split("-")]
    except ValueError:
        sizes = [0]
    if min(sizes) < 1:
        raise argparse.ArgumentTypeError("must be sizes such as 10-20-10")
    return sizes


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--world-size", type=int, default=10, help="number of observers plus 2")
    parser.add_argument("--batch", type=flag, default=True, metavar="true|false")
    parser.add_argument("--state-size", type=shape, default="10-20-10")
    parser.add_argument("--nlayers", type=int, default=5)
    parser.add_argument("--out-features", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=10, help="the first is for warming up")
    parser.add_argument("--steps", type=int, default=100, help="per observer and episode")
    parser.add_argument("--seed", type=int, default=543)
    parser.add_argument("--worker-threads", type=int, default=16, help="RPC threads of each process")
    parser.add_argument("--json", type=pathlib.Path, help="write the report to this file too")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--started", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if min(options.steps, options.out_features, options.worker_threads) < 1 or options.nlayers < 0:
        parser.error("numbers of steps, features and threads must be at least 1")
    if options.world_size < 3 or options.episodes < 2:
        parser.error("there must be at least 3 processes and 2 episodes, since the first is for warming up")
    return options


if __name__ == "__main__":
    arguments = parse_arguments()
    if arguments.rank is None:
        sys.exit(start_ranks(arguments.world_size, "--started", repr(process_start())))
    run_rank(arguments)
