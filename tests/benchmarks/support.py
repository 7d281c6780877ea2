"""What the tests of benchmarks/compare share. They need none of the systems that it measures, and
no time decides anything."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RECORDED = pathlib.Path(__file__).resolve().parent / "recorded"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "benchmarks"))

from comparison import main, runner  # noqa: E402
from comparison.suite import FLOOR, OURS, PEER, Case, Job, Measurement  # noqa: E402
from comparison.suite import Metric, System  # noqa: E402

RATE = Metric("rate", "calls/s", "", compared=True)
TIME = Metric("time", "p50", "µs", False, compared=True, factor=1e6)


def recorded(name):
    return json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def job(name, role=PEER, commands=None, requirement=None):
    def read(values):
        return {name: Measurement(values, "1.0" if role == PEER else "")}

    return Job([System(name, role, requirement)], commands or [[name]], read)


def run(case, answers, rounds=1, absent=None):
    """The result, the commands that ran, and what was said; `answers` has each command's."""
    ran, said = [], []

    def answer(command, _):
        ran.append(command[0])
        value = answers[command[0]].pop(0)
        if isinstance(value, Exception):
            raise value
        return value

    result = runner.run_case(case, absent or {}, rounds, 1, said.append, answer)
    return result, ran, "\n".join(said)


def sample():
    """Two rounds in which ours is 2 and 5 times as fast as the peer; there is a floor, too."""
    case = Case(
        "ten calls",
        [RATE, TIME],
        [job("batchrpc", OURS), job("bare", FLOOR), job("peer"), job("other")],
    )
    answers = {
        "batchrpc": [{"rate": 100, "time": 2e-6}, {"rate": 50, "time": 2e-6}],
        "bare": [{"rate": 200, "time": 1e-6}, {"rate": 100, "time": 1e-6}],
        "peer": [{"rate": 50, "time": 8e-6}, {"rate": 10, "time": 8e-6}],
    }
    absent = {"other": runner.Absence("no module named other", "apt-get install other")}
    return run(case, answers, 2, absent)[0]


def call(*argv):
    """(exit status, standard output, standard error) of the command line."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main.main([str(word) for word in argv])
        except SystemExit as error:
            status = error.code
    return status, out.getvalue(), err.getvalue()


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def reporting(self, name, option, sample_name):
        """A program that writes a recorded report where the option says."""
        return self.program(
            name,
            f'#!/bin/sh\nwhile [ "$1" != {option} ]; do shift; done\n'
            f'cp {RECORDED / sample_name}.json "$2"\n',
        )
