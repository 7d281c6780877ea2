"""Batch inference, compared with Ray Serve, TorchRL, moolib and torch.distributed.rpc."""

from . import systems
from .arguments import number, seconds
from .suite import OURS, PEER, ROOT, Case, Job, Measurement, Metric, Suite, System

METRICS = (
    Metric("rows_per_s", "rows/s", "", compared=True),
    Metric("p50_us", "p50", "µs", False),
    Metric("p90_us", "p90", "µs", False),
    Metric("p99_us", "p99", "µs", False, compared=True),
    Metric("mean_batch", "mean batch", "rows"),
)

VENV = ROOT / ".venv" / "peers" / "bin" / "python"
MOOLIB = ROOT / ".venv" / "moolib"
SETUP = "benchmarks/peers/setup_batch_peers.sh"
TORCHRL = "torchrl.modules.inference_server"


def peers(options):
    """name: (Python, program and its options, Requirement)."""
    ray = systems.python_modules(VENV, "ray.serve, torch", SETUP)
    torchrl = systems.python_modules(VENV, TORCHRL, SETUP)
    moolib = systems.python_modules(options.python, "torch, moolib", f"{SETUP} --moolib", MOOLIB)
    torch = systems.torch_rpc(options)
    debian = options.python
    return {
        "Ray Serve": (VENV, ["batch_ray_serve.py"], ray),
        "Ray Serve (throughput)": (VENV, ["batch_ray_serve.py", "--throughput"], ray),
        "TorchRL": (VENV, ["batch_torchrl.py"], torchrl),
        "TorchRL (threads)": (VENV, ["batch_torchrl.py", "--transport", "threads"], torchrl),
        "torch.distributed.rpc": (debian, ["batch_torch_rpc.py"], torch),
        "moolib": (debian, ["batch_moolib.py"], moolib),
        "moolib (shared memory)": (debian, ["batch_moolib.py", "--shared-memory"], moolib),
        "moolib by hand": (debian, ["batch_moolib_by_hand.py"], torch),
    }


def add_options(group):
    group.add_argument("--callers", type=number, default=8, help="(8)")
    group.add_argument("--batch", type=number, default=8, help="largest batch, in rows (8)")
    group.add_argument("--seconds", type=seconds, help="measured per round (5)")
    group.add_argument("--grad", action="store_true", help="track gradients")
    group.add_argument("extra", nargs="*", help="after --: passed to batchrpc's program")


def read(name, report):
    values = {metric.key: report[metric.key] for metric in METRICS}
    return {name: Measurement(values, "" if name == "batchrpc" else report["version"])}


def make_cases(options):
    measured = options.seconds or (1.0 if options.quick else 5.0)
    same = ["--callers", options.callers, "--batch", options.batch, "--seconds", measured]
    same += ["--grad"] * options.grad
    program, built = systems.program(options, "batch_benchmark")
    command = systems.words(program, "peer", *same, "--json", "-", *options.extra)
    jobs = [
        Job([System("batchrpc", OURS, built)], [command], lambda report: read("batchrpc", report))
    ]
    for name, (python, (script, *own), need) in peers(options).items():
        command = systems.words(python, systems.PEERS / script, *own, *same)
        system = System(name, PEER, need)
        jobs.append(Job([system], [command], lambda report, name=name: read(name, report)))
    how = f"{options.callers} callers, batches of at most {options.batch}"
    return [Case(how + (", with gradients" if options.grad else ""), METRICS, jobs)]


SUITE = Suite(
    "batch",
    "Batch inference",
    "Each caller sends one row of 4 floats, waits for its action, and sends the next. An MLP"
    " 4-128-2 answers rows in batches, on one thread, and samples an action for each.",
    add_options,
    make_cases,
)
