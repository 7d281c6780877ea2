"""What tests in Python share: a program with a status page."""

import json
import os
import pathlib
import subprocess
import time
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BATCHRPC_BIN_DIR", SOURCE / "build" / "release" / "bin"))


class Program:
    """A program that prints "status page at URL"; it ends when its input does, or is told to."""

    def __init__(self, *command, marker="status page at "):
        self.process = subprocess.Popen([str(BIN / command[0]), *command[1:]], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.address = None
        for line in self.process.stdout:
            if marker in line:
                self.address = line.split(marker)[1].split()[0]
                break
        if self.address is None:
            raise RuntimeError(f"{command[0]} ended with {self.process.wait()}")

    def end(self, kill=False):
        if kill:
            self.process.kill()
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def get(self, path):
        with urllib.request.urlopen(self.address + path, timeout=20) as answer:
            return answer.read().decode()

    def status(self):
        return json.loads(self.get("/status.json"))


def wait_until(condition, what, seconds=20):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        result = condition()
        if result:
            return result
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what}")
