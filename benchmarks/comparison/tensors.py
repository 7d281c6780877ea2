"""Tensors between two processes, in bytes per second."""

from . import systems, wire_peers
from .arguments import choices, number, seconds, sizes
from .suite import FLOOR, OURS, REPORT, Case, Job, Measurement, Metric, Suite, System

OUR_NAMES = {"batchrpc": "batchrpc", "floor": "bare sockets"}
WINDOWS = {"echo": 1, "push": 8}
METRICS = (
    Metric("gb_per_s", "GB/s", "", compared=True),
    Metric("p50_us", "p50", "µs", False),
    Metric("p99_us", "p99", "µs", False),
    Metric("cpu_s_per_gb", "CPU of both", "s/GB", False),
)


def add_options(group):
    group.add_argument("--mode", type=choices("echo", "push"), default=["echo", "push"])
    group.add_argument("--bytes", type=sizes, help="tensor sizes, such as 64K (1M,64M)")
    group.add_argument(
        "--transport", type=choices("tcp", "tls", "unix"), default=["tcp", "unix"], help="(tcp,unix)"
    )
    group.add_argument("--window", type=number, help="calls (1 of echoes, 8 of pushes)")
    group.add_argument("--seconds", type=seconds, help="measured per round (1)")


def read_ours(rows):
    """Uses the faster way to receive a tensor."""
    found = {}
    for system, name in OUR_NAMES.items():
        row = max((row for row in rows if row["system"] == system), key=lambda row: row["gb_per_s"])
        values = {metric.key: row[metric.key] for metric in METRICS}
        if isinstance(row["cpu_s_per_gb"], dict):  # of each side
            values["cpu_s_per_gb"] = sum(row["cpu_s_per_gb"].values())
        found[name] = Measurement(values)
    return found


def read_peer(name, report):
    cpu = report["cpu_us_per_call"]
    gb_per_call = report["gb_per_s"] / report["calls_per_s"]
    values = {key: report[key] for key in ("gb_per_s", "p50_us", "p99_us")}
    values["cpu_s_per_gb"] = (cpu["client"] + cpu["server"]) / 1e6 / gb_per_call
    return {name: Measurement(values, report["version"])}


def size_text(size):
    for unit, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def size_in_words(size):
    text = size_text(size)
    return f"{text} bytes" if text.isdigit() else f"{text[:-1]} {text[-1]}iB"


def _case(options, mode, size, transport):
    length = options.seconds or (0.3 if options.quick else 1.0)
    window = options.window or WINDOWS[mode]
    program, built = systems.program(options, "tensor_benchmark")
    ours = [
        System("batchrpc", OURS, built),
        System(OUR_NAMES["floor"], FLOOR, built),
    ]
    command = systems.words(
        *[program, "--rounds", 1, "--seconds", length, "--mode", mode, "--bytes", size_text(size)],
        *["--transport", transport, "--window", window, "--contiguous", "yes", "--json", REPORT],
    )
    work = ["--mode", mode, "--bytes", size, "--in-flight", window, "--seconds", length]
    jobs = [Job(ours, [command], read_ours)]
    jobs += wire_peers.jobs(options, transport, work, read_peer)
    where = {"tcp": "over TCP", "tls": "over TCP (batchrpc by TLS)"}.get(transport, "by Unix sockets or shared memory")
    title = f"{mode}, {size_in_words(size)}, {window} in flight, {where}"
    return Case(title, METRICS, jobs)


def make_cases(options):
    some = options.bytes or ([1 << 20] if options.quick else [1 << 20, 1 << 26])
    return [
        _case(options, mode, size, transport)
        for transport in options.transport
        for mode in options.mode
        for size in some
    ]


SUITE = Suite(
    "tensors",
    "Tensors",
    "A tensor is sent to another process of the machine and returned (echo: both ways count), or"
    " only sent (push). The faster of batchrpc's ways to receive it, and of a peer's"
    " configurations, counts in each round.",
    add_options,
    make_cases,
)
