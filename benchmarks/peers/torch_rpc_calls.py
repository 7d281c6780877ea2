#!/usr/bin/python3
"""Calls and tensors of torch.distributed.rpc between two processes.

    /usr/bin/python3 benchmarks/peers/torch_rpc_calls.py --mode calls --in-flight 64
    /usr/bin/python3 benchmarks/peers/torch_rpc_calls.py --mode echo --bytes 1048576 --in-flight 2

rpc_async keeps a window of calls; each completed call makes the next. With `--api script` the
function is TorchScript, which the server runs without Python, and arguments are not pickled. With
`--api python` it is a Python function. A small payload is a string, one of 4096 bytes or more a tensor. With
`--transport tcp` tensors and messages use TCP, as between machines. With `shm` RPC chooses, and
on one machine uses shared memory and copies from process to process.

Prints one line of JSON, with the keys of the peers in C++ (peer.cpp), and measures as they do. After a
quarter of the seconds as warm-up, calls are counted, and large ones timed; small ones are timed
in another quarter.
"""

import argparse
import json
import os
import pathlib
import sys
import threading
import time

from ranks import start_ranks

os.environ.setdefault("GLOG_minloglevel", "2")  # no notes on shutting down; read by the imports

import torch  # noqa: E402
import torch.distributed.rpc as rpc  # noqa: E402

SERVER, CLIENT = "server", "client"
TENSOR_BYTES = 4096
TIMED_BYTES = 16 * 1024


def echo_text(text: str) -> str:
    return text


def echo_tensor(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def push_tensor(tensor: torch.Tensor) -> int:
    return 0


SCRIPTS = {
    function: torch.jit.script(function) for function in (echo_text, echo_tensor, push_tensor)
}


def cpu_seconds():
    return time.process_time()


class Load:
    """The window of calls. A slot has one call at a time, so its figures need no lock."""

    def __init__(self, options):
        self.options = options
        if options.bytes < TENSOR_BYTES:
            self.payload = "x" * options.bytes
            function = echo_text
        else:
            self.payload = torch.ones(options.bytes // 4)
            function = push_tensor if options.mode == "push" else echo_tensor
        self.function = SCRIPTS[function] if options.api == "script" else function
        self.calls = [0] * options.in_flight
        self.started = [0.0] * options.in_flight
        self.us = [[] for _ in range(options.in_flight)]
        self.timing = self.stopping = False
        self.open = threading.Semaphore(0)

    def start(self, slot):
        future = rpc.rpc_async(SERVER, self.function, args=(self.payload,))
        future.add_done_callback(lambda done: self.ended(slot, done))

    def ended(self, slot, done):
        try:
            done.value()
        except RuntimeError as error:
            print(f"torch.distributed.rpc: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        self.calls[slot] += 1
        if self.timing:
            now = time.perf_counter()
            if self.started[slot]:
                self.us[slot].append((now - self.started[slot]) * 1e6)
            self.started[slot] = now
        if self.stopping:
            self.open.release()
        else:
            self.start(slot)

    def point(self):
        calls = sum(self.calls)
        return time.perf_counter(), calls, cpu_seconds(), rpc.rpc_sync(SERVER, cpu_seconds)

    def measure(self):
        """The times at which calls were counted."""
        seconds = self.options.seconds
        for slot in range(self.options.in_flight):
            self.start(slot)
        time.sleep(seconds / 4)
        large = self.options.bytes >= TIMED_BYTES
        self.timing = large
        begin = self.point()
        time.sleep(seconds)
        end = self.point()
        self.timing = True
        if not large:
            time.sleep(seconds / 4)
        self.stopping = True
        for _ in range(self.options.in_flight):
            self.open.acquire()
        return begin, end


def percentile(ordered, percent):
    return ordered[round((len(ordered) - 1) * percent / 100)] if ordered else None


def run_client(options):
    load = Load(options)
    begin, end = load.measure()
    seconds, calls, client, server = (after - before for before, after in zip(begin, end))
    if calls == 0:
        sys.exit("torch.distributed.rpc: no call ended in the measured time")
    us = sorted(value for slot in load.us for value in slot)
    ways = 1 if options.mode == "push" else 2
    report = {
        "system": "torch.distributed.rpc",
        "version": torch.__version__,
        "api": options.api,
        "mode": options.mode,
        "bytes": options.bytes,
        "in_flight": options.in_flight,
        "transport": options.transport,
        "seconds": options.seconds,
        "calls_per_s": calls / seconds,
        "gb_per_s": calls * ways * options.bytes / seconds / 1e9,
        "p50_us": percentile(us, 50),
        "p99_us": percentile(us, 99),
        "timed_calls": len(us),
        "cpu_us_per_call": {"client": client / calls * 1e6, "server": server / calls * 1e6},
    }
    print(json.dumps(report), flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def run_rank(options):
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(options.port)
    over_tcp = options.transport == "tcp"
    rpc.init_rpc(
        SERVER if options.rank == 0 else CLIENT,
        rank=options.rank,
        world_size=2,
        rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
            num_worker_threads=options.worker_threads,
            _transports=["uv"] if over_tcp else None,
            _channels=["mpt_uv", "basic"] if over_tcp else None,
        ),
    )
    if options.rank == 1:
        run_client(options)
    rpc.shutdown()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mode", choices=["calls", "echo", "push"], default="calls")
    parser.add_argument("--bytes", type=int, default=64)
    parser.add_argument("--in-flight", type=int, default=1)
    parser.add_argument("--transport", choices=["tcp", "shm"], default="shm")
    parser.add_argument("--api", choices=["script", "python"], default="script")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--worker-threads", type=int, default=16, help="RPC threads of each process")
    parser.add_argument("--json", type=pathlib.Path, help="write the report to this file too")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if min(options.bytes, options.in_flight, options.worker_threads) < 1 or options.seconds <= 0:
        parser.error("numbers must be above 0")
    if options.mode != "calls" and options.bytes < TENSOR_BYTES:
        parser.error(f"a tensor must have at least {TENSOR_BYTES} bytes")
    return options


if __name__ == "__main__":
    arguments = parse_arguments()
    if arguments.rank is None:
        sys.exit(start_ranks(2))
    run_rank(arguments)
