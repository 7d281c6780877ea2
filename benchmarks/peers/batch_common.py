"""The common part of the batch peers: options, policy, callers and report.

Every peer does the same job. Each of N callers sends one row of 4 floats, waits for its action, and sends the
next. The rows received so far are answered with one call of an MLP 4-128-2, and actions are sampled.

A caller makes one call and reports that it is ready. When all are ready, the parent sets the times: from then
on all call without pause. Calls that begin and end within the measured seconds count.
The clock is CLOCK_MONOTONIC, which all processes share.
"""

import argparse
import array
import json
import multiprocessing
import statistics
import sys
import time

WIDTH, HIDDEN, ACTIONS = 4, 128, 2
ROW = [0.01, -0.02, 0.03, -0.04]


def parse_arguments(description, add=lambda parser: None, wait=True):
    """`add` adds a peer's own options; `wait` is false for a peer without a longest wait."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=8, help="largest batch, in rows")
    parser.add_argument("--max-wait-ms", type=float, default=0.0, help="longest wait for a batch to fill")
    parser.add_argument("--seconds", type=float, default=5.0, help="measured")
    parser.add_argument("--warm-up", type=float, default=1.0, help="seconds before the measured ones")
    parser.add_argument("--grad", action="store_true", help="track gradients")
    add(parser)
    options = parser.parse_args()
    if min(options.callers, options.batch) < 1 or options.seconds <= 0 or options.warm_up < 0:
        parser.error("callers, batch and seconds must be above 0")
    if options.max_wait_ms < 0 or (options.max_wait_ms > 0 and not wait):
        parser.error("the wait must be at least 0" if wait else "this peer has no longest wait")
    return options


def make_policy():
    """Also makes torch use one thread in this process."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(543)
    return torch.nn.Sequential(
        torch.nn.Linear(WIDTH, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, ACTIONS)
    )


def sample(policy, rows, grad):
    """Returns an action for each of the rows, [rows, 4]."""
    import torch

    with torch.set_grad_enabled(grad):
        return torch.multinomial(torch.softmax(policy(rows), dim=1), 1).squeeze(1)


def checked(action):
    if action not in range(ACTIONS):
        raise RuntimeError(f"no action: {action!r}")


def call_until_end(call, begin, end):
    """Calls until `end`; returns the microseconds of each call between `begin` and `end`."""
    clock = time.monotonic
    latencies = array.array("d")
    started = clock()
    while started < end:
        call()
        ended = clock()
        if started >= begin and ended <= end:
            latencies.append((ended - started) * 1e6)
        started = ended
    return latencies


def times(options):
    begin = time.monotonic() + 0.2 + options.warm_up
    return begin, begin + options.seconds


def _call_in_process(connection, connect, arguments, first_call):
    call, close = connect(*arguments)
    if first_call:
        call()
    connection.send(True)
    latencies = call_until_end(call, *connection.recv())
    close()
    connection.send(latencies)


def receive(connection):
    """Receives a message of a child process; ends the program if that has ended."""
    try:
        return connection.recv()
    except EOFError:
        sys.exit("a process ended too early")


class Callers:
    """Caller processes, started with `spawn`; `connect(*arguments)` returns (call, close) in each.

    `first_call` is false if one caller's call would wait for calls of others.
    """

    def __init__(self, connect, arguments, first_call=True):
        context = multiprocessing.get_context("spawn")
        self.connections, self.processes = [], []
        for own in arguments:
            here, there = context.Pipe()
            process = context.Process(
                target=_call_in_process, args=(there, connect, own, first_call), daemon=True
            )
            process.start()
            there.close()
            self.connections.append(here)
            self.processes.append(process)

    def measure(self, options):
        """All callers' latencies."""
        try:
            for connection in self.connections:
                receive(connection)
            window = times(options)
            for connection in self.connections:
                connection.send(window)
            latencies = [value for connection in self.connections for value in receive(connection)]
            for process in self.processes:
                process.join(10)
        finally:
            self.stop()
        return latencies

    def stop(self):
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()


def report(system, version, torch_version, options, latencies, mean_batch, notes):
    if len(latencies) < 100:
        sys.exit(f"{system}: only {len(latencies)} calls in {options.seconds} s")
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    result = {
        "system": system,
        "version": version,
        "torch": torch_version,
        "callers": options.callers,
        "rows_per_s": round(len(latencies) / options.seconds, 1),
        "p50_us": round(cuts[49], 1),
        "p90_us": round(cuts[89], 1),
        "p99_us": round(cuts[98], 1),
        "mean_batch": None if mean_batch is None else round(mean_batch, 2),
        "seconds": options.seconds,
        "grad": options.grad,
        "notes": notes,
    }
    print(json.dumps(result), flush=True)
