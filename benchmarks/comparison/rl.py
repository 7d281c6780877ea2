"""Acting in batches: PyTorch's reinforcement learning benchmark for RPC."""

from . import systems
from .arguments import choices, number, numbers
from .suite import FLOOR, OURS, PEER, REPORT, Case, Job, Measurement, Metric, Suite, System

BARE = "bare sockets"
TORCH = "torch.distributed.rpc"
MICROSECONDS, MIB = 1e6, 1 / (1 << 20)
METRICS = (
    Metric("actions_per_s", "actions/s", "", compared=True),
    Metric("observer_p50", "observer p50", "µs", False, compared=True, factor=MICROSECONDS),
    Metric("observer_p95", "p95", "µs", False, factor=MICROSECONDS),
    Metric("agent_p50", "agent p50", "µs", False, factor=MICROSECONDS),
    Metric("start_to_first_action_s", "first action", "s", False, compared=True),
    Metric("agent_memory", "agent beside its libraries", "MiB", False, compared=True, factor=MIB),
)


def add_options(group):
    group.add_argument(
        "--world-size", type=lambda text: numbers(text, 3), help="observers plus 2 (10,20,40)"
    )
    group.add_argument(
        "--batch", type=choices("true", "false"), default=["true", "false"], help="(true,false)"
    )
    group.add_argument("--episodes", type=lambda text: numbers(text, 2)[0], help="(10)")
    group.add_argument("--steps", type=number, help="per episode (100)")
    group.add_argument("--state-size", default="10-20-10", help="(10-20-10)")
    group.add_argument("--nlayers", type=number, default=5, help="(5)")
    group.add_argument("--out-features", type=number, default=10, help="(10)")
    group.add_argument(
        "--worker-threads",
        type=numbers,
        help="worker threads of the peer, one system each (16,2); its default is 16",
    )
    group.add_argument("--transport", choices=["auto", "tcp", "unix"], default="auto")


def read(name, report):
    """One run of a peer or of bare sockets, or the only entry of our report."""
    result = report["benchmark_results"][0] if "benchmark_results" in report else report
    values = {metric.key: result.get(metric.key) for metric in METRICS}
    if "agent_anonymous_bytes" in result:
        observer = result["observer latency (seconds)"]
        values["observer_p50"], values["observer_p95"] = observer["50"], observer["95"]
        values["agent_p50"] = result["agent latency (seconds)"]["50"]
        values["agent_memory"] = result["agent_anonymous_bytes"] - result["loaded_anonymous_bytes"]
    return {name: Measurement(values, str(result.get("torch", "")))}


def _reader(name):
    return lambda report: read(name, report)


def _floor(options, same):
    """Bare sockets have one workload. The better of sleeping and polling counts."""
    if (options.state_size, options.nlayers, options.out_features) != ("10-20-10", 5, 10):
        return []
    program, built = systems.program(options, "rl_floor")
    transport = "unix" if options.transport == "auto" else options.transport
    same = [*same, "--transport", transport, "--json", REPORT]
    commands = [systems.words(program, *same, "--poll", poll) for poll in (0, 300, 1000)]
    return [Job([System(BARE, FLOOR, built)], commands, _reader(BARE))]


def _peers(options, same):
    """The original uses the default of 16 threads; in batches fewer threads are faster."""
    jobs = []
    for threads in options.worker_threads or ([16] if options.quick else [16, 2]):
        name = TORCH if threads == 16 else f"{TORCH}, {threads} threads"
        command = systems.peer_script(
            options, "rl_torch_rpc.py", *same, "--worker-threads", threads, "--json", REPORT
        )
        system = System(name, PEER, systems.torch_rpc(options))
        jobs.append(Job([system], [command], _reader(name)))
    return jobs


def make_cases(options):
    episodes = options.episodes or (3 if options.quick else 10)
    steps = options.steps or (50 if options.quick else 100)
    program, built = systems.program(options, "rl_benchmark")
    ours = System("batchrpc", OURS, built)
    cases = []
    for size in options.world_size or ([10] if options.quick else [10, 20, 40]):
        for batch in options.batch:
            same = ["--world-size", size, "--batch", batch, "--episodes", episodes]
            same += ["--steps", steps]
            shape = ["--state-size", options.state_size, "--nlayers", options.nlayers]
            shape += ["--out-features", options.out_features]
            own = ["--transport", options.transport, "--output-file-path", REPORT]
            command = systems.words(program, *same, *shape, *own)
            jobs = [
                Job([ours], [command], _reader("batchrpc")),
                *_floor(options, same),
                *_peers(options, [*same, *shape]),
            ]
            how = "in batches" if batch == "true" else "one by one"
            cases.append(Case(f"{size - 2} observers, {how}", METRICS, jobs))
    return cases


SUITE = Suite(
    "rl",
    "Acting: an agent and observers",
    "PyTorch's RL benchmark: in each step every observer sends the agent a state of 2000 floats and"
    " waits for its action; a coordinator starts the episodes. The first episode warms up.",
    add_options,
    make_cases,
)
