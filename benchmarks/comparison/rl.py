"""Acting in batches: PyTorch's benchmark of reinforcement learning by RPC."""

from . import systems
from .arguments import choices, number, numbers
from .suite import OURS, PEER, REPORT, Case, Job, Measurement, Metric, Suite, System

TORCH = "torch.distributed.rpc"
MICROSECONDS, MIB = 1e6, 1 / (1 << 20)
METRICS = (
    Metric("actions_per_s", "actions/s", "", compared=True),
    Metric("observer_p50", "observer p50", "µs", False, compared=True, factor=MICROSECONDS),
    Metric("observer_p95", "p95", "µs", False, factor=MICROSECONDS),
    Metric("agent_p50", "agent p50", "µs", False, factor=MICROSECONDS),
    Metric("start_to_first_action_s", "first action", "s", False, compared=True),
    Metric("agent_rss_bytes", "agent", "MiB", False, factor=MIB),
    Metric("loaded_rss_bytes", "with libraries alone", "MiB", False, factor=MIB),
)


def add_options(group):
    group.add_argument(
        "--world-size", type=lambda text: numbers(text, 3), help="observers and 2 (10,20,40)"
    )
    group.add_argument(
        "--batch", type=choices("true", "false"), default=["true", "false"], help="(true,false)"
    )
    group.add_argument("--episodes", type=lambda text: numbers(text, 2)[0], help="(10)")
    group.add_argument("--steps", type=number, help="of an episode (100)")
    group.add_argument("--state-size", default="10-20-10", help="(10-20-10)")
    group.add_argument("--nlayers", type=number, default=5, help="(5)")
    group.add_argument("--out-features", type=number, default=10, help="(10)")
    group.add_argument(
        "--worker-threads",
        type=numbers,
        help="of the peer; of several the best counts in each round (2,16)",
    )
    group.add_argument("--transport", choices=["auto", "tcp", "unix"], default="auto")


def read(name, report):
    """One run of a peer, or the one entry of ours."""
    result = report["benchmark_results"][0] if "benchmark_results" in report else report
    observer = result["observer latency (seconds)"]
    values = {metric.key: result.get(metric.key) for metric in METRICS}
    values["actions_per_s"] = result["actions_per_s"]
    values["observer_p50"], values["observer_p95"] = observer["50"], observer["95"]
    values["agent_p50"] = result["agent latency (seconds)"]["50"]
    return {name: Measurement(values, str(result.get("torch", "")) if name == TORCH else "")}


def _peer_commands(options, same):
    """With few threads it is faster in batches, with many when it acts one by one."""
    return [
        systems.peer_script(
            options, "rl_torch_rpc.py", *same, "--worker-threads", threads, "--json", REPORT
        )
        for threads in options.worker_threads or ([4] if options.quick else [2, 16])
    ]


def make_cases(options):
    episodes = options.episodes or (3 if options.quick else 10)
    steps = options.steps or (50 if options.quick else 100)
    program, built = systems.program(options, "rl_benchmark")
    ours = System("batchrpc", OURS, built)
    peer = System(TORCH, PEER, systems.torch_rpc(options))
    cases = []
    for size in options.world_size or ([10] if options.quick else [10, 20, 40]):
        for batch in options.batch:
            same = ["--world-size", size, "--batch", batch, "--episodes", episodes]
            same += ["--steps", steps, "--state-size", options.state_size]
            same += ["--nlayers", options.nlayers, "--out-features", options.out_features]
            own = ["--transport", options.transport, "--output-file-path", REPORT]
            jobs = [
                Job([ours], [systems.words(program, *same, *own)], lambda r: read("batchrpc", r)),
                Job([peer], _peer_commands(options, same), lambda r: read(TORCH, r)),
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
