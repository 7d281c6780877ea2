#!/usr/bin/python3
"""CartPole on torch.distributed.rpc, the peer of batchrpc's `cartpole` program.

One agent and N observers, each in its own process. In each step an observer sends its state to the
agent and waits for an action; an episode is a fixed number of steps of all observers, after which the
agent makes one step of Adam. With `--batch true` the agent gathers the states of all observers in an
asynchronous function and infers once; with `--batch false` it infers for each request separately.

    /usr/bin/python3 benchmarks/peers/cartpole_torch_rpc.py --observers 10 --batch true

It prints one line of JSON. `setup_seconds` runs from the start of the processes until all have joined and
every observer has its environment, `work_seconds` from there to the end of the last episode.

The algorithm is that of PyTorch's tutorial on batch RPC processing, rewritten without its faults:
inferences have their own copy of the states, the unbatched loss pairs each log-probability with its own
return, and every observer's environment has its own seed.
"""

import argparse
import json
import math
import os
import random
import sys
import threading
import time

from ranks import start_ranks

os.environ.setdefault("GLOG_minloglevel", "2")  # no notes on shutting down; read by the imports

import torch  # noqa: E402
import torch.distributed.rpc as rpc  # noqa: E402

STEP_LIMIT = 500
AGENT = "agent"


class CartPole:
    """Gymnasium's CartPole-v1."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.reset()

    def reset(self):
        self.state = [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        self.steps = 0
        return self.state

    def step(self, action):
        """The new state, and whether the run ended with this step."""
        position, velocity, angle, angular_velocity = self.state
        sine, cosine = math.sin(angle), math.cos(angle)
        force = 10.0 if action == 1 else -10.0
        push = (force + 0.05 * angular_velocity**2 * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        self.state = [
            position + 0.02 * velocity,
            velocity + 0.02 * (push - 0.05 * turn * cosine / 1.1),
            angle + 0.02 * angular_velocity,
            angular_velocity + 0.02 * turn,
        ]
        self.steps += 1
        fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 12 * 2 * math.pi / 360
        return self.state, fell or self.steps >= STEP_LIMIT


def make_policy():
    return torch.nn.Sequential(
        torch.nn.Linear(4, 128),
        torch.nn.Dropout(0.6),
        torch.nn.ReLU(),
        torch.nn.Linear(128, 2),
        torch.nn.Softmax(dim=1),
    )


class Observer:
    """Runs the environment of an observer, in its process."""

    def __init__(self, index, seed, discount, batch):
        self.index = index
        self.environment = CartPole(seed)
        self.discount = discount
        self.select = select_action_batched if batch else select_action

    def ready(self):
        """Answers once this object exists."""
        return True

    def run_episode(self, agent, steps):
        """Every step's discounted return, and the length of the first run."""
        state = self.environment.reset()
        ends = []
        for step in range(steps):
            row = torch.tensor([state], dtype=torch.float32)
            action = rpc.rpc_sync(AGENT, self.select, args=(agent, self.index, row))
            state, ended = self.environment.step(action)
            ends.append(ended)
            if ended:
                state = self.environment.reset()
        returns = [0.0] * steps
        following = 0.0
        for step in reversed(range(steps)):
            following = 1.0 + (0.0 if ends[step] else self.discount * following)
            returns[step] = following
        first = ends.index(True) + 1 if True in ends else steps
        return torch.tensor(returns), first


class Agent:
    """Holds the policy, in the agent's process."""

    def __init__(self, options):
        self.observers = options.observers
        self.batch = options.batch
        self.policy = make_policy()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=options.learning_rate)
        self.lock = threading.Lock()
        self.begin_episode()

    def begin_episode(self):
        self.batch_log_probs = []  # one per step, [observers]
        self.log_probs = [[] for _ in range(self.observers)]  # one list per observer, for its steps
        self.begin_batch()

    def begin_batch(self):
        self.rows = [None] * self.observers
        self.missing = self.observers
        self.actions = torch.futures.Future()

    def sample(self, states):
        distribution = torch.distributions.Categorical(self.policy(states))
        actions = distribution.sample()
        return actions, distribution.log_prob(actions)

    def update(self, returns):
        """One step of Adam; `returns` is [observers, steps]."""
        if self.batch:
            log_probs = torch.stack(self.batch_log_probs, dim=1)
        else:
            log_probs = torch.stack([torch.cat(steps) for steps in self.log_probs])
        loss = -(log_probs * returns).sum() / self.observers
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.begin_episode()


@rpc.functions.async_execution
def select_action_batched(agent_reference, observer, row):
    agent = agent_reference.local_value()
    with agent.lock:
        agent.rows[observer] = row
        agent.missing -= 1
        mine = agent.actions.then(lambda actions: actions.value()[observer].item())
        if agent.missing > 0:
            return mine
        full = agent.actions
        actions, log_probs = agent.sample(torch.cat(agent.rows))
        agent.batch_log_probs.append(log_probs)
        agent.begin_batch()
    full.set_result(actions)
    return mine


def select_action(agent_reference, observer, row):
    agent = agent_reference.local_value()
    action, log_prob = agent.sample(row)
    agent.log_probs[observer].append(log_prob)
    return action.item()


def run_agent(options):
    agent = rpc.RRef(Agent(options))
    observers = [
        rpc.remote(
            f"observer{index}",
            Observer,
            args=(index, options.seed + index + 1, options.gamma, options.batch),
        )
        for index in range(options.observers)
    ]
    for observer in observers:
        observer.rpc_sync().ready()
    joined = time.time()

    running_reward = 0.0
    for episode in range(options.episodes):
        futures = [
            observer.rpc_async(timeout=0).run_episode(agent, options.steps)
            for observer in observers
        ]
        results = torch.futures.wait_all(futures)
        agent.local_value().update(torch.stack([returns for returns, _ in results]))
        last_reward = sum(first for _, first in results) / options.observers
        running_reward = 0.5 * last_reward + 0.5 * running_reward
        if options.verbose:
            print(
                f"Episode {episode}  Last reward: {last_reward:.2f}  "
                f"Average reward: {running_reward:.2f}",
                file=sys.stderr,
                flush=True,
            )
    work = time.time() - joined

    steps = options.observers * options.episodes * options.steps
    report = {
        "system": "torch.distributed.rpc",
        "torch": torch.__version__,
        "observers": options.observers,
        "batch": options.batch,
        "episodes": options.episodes,
        "steps": options.steps,
        "setup_seconds": round(joined - options.started, 3),
        "work_seconds": round(work, 3),
        "env_steps": steps,
        "env_steps_per_s": round(steps / work, 1),
        "running_reward": round(running_reward, 2),
    }
    print(json.dumps(report), flush=True)


def run_rank(options):
    torch.set_num_threads(1)
    torch.manual_seed(options.seed + options.rank)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(options.port)
    name = AGENT if options.rank == 0 else f"observer{options.rank - 1}"
    backend = rpc.TensorPipeRpcBackendOptions(num_worker_threads=options.worker_threads)
    rpc.init_rpc(
        name,
        rank=options.rank,
        world_size=options.observers + 1,
        rpc_backend_options=backend,
    )
    if options.rank == 0:
        run_agent(options)
    rpc.shutdown()


def flag(text):
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError("must be true or false")
    return text.lower() == "true"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--observers", type=int, default=10)
    parser.add_argument("--batch", type=flag, default=True, metavar="true|false")
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--gamma", type=float, default=1.0)
    parser.add_argument("--learning-rate", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=543)
    parser.add_argument("--worker-threads", type=int, default=16, help="RPC threads of each process")
    parser.add_argument("--verbose", action="store_true", help="print a line for each episode on stderr")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--started", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if min(options.observers, options.episodes, options.steps, options.worker_threads) < 1:
        parser.error("numbers of observers, episodes, steps and threads must be at least 1")
    return options


if __name__ == "__main__":
    arguments = parse_arguments()
    if arguments.rank is None:
        sys.exit(start_ranks(arguments.observers + 1, "--started", repr(time.time())))
    run_rank(arguments)
