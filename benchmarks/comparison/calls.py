"""Calls that do nothing: the cost of a call in each system."""

from . import systems, wire_peers
from .arguments import choices, numbers, seconds
from .suite import FLOOR, OURS, REPORT, Case, Job, Measurement, Metric, Suite, System

SHORT, WORKERS, BARE = "batchrpc", "batchrpc (workers)", "bare sockets"
METRICS = (
    Metric("calls_per_s", "calls/s", "", compared=True),
    Metric("p50_us", "p50", "µs", False),
    Metric("p99_us", "p99", "µs", False),
    Metric("cpu_us", "CPU of both", "µs", False),
)


def add_options(group):
    group.add_argument("--in-flight", type=numbers, help="calls in flight (1,64)")
    group.add_argument(
        "--transport", type=choices("tcp", "tls", "unix"), default=["tcp", "unix"], help="(tcp,unix)"
    )
    group.add_argument("--seconds", type=seconds, help="counted per round (1)")
    group.add_argument("--one-cpu", action="store_true", help="all processes on one CPU")


def _measurement(row):
    cpu = row["cpu_us"]
    return Measurement(
        {
            "calls_per_s": row["calls_per_s"],
            "p50_us": row["rtt_us"]["p50"],
            "p99_us": row["rtt_us"]["p99"],
            "cpu_us": cpu["client"] + cpu["server"],
        }
    )


def read_ours(rows):
    """Uses the faster way to take results, get or then, and the blocking floor."""
    kinds = {
        BARE: [row for row in rows if row["system"] == "floor"],
        SHORT: [row for row in rows if row["handlers"] == "short"],
        WORKERS: [row for row in rows if row["handlers"] == "workers"],
    }
    return {
        name: _measurement(max(some, key=lambda row: row["calls_per_s"]))
        for name, some in kinds.items()
    }


def read_peer(name, report):
    cpu = report["cpu_us_per_call"]
    values = {key: report[key] for key in ("calls_per_s", "p50_us", "p99_us")}
    values["cpu_us"] = cpu["client"] + cpu["server"]
    return {name: Measurement(values, report["version"])}


def make_cases(options):
    length = options.seconds or (0.2 if options.quick else 1.0)
    program, built = systems.program(options, "call_benchmark")
    ours = [
        System(SHORT, OURS, built),
        System(WORKERS, OURS, built),
        System(BARE, FLOOR, built),
    ]
    prefix = ["taskset", "-c", "0"] if options.one_cpu else []
    cases = []
    for transport in options.transport:
        for in_flight in options.in_flight or ([64] if options.quick else [1, 64]):
            command = systems.words(
                *[program, "--rounds", 1, "--seconds", length, "--transport", transport],
                *["--in-flight", in_flight, "--pinned", "yes" if options.one_cpu else "no"],
                *["--case", "payload64", "--floor", "blocking", "--json", REPORT],
            )
            work = ["--mode", "calls", "--bytes", 64, "--in-flight", in_flight]
            work += ["--seconds", length]
            jobs = [Job(ours, [command], read_ours)]
            jobs += wire_peers.jobs(options, transport, work, read_peer, prefix)
            where = {"tcp": "over TCP", "tls": "over TCP (batchrpc by TLS)"}.get(transport, "by Unix sockets or shared memory")
            cases.append(Case(f"{in_flight} in flight, {where}", METRICS, jobs))
    return cases


SUITE = Suite(
    "calls",
    "Calls that do nothing",
    "64 bytes each way between two processes of one machine, with a window of calls. “batchrpc”"
    " runs handlers where the message is read, “(workers)” on its four workers. The faster of its"
    " two ways to take results, and of a peer's configurations, counts in each round.",
    add_options,
    make_cases,
)
