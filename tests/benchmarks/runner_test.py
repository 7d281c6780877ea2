#!/usr/bin/python3
"""Tests of how benchmarks/compare runs things: in turn, with reasons for what does not run."""

import pathlib
import sys
import time
import unittest

from support import RATE, TIME, Folder, job, run, sample

from comparison import ratios, report, runner, systems
from comparison.suite import FLOOR, OURS, PEER, REPORT, Case, Job
from comparison.suite import Measurement, Requirement, System, UsageError


class Rounds(unittest.TestCase):
    def test_every_second_round_runs_in_the_other_order(self):
        case = Case("a", [RATE], [job("x", OURS), job("y"), job("z")])
        answers = {name: [{"rate": 1}] * 3 for name in "xyz"}
        _, ran, said = run(case, answers, 3)
        self.assertEqual("".join(ran), "xyzzyxxyz")
        self.assertIn("a: round 3 of 3: z", said)

    def test_ratios_are_of_each_rounds_pair(self):
        result = sample()
        self.assertEqual(ratios.ratios_of(result, "batchrpc", "peer", RATE), [2, 5])
        self.assertEqual(ratios.summary([2, 5]), (3.5, 1.5))

    def test_less_is_better_where_the_metric_says_so(self):
        self.assertEqual(ratios.ratios_of(sample(), "batchrpc", "peer", TIME), [4, 4])

    def test_a_number_that_is_missing_makes_no_ratio(self):
        self.assertIsNone(ratios.better(RATE, None, 1))
        self.assertIsNone(ratios.better(RATE, 1, 0))
        self.assertEqual(ratios.summary([None]), (None, None))

    def test_of_several_configurations_the_best_counts_in_each_round(self):
        case = Case("a", [TIME], [job("p", commands=[["one"], ["two"]])])
        answers = {"one": [{"time": 3}, {"time": 1}], "two": [{"time": 2}, {"time": 4}]}
        result, ran, _ = run(case, answers, 2)
        self.assertEqual(ran, ["one", "two", "one", "two"])
        self.assertEqual([each.values["time"] for each in result.rounds["p"]], [2, 1])

    def test_a_system_that_fails_is_left_out_and_the_rest_goes_on(self):
        case = Case("a", [RATE], [job("x", OURS), job("y")])
        failure = runner.CommandFailed("exit status 3: oh", ["y"], "much\noh")
        answers = {"x": [{"rate": 1}] * 3, "y": [{"rate": 1}, failure]}
        result, ran, said = run(case, answers, 3)
        self.assertEqual("".join(ran), "xyyxx")
        self.assertEqual(result.absent["y"], runner.Absence("exit status 3: oh"))
        self.assertNotIn("y", result.rounds)
        self.assertEqual(len(result.rounds["x"]), 3)
        self.assertIn("failed: y\n  exit status 3: oh:\n    much\n    oh", said)

    def test_a_report_that_is_not_understood_is_a_failure_of_its_system(self):
        for wrong in ({}, {"rate": {"a": 1}}):
            strict = Job(
                [System("y", PEER)], [["y"]], lambda r: {"y": Measurement({"rate": r["rate"]})}
            )
            result, _, _ = run(Case("a", [RATE], [strict]), {"y": [wrong]})
            self.assertIn("its report cannot be read", result.absent["y"].reason)
        result, _, _ = run(
            Case("a", [RATE], [Job([System("y", PEER)], [["y"]], lambda r: {})]), {"y": [1]}
        )
        self.assertIn("its report has no figures of y", result.absent["y"].reason)

    def test_floors_are_compared_with_their_own_system_only(self):
        floor = Job([System("bare", FLOOR, against=("tcp",))], [["bare"]], job("bare").read)
        case = Case("a", [RATE], [job("tcp", OURS), job("unix", OURS), floor, job("peer")])
        result, _, _ = run(case, {name: [{"rate": 1}] for name in ("tcp", "unix", "bare", "peer")})
        self.assertEqual(
            ratios.pairs_of(result), [("tcp", "bare"), ("tcp", "peer"), ("unix", "peer")]
        )


class Missing(unittest.TestCase):
    def test_a_peer_that_is_not_installed_is_told_with_what_installs_it(self):
        need = Requirement(lambda: "no module", "apt-get install it")
        case = Case("a", [RATE], [job("x", OURS), job("y", requirement=need)])
        absent = runner.find_absent([case])
        self.assertEqual(absent, {"y": runner.Absence("no module", "apt-get install it")})
        result, ran, _ = run(case, {"x": [{"rate": 1}]}, absent=absent)
        self.assertEqual(ran, ["x"])
        self.assertIn(
            "y       not measured: no module (apt-get install it)", report.terminal(result)
        )

    def test_without_our_own_program_nothing_runs(self):
        need = Requirement(lambda: "bin/x is not there", "make x")
        with self.assertRaisesRegex(UsageError, r"^bin/x is not there \(build it: make x\)$"):
            runner.find_absent([Case("a", [RATE], [job("x", OURS, requirement=need)])])

    def test_each_requirement_is_looked_at_once(self):
        asked = []
        need = Requirement(lambda: asked.append(1), "")
        case = Case("a", [RATE], [job("x", OURS, requirement=need), job("y", requirement=need)])
        runner.find_absent([case, case])
        self.assertEqual(asked, [1])

    def test_a_python_without_a_module_or_that_is_not_there(self):
        need = systems.python_modules(sys.executable, "no_such_module", "install")
        self.assertIn("No module named 'no_such_module'", need.missing())
        need = systems.python_modules("/no/python", "json", "install")
        self.assertEqual(need.missing(), "/no/python: No such file or directory")
        self.assertIsNone(systems.python_modules(sys.executable, "json", "").missing())


class Commands(Folder):
    def test_the_report_is_a_file_or_what_is_printed(self):
        printed = ["sh", "-c", "echo noise; echo '{\"a\": 1}'; echo more"]
        self.assertEqual(runner.execute(printed, 60), {"a": 1})
        written = ["sh", "-c", 'echo "[2]" > $0', REPORT]
        self.assertEqual(runner.execute(written, 60), [2])

    def test_a_failure_names_the_command_and_shows_the_end_of_what_it_said(self):
        script = "for i in $(seq 30); do echo line $i >&2; done; exit 7"
        with self.assertRaises(runner.CommandFailed) as caught:
            runner.execute(["sh", "-c", script], 60)
        self.assertEqual(str(caught.exception), "exit status 7: line 30")
        detail = caught.exception.detail
        self.assertIn("sh -c 'for i in", detail)
        self.assertIn("\n    line 16\n", detail)
        self.assertNotIn("line 15", detail)

    def test_a_command_that_is_killed_not_there_or_silent(self):
        for command, reason in (
            (["sh", "-c", "kill -9 $$"], "ended by signal 9"),
            (["/no/such/program"], "No such file or directory"),
            (["true"], "left no report"),
            (["true", REPORT], "left no report"),
        ):
            with self.assertRaisesRegex(runner.CommandFailed, reason):
                runner.execute(command, 60)

    def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(self):
        note = self.folder / "child"
        script = f"sleep 1000 & echo $! > {note}; echo slow >&2; wait"
        with self.assertRaisesRegex(runner.CommandFailed, "took more than 0.5 s"):
            runner.execute(["sh", "-c", script], 0.5)
        child = pathlib.Path("/proc") / note.read_text(encoding="utf-8").strip()
        last = time.monotonic() + 10  # the system ends it a moment after it was killed
        while self.is_running(child) and time.monotonic() < last:
            time.sleep(0.01)
        self.assertFalse(self.is_running(child))

    @staticmethod
    def is_running(process):  # its folder in /proc
        try:
            return (process / "stat").read_text().rpartition(") ")[2][0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False


if __name__ == "__main__":
    unittest.main()
