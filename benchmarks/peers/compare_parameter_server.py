#!/usr/bin/env python3
"""Times the parameter server on batchrpc, torch.distributed.rpc and bare sockets in turn.

    benchmarks/peers/compare_parameter_server.py --rounds 3             # traffic: --synthetic
    benchmarks/peers/compare_parameter_server.py --rounds 3 --training  # the tutorial's whole run

Traffic is 5 trainers that send the gradients of a ResNet-50 and get the model, 94 MB each way, 20
iterations; nobody computes. With `sum` the server adds the gradients up, with `no-sum` it receives and
forgets them. The peer has no choice of transport: on one machine it has the kernel copy between the two
processes (CMA), or where that is forbidden uses shared memory; `peer, no CMA` is the latter. Bare sockets
(`parameter_server_floor`) run with one thread of the server, and with 2 and as many as there are trainers, of
which the faster counts.

All times are from where everybody has joined to the last trainer's last model, the first model's way
included, divided by the number of iterations; with --training not divided.

A round runs all one after the other, so that they see the machine in the same minutes. Ratios are of each
round's pair, and the median of the rounds is shown: what disturbs a round disturbs both.
"""

import argparse
import json
import pathlib
import statistics

from compare_common import run_for_report

FOLDER = pathlib.Path(__file__).resolve().parent
PEER = FOLDER / "parameter_server_torch_rpc.py"
PROGRAMS = FOLDER.parent.parent / "build" / "release" / "bin"
PEER_NAME = "torch.distributed.rpc"


def our_run(options, *words):
    command = [options.programs / "parameter_server", "--quiet", "--trainers", options.trainers]
    return run_for_report([*command, "--iterations", options.iterations, *words], options.limit)


def peer_run(options, *words):
    command = [options.python, PEER, "--trainers", options.trainers]
    return run_for_report([*command, "--iterations", options.iterations, *words], options.limit)


def floor_run(options, threads, *words):
    command = [options.programs / "parameter_server_floor", "--trainers", options.trainers]
    command += ["--iterations", options.iterations, *words]
    return min(
        (run_for_report([*command, "--threads", count], options.limit) for count in threads),
        key=lambda report: report["work_seconds"],
    )


def traffic(options):
    """What to run, by name: functions that give seconds an iteration; and the pairs to compare."""
    systems, pairs = {}, []

    def each(report):
        return report["work_seconds"] / options.iterations

    if options.peer:
        systems[PEER_NAME] = lambda: each(peer_run(options, "--synthetic"))
        systems["peer, no CMA"] = lambda: each(peer_run(options, "--synthetic", "--no-cma"))
    for transport in options.transports:
        for summing in ("sum", "no-sum"):
            extra = ["--transport", transport] + (["--no-sum"] if summing == "no-sum" else [])
            ours = f"batchrpc {transport} {summing}"
            systems[ours] = lambda extra=extra: each(our_run(options, "--synthetic", *extra))
            for label, threads in (("one thread", [1]), ("threads", {2, options.trainers})):
                floor = f"bare {transport} {summing}, {label}"
                systems[floor] = lambda extra=extra, threads=threads: each(
                    floor_run(options, threads, *extra)
                )
                pairs.append((ours, floor))
            if summing == "sum" and options.peer:
                pairs += [(ours, PEER_NAME), (ours, "peer, no CMA")]
    return systems, pairs


def training(options):
    systems = {PEER_NAME: lambda: peer_run(options)["work_seconds"]}
    pairs = []
    for transport in options.transports:
        ours = f"batchrpc {transport}"
        systems[ours] = lambda name=transport: our_run(options, "--transport", name)["work_seconds"]
        pairs.append((ours, PEER_NAME))
    return systems, pairs


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trainers", type=int, default=5)
    parser.add_argument("--iterations", type=int, help="default: 20, and 6 with --training")
    parser.add_argument("--training", action="store_true", help="with all computing")
    parser.add_argument("--transports", default="tcp,unix", help="comma-separated")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="bare sockets only")
    parser.add_argument("--programs", default=PROGRAMS, type=pathlib.Path, help="their folder")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has torch")
    parser.add_argument("--limit", type=float, default=600, help="seconds for one run")
    parser.add_argument("--json", type=pathlib.Path, help="write the report to this file too")
    options = parser.parse_args()
    options.transports = options.transports.split(",")
    if options.iterations is None:
        options.iterations = 6 if options.training else 20
    if min(options.rounds, options.trainers, options.iterations) < 1:
        parser.error("numbers must be at least 1")
    if options.training and not options.peer:
        parser.error("--training compares with the peer")
    return options


def main():
    options = parse_arguments()
    systems, pairs = (training if options.training else traffic)(options)
    seconds = {name: [] for name in systems}
    for _ in range(options.rounds):
        for name, measure in systems.items():
            seconds[name].append(measure())
    print(f"{'seconds of ' + ('a run' if options.training else 'an iteration'):<30}  median  rounds")
    for name, values in seconds.items():
        rounds = " ".join(f"{value:.3f}" for value in values)
        print(f"{name:<30}  {statistics.median(values):>6.3f}  {rounds}")
    ratios = {}
    for ours, other in pairs:
        ratio = statistics.median(b / a for a, b in zip(seconds[ours], seconds[other]))
        ratios[f"{other} / {ours}"] = ratio
        print(f"{ours} is {ratio:.2f} times as fast as {other}")
    if options.json:
        report = {"seconds": seconds, "ratios": ratios}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
