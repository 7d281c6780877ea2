"""CartPole: training with one agent and several observers, each in its own process."""

import pathlib

from . import systems
from .arguments import choices, number, numbers
from .suite import FLOOR, OURS, PEER, REPORT, Case, Job, Measurement, Metric, Suite, System

TORCH = "torch.distributed.rpc"
METRICS = (
    Metric("work_seconds", "time", "s", False, compared=True),
    Metric("env_steps_per_s", "steps/s", ""),
    Metric("setup_seconds", "set-up", "s", False),
)


def add_options(group):
    group.add_argument("--observers", type=numbers, help="comma-separated (4,10)")
    group.add_argument(
        "--batch", type=choices("true", "false"), default=["true"], help="true, false or both"
    )
    group.add_argument("--episodes", type=number, help="(10)")
    group.add_argument("--steps", type=number, default=500, help="per episode (500)")
    group.add_argument(
        "--floor",
        type=lambda text: pathlib.Path(text).absolute(),
        metavar="PROGRAM",
        help="a third program, with the command line and the JSON of batchrpc's",
    )
    group.add_argument("extra", nargs="*", help="after --: passed to batchrpc's program")


def read(name, report):
    values = {metric.key: report.get(metric.key) for metric in METRICS}
    values["work_seconds"] = report["work_seconds"]
    return {name: Measurement(values, report["torch"] if name == TORCH else "")}


def make_cases(options):
    program, built = systems.program(options, "cartpole")
    ours = System("batchrpc", OURS, built)
    floor = System("floor", FLOOR)
    peer = System(TORCH, PEER, systems.torch_rpc(options))
    length = ["--episodes", options.episodes or (3 if options.quick else 10)]
    length += ["--steps", options.steps]
    cases = []
    for observers in options.observers or ([4] if options.quick else [4, 10]):
        for batch in options.batch:
            same = ["--world-size", observers + 1, "--batch", batch, *length, "--json", REPORT]
            theirs = ["--observers", observers, "--batch", batch, *length]
            jobs = [
                Job(
                    [ours],
                    [systems.words(program, *same, *options.extra)],
                    lambda report: read("batchrpc", report),
                ),
                Job(
                    [peer],
                    [systems.peer_script(options, "cartpole_torch_rpc.py", *theirs)],
                    lambda report: read(TORCH, report),
                ),
            ]
            if options.floor:
                jobs.append(
                    Job(
                        [floor],
                        [systems.words(options.floor, *same)],
                        lambda report: read("floor", report),
                    )
                )
            how = "in batches" if batch == "true" else "one by one"
            cases.append(Case(f"{observers} observers, {how}", METRICS, jobs))
    return cases


SUITE = Suite(
    "cartpole",
    "CartPole: an agent that learns",
    "CartPole, 10 episodes of 500 steps. Observers ask the agent for an action in each step, and"
    " the agent makes one step of Adam after each episode. The time runs from when all have joined"
    " to the end of the last episode.",
    add_options,
    make_cases,
)
