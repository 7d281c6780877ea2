#!/usr/bin/env python3
"""Times batch inference on batchrpc and on its peers in turn, and prints a table of medians.

    benchmarks/peers/compare_batch.py --batchrpc build/release/bin/batch_benchmark --rounds 3

All do the same job (batch_common.py). A round runs one after the other, so that all see the machine in
the same minutes. A peer that cannot run is in the table with the reason, and the rest goes on. Without
--batchrpc only the peers run, and there are no ratios. setup_batch_peers.sh installs them.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent

# What is appended to batchrpc's program; it prints one JSON object with the peers' keys.
OURS = "peer --callers {callers} --batch {batch} --seconds {seconds} --json -"
OURS_GRAD = "--grad"
PEER = "--callers {callers} --batch {batch} --seconds {seconds}"

DEBIAN = "/usr/bin/python3"
VENV = str(ROOT / ".venv" / "peers" / "bin" / "python")
MOOLIB = ROOT / ".venv" / "moolib"
PEERS = {  # name: (Python, program and options, what it imports)
    "Ray Serve": (VENV, "batch_ray_serve.py", "ray.serve, torch"),
    "Ray Serve, throughput": (VENV, "batch_ray_serve.py --throughput", "ray.serve, torch"),
    "TorchRL": (VENV, "batch_torchrl.py", "torchrl.modules.inference_server"),
    "TorchRL, threads": (
        VENV,
        "batch_torchrl.py --transport threads",
        "torchrl.modules.inference_server",
    ),
    "torch.distributed.rpc": (DEBIAN, "batch_torch_rpc.py", "torch.distributed.rpc"),
    "moolib": (DEBIAN, "batch_moolib.py", "torch, moolib"),
    "moolib, shared memory": (DEBIAN, "batch_moolib.py --shared-memory", "torch, moolib"),
    "moolib by hand": (DEBIAN, "batch_moolib_by_hand.py", "torch"),
}
KEYS = ("rows_per_s", "p50_us", "p90_us", "p99_us", "mean_batch")


class CannotRun(Exception):
    pass


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no word"


def run(command, limit):
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=ROOT)
    except subprocess.TimeoutExpired:
        raise CannotRun(f"took more than {limit:.0f} s") from None
    except OSError as error:
        raise CannotRun(f"{command[0]}: {error.strerror}") from None
    if result.returncode != 0:
        raise CannotRun(f"exit status {result.returncode}: {last_line(result.stderr)}")
    return result.stdout


def measure(command, limit):
    output = run(command, limit)
    try:
        result, _ = json.JSONDecoder().raw_decode(output, output.index("{"))
        if not all(key in result for key in KEYS):
            raise ValueError
    except ValueError:
        raise CannotRun(f"no report: {last_line(output)}") from None
    return result


def commands_of(options):
    """name: command, and what says beforehand why it cannot run, or none."""
    values = {"callers": options.callers, "batch": options.batch, "seconds": options.seconds}
    commands = {}
    if options.batchrpc:
        ours = [str(options.batchrpc.resolve()), *OURS.format(**values).split()]
        commands["batchrpc"] = (ours + [OURS_GRAD] * options.grad + options.extra, None)
    for name in options.peer or PEERS:
        python, program, imports = PEERS[name]
        script, *own = program.split()
        peer = [python, str(FOLDER / script), *own, *PEER.format(**values).split()]
        check = f"import sys; sys.path.insert(0, {str(MOOLIB)!r}); import {imports}"
        commands[name] = (peer + ["--grad"] * options.grad, [python, "-c", check])
    return commands


def compare(options):
    """name: list of reports, or the reason for none."""
    commands = commands_of(options)
    results = {}
    for name, (_, check) in commands.items():
        try:
            if check:
                run(check, options.limit)
            results[name] = []
        except CannotRun as error:
            results[name] = str(error)
    for number in range(options.rounds):
        for name, (command, _) in commands.items():
            if isinstance(results[name], str):
                continue
            print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
            try:
                results[name].append(measure(command, options.limit))
            except CannotRun as error:
                results[name] = str(error)
    return results


def median(reports, key):
    values = [report[key] for report in reports if report[key] is not None]
    return statistics.median(values) if values else None


def summary(name, reports, ours):
    if isinstance(reports, str):
        return {"system": name, "cannot_run": reports}
    row = {"system": name, **{key: median(reports, key) for key in KEYS}}
    # Of each round's pair, not of the medians: what disturbs a round disturbs both.
    row["ratio"] = None
    if ours:
        row["ratio"] = statistics.median(
            own["rows_per_s"] / peer["rows_per_s"] for own, peer in zip(ours, reports)
        )
    row["rounds"] = reports
    return row


def print_table(rows):
    print(f"{'system':<22} {'rows/s':>9} {'p50 µs':>9} {'p99 µs':>9} {'batch':>6} {'ours is':>8}")
    for row in rows:
        if "cannot_run" in row:
            print(f"{row['system']:<22} cannot run: {row['cannot_run']}")
            continue
        batch = "" if row["mean_batch"] is None else f"{row['mean_batch']:.2f}"
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.1f} x"
        print(
            f"{row['system']:<22} {row['rows_per_s']:>9.0f} {row['p50_us']:>9.1f}"
            f" {row['p99_us']:>9.1f} {batch:>6} {ratio:>8}"
        )


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batchrpc", type=pathlib.Path, help="batchrpc's batch_benchmark")
    parser.add_argument(
        "--peer", action="append", choices=PEERS, metavar="NAME", help=f"only it: {'; '.join(PEERS)}"
    )
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=8, help="rows of a batch at most")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--grad", action="store_true", help="track gradients")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one run")
    parser.add_argument("--json", type=pathlib.Path, help="write the report to this file too")
    parser.add_argument("extra", nargs="*", help="after --: passed to batchrpc's program")
    options = parser.parse_args()
    if min(options.callers, options.batch, options.rounds) < 1 or options.seconds <= 0:
        parser.error("numbers must be above 0")
    return options


def main():
    options = parse_arguments()
    results = compare(options)
    ours = results.get("batchrpc")
    ours = ours if isinstance(ours, list) else None
    rows = [summary(name, reports, ours) for name, reports in results.items()]
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
