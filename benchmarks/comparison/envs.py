"""Environments in other processes, stepped by a driver; Ray's users use actors for that."""

from . import systems
from .arguments import number, numbers, seconds
from .suite import FLOOR, OURS, PEER, REPORT, ROOT, Case, Job, Measurement, Metric, Suite, System

METRICS = (
    Metric("steps_per_second", "steps/s", "", compared=True),
    Metric("efficiency", "efficiency", "%", factor=100),
)

VENV = ROOT / ".venv" / "peers" / "bin" / "python"
SETUP = "benchmarks/peers/setup_batch_peers.sh --ray"
FREE = "the same lanes, without a driver"


def add_options(group):
    group.add_argument("--workers", type=number, default=16, help="processes (16)")
    group.add_argument(
        "--envs-per-worker", type=numbers, help="environments per worker; one case each (1,6,96)"
    )
    group.add_argument("--step-ms", type=numbers, help="duration of a group's step (1,10)")
    group.add_argument(
        "--observation-bytes", type=number, default=16, help="per environment (16)"
    )
    group.add_argument("--seconds", type=seconds, help="measured per round (2)")


def name_of(variant):
    buffers = variant["buffers"]
    which = "all workers" if variant["mode"] == "sync" else "any worker"
    return f"batchrpc, {buffers} buffer{'s' * (buffers > 1)}, {which}"


def read_ours(report):
    setting = report["settings"][0]
    free = setting["free_lanes_steps_per_second"]
    ideal = setting["ideal_steps_per_second"]
    found = {FREE: Measurement({"steps_per_second": free, "efficiency": free / ideal})}
    for variant in setting["variants"]:
        values = {metric.key: variant[metric.key] for metric in METRICS}
        found[name_of(variant)] = Measurement(values)
    return found


def _read_peer(name):
    def read(report):
        values = {metric.key: report[metric.key] for metric in METRICS}
        return {name: Measurement(values, report["version"])}

    return read


def _ray(options, measured, envs, step):
    need = systems.python_modules(VENV, "ray, numpy", SETUP)
    same = [
        "--actors", options.workers, "--envs", envs, "--step-ms", step,
        "--observation-bytes", options.observation_bytes, "--seconds", measured,
    ]  # fmt: skip
    jobs = []
    for buffers, mode in ((1, "sync"), (1, "wait"), (2, "wait")):
        name = f"Ray, {buffers} buffer{'s' * (buffers > 1)}, {'all' if mode == 'sync' else 'any'}"
        command = systems.words(
            VENV, systems.PEERS / "env_ray.py", *same, "--buffers", buffers, "--mode", mode
        )
        jobs.append(Job([System(name, PEER, need)], [command], _read_peer(name)))
    return jobs


def make_cases(options):
    measured = options.seconds or (0.5 if options.quick else 2.0)
    program, built = systems.program(options, "env_benchmark")
    variants = [
        {"mode": mode, "buffers": buffers} for mode in ("sync", "recv") for buffers in (1, 2)
    ]
    ours = [System(name_of(variant), OURS, built) for variant in variants]
    cases = []
    for envs in options.envs_per_worker or ([6] if options.quick else [1, 6, 96]):
        for step in options.step_ms or ([1] if options.quick else [1, 10]):
            command = systems.words(
                program, "--workers", options.workers, "--envs-per-worker", envs,
                "--env-threads", 1, "--step-ms", step, "--seconds", measured, "--rounds", 1,
                "--observation-bytes", options.observation_bytes,
                "--buffers", "1,2", "--mode", "sync,recv", "--json", REPORT,
            )  # fmt: skip
            jobs = [Job([*ours, System(FREE, FLOOR, built)], [command], read_ours)]
            jobs += _ray(options, measured, envs, step)
            group = "one environment" if envs == 1 else f"{envs} environments, stepped together"
            title = f"{options.workers} processes of {group}; steps of {step} ms"
            if options.observation_bytes != 16:
                title += f"; observations of {options.observation_bytes} bytes"
            cases.append(Case(title, METRICS, jobs))
    return cases


SUITE = Suite(
    "envs",
    "Environments in other processes",
    "A driver steps the environments of worker processes, with one message per worker and step. A"
    " step sleeps for the given time, so lost time is waiting time. Efficiency is relative to the"
    " steps that these processes could make if only the steps took time. With two buffers a worker"
    " steps one half of its environments while the actions of the other half are being sent.",
    add_options,
    make_cases,
)
