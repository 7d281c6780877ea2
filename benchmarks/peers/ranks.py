"""Starts the ranks of a program on torch.distributed.rpc: the program itself, once per rank."""

import os
import socket
import subprocess
import sys
import time


def start_ranks(count, *words):
    """Starts the running script once per rank, with its own arguments, `words`, --port and
    --rank. Ends all processes if one fails. Returns the exit code."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:]]
    command += ["--port", str(port), *words]
    processes = [subprocess.Popen([*command, "--rank", str(rank)]) for rank in range(count)]
    try:
        while True:
            ends = [process.poll() for process in processes]  # a list, so that every process is polled
            failed = [end for end in ends if end]
            if failed:
                return abs(failed[0])
            if None not in ends:
                return 0
            time.sleep(0.05)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
