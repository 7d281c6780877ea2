"""What tests in Python share: a program with a status page."""

import json
import os
import pathlib
import subprocess
import threading
import time
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BATCHRPC_BIN_DIR", SOURCE / "build" / "release" / "bin"))


class Program:
    """A program that prints "status page at URL"."""

    def __init__(self, *command, marker="status page at "):
        self.process = subprocess.Popen([str(BIN / command[0]), *command[1:]], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.address = None
        for line in self.process.stdout:
            if marker in line:
                self.address = line.split(marker)[1].split()[0]
                break
        if self.address is None:
            raise RuntimeError(f"{command[0]} ended with {self.process.wait()}")
        self.reading = threading.Thread(target=self.process.stdout.read)  # lest it waits for us
        self.reading.start()

    def end(self, kill=False):
        if kill:
            self.process.kill()
        self.process.stdin.close()
        if self.process.args[0].endswith("cartpole"):  # it has no input
            self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reading.join()
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
