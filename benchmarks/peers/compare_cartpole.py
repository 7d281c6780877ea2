#!/usr/bin/env python3
"""Times CartPole on batchrpc and on torch.distributed.rpc in turn, and prints the ratios.

    benchmarks/peers/compare_cartpole.py --observers 4,10 --rounds 3

Both run the same workload: 10 episodes of 500 steps. A round runs one after the other, so that both
see the machine in the same minutes; the time is that from all joined to the end of the last episode.
`--floor COMMAND` adds a third program with batchrpc's command line and JSON, such as a bare-socket one.
"""

import argparse
import json
import pathlib
import statistics

from compare_common import run, run_for_report

FOLDER = pathlib.Path(__file__).resolve().parent
PEER = FOLDER / "cartpole_torch_rpc.py"
PROGRAM = FOLDER.parent.parent / "build" / "release" / "bin" / "cartpole"


def run_program(program, extra, observers, batch, options):
    command = [program, "--world-size", observers + 1, "--batch", str(batch).lower()]
    command += ["--episodes", options.episodes, "--steps", options.steps, *extra]
    return run_for_report(command, options.limit)["work_seconds"]


def run_peer(observers, batch, options):
    command = [options.python, str(PEER), "--observers", str(observers)]
    command += ["--batch", str(batch).lower()]
    command += ["--episodes", str(options.episodes), "--steps", str(options.steps)]
    return json.loads(run(command, options.limit).splitlines()[-1])["work_seconds"]


def compare(observers, batch, options):
    systems = {
        "batchrpc": lambda: run_program(options.program, options.extra, observers, batch, options),
        "torch.distributed.rpc": lambda: run_peer(observers, batch, options),
    }
    if options.floor:
        systems["floor"] = lambda: run_program(options.floor, [], observers, batch, options)
    seconds = {name: [] for name in systems}
    for _ in range(options.rounds):
        for name, measure in systems.items():
            seconds[name].append(measure())
    return {
        "observers": observers,
        "batch": batch,
        "work_seconds": seconds,
        "medians": {name: statistics.median(values) for name, values in seconds.items()},
        # Of each round's pair, not of the medians: what disturbs a round disturbs both.
        "ratio": statistics.median(
            peer / ours
            for ours, peer in zip(seconds["batchrpc"], seconds["torch.distributed.rpc"])
        ),
    }


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--observers", default="4,10", help="comma-separated (default: 4,10)")
    parser.add_argument("--batch", default="true", help="true, false or true,false")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--program", default=PROGRAM, type=pathlib.Path)
    parser.add_argument("--floor", type=pathlib.Path, help="a third program to time")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has torch")
    parser.add_argument("--limit", type=float, default=600, help="seconds for one run")
    parser.add_argument("--json", type=pathlib.Path, help="write the report to this file too")
    parser.add_argument("extra", nargs="*", help="after --: passed to batchrpc's program")
    options = parser.parse_args()
    try:
        options.observers = [int(text) for text in options.observers.split(",")]
        options.batch = [{"true": True, "false": False}[text] for text in options.batch.split(",")]
    except (ValueError, KeyError) as error:
        parser.error(f"not understood: {error}")
    if min([options.rounds, options.episodes, options.steps, *options.observers]) < 1:
        parser.error("numbers must be at least 1")
    return options


def main():
    options = parse_arguments()
    report = []
    print(f"{'observers':>9}  {'batch':>5}  {'system':<21}  {'seconds':>8}  of rounds")
    for observers in options.observers:
        for batch in options.batch:
            result = compare(observers, batch, options)
            report.append(result)
            for name, median in result["medians"].items():
                rounds = " ".join(f"{value:.2f}" for value in result["work_seconds"][name])
                print(f"{observers:>9}  {str(batch).lower():>5}  {name:<21}  {median:>8.2f}  {rounds}")
            print(f"{'':>9}  {'':>5}  batchrpc takes 1/{result['ratio']:.1f} of the time", flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
