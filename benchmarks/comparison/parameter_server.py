"""The parameter server: gradients to one process, and the model back."""

from . import systems
from .arguments import choices, number
from .suite import FLOOR, OURS, PEER, REPORT, Case, Job, Measurement, Metric, Suite, System
from .suite import UsageError

TORCH = "torch.distributed.rpc"
NO_CMA = "torch.distributed.rpc (no CMA)"
ITERATION = (Metric("iteration", "an iteration", "s", False, compared=True),)
RUN = (Metric("work_seconds", "the run", "s", False, compared=True),)
LABELS = {"tcp": "TCP", "unix": "Unix sockets"}


def add_options(group):
    group.add_argument("--trainers", type=number, default=5, help="(5)")
    group.add_argument("--iterations", type=number, help="(20; 6 with --training)")
    group.add_argument("--training", action="store_true", help="run the tutorial's training")
    group.add_argument(
        "--transports",
        type=choices("tcp", "unix"),
        help="transports of batchrpc and bare sockets (tcp,unix)",
    )
    group.add_argument(
        "--floor", choices=["only", "none"], help="only: no peer; none: no bare sockets"
    )


def reader(name, iterations):
    """The whole measured time, including the first model's transfer, divided by the iterations."""

    def read(report):
        seconds = report["work_seconds"]
        values = {"work_seconds": seconds, "iteration": seconds / iterations}
        return {name: Measurement(values, report.get("torch", "") if "torch" in name else "")}

    return read


def make_cases(options):
    transports = options.transports or (["unix"] if options.quick else ["tcp", "unix"])
    iterations = options.iterations or (
        (1 if options.training else 5) if options.quick else (6 if options.training else 20)
    )
    same = ["--trainers", options.trainers, "--iterations", iterations]
    if options.training:
        if options.floor:
            raise UsageError("--floor and --training exclude each other: bare sockets do not train")
        return [_training(options, transports, same, iterations)]
    return [_traffic(options, transports, same, iterations, adding) for adding in (True, False)]


def _ours(options, transports, words, iterations):
    program, built = systems.program(options, "parameter_server")
    for transport in transports:
        name = f"batchrpc ({LABELS[transport]})"
        command = systems.words(
            program, "--quiet", *words, "--transport", transport, "--json", REPORT
        )
        yield Job([System(name, OURS, built)], [command], reader(name, iterations))


def _peer(options, name, words, iterations):
    command = systems.peer_script(
        options, "parameter_server_torch_rpc.py", *words, "--json", REPORT
    )
    system = System(name, PEER, systems.torch_rpc(options))
    return Job([system], [command], reader(name, iterations))


def _floors(options, transports, words, iterations):
    """Once with one server thread; once with several, where the best number of threads counts."""
    program, built = systems.program(options, "parameter_server_floor")
    for transport in transports:
        for threads in ([1], sorted({2, options.trainers})):
            how = "one thread" if threads == [1] else "several threads"
            name = f"bare {LABELS[transport]}, {how}"
            commands = [
                systems.words(
                    program, *words, "--transport", transport, "--threads", count, "--json", REPORT
                )
                for count in threads
            ]
            system = System(name, FLOOR, built, against=(f"batchrpc ({LABELS[transport]})",))
            yield Job([system], commands, reader(name, iterations))


def _traffic(options, transports, same, iterations, adding):
    extra = [] if adding else ["--no-sum"]
    jobs = list(_ours(options, transports, [*same, "--synthetic", *extra], iterations))
    if options.floor != "none":
        jobs += _floors(options, transports, [*same, *extra], iterations)
    if adding and options.floor != "only":
        words = [*same, "--synthetic"]
        jobs.append(_peer(options, TORCH, words, iterations))
        jobs.append(_peer(options, NO_CMA, [*words, "--no-cma"], iterations))
    what = "traffic and adding" if adding else "traffic alone"
    return Case(f"{options.trainers} trainers, {what}", ITERATION, jobs)


def _training(options, transports, same, iterations):
    jobs = list(_ours(options, transports, same, iterations))
    jobs.append(_peer(options, TORCH, same, iterations))
    title = f"{options.trainers} trainers, ResNet-50 trained for {iterations} iterations"
    return Case(title, RUN, jobs)


SUITE = Suite(
    "parameter_server",
    "The parameter server",
    "Trainers send the gradients of a ResNet-50 to a server and get the model, 94 MB each way."
    " Nothing is computed. With --training it is the run of PyTorch's tutorial instead. All times"
    " run from when all have joined until the last trainer has its last model.",
    add_options,
    make_cases,
)
