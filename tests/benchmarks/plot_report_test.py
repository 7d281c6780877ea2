#!/usr/bin/python3
"""Tests of scripts/plot_report; what takes matplotlib is left out where that is missing."""

import importlib.util
import json
import subprocess
import unittest

from support import ROOT, Folder

PLOT = ROOT / "scripts" / "plot_report"
METRICS = (
    "agent latency (seconds)",
    "agent throughput",
    "observer latency (seconds)",
    "observer throughput",
)
HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


def result(size, keys):
    values = {key: 1.0 for key in keys}
    return {"world_size": size, **{metric: values for metric in METRICS}}


class PlotReport(Folder):
    def report(self, name, sizes=(20, 10), keys=("50", "95"), x_axis="world_size"):
        path = self.folder / name
        results = [result(size, keys) for size in sizes]
        path.write_text(json.dumps({"x_axis_name": x_axis, "benchmark_results": results}))
        return path

    def plot(self, *words):
        words = [PLOT, *words, "--output", self.folder / "out.svg"]
        return subprocess.run([str(word) for word in words], capture_output=True, text=True)

    def refused(self, reason, *words):
        done = self.plot(*words)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^plot_report: .*" + reason)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_what_cannot_be_drawn_is_told_in_one_line(self):
        good = self.report("good.json")
        self.refused("No such file", self.folder / "none.json")
        self.refused("no x axis", self.report("single.json", x_axis=None))
        self.refused("its x axis is batch", good, self.report("other.json", x_axis="batch"))
        self.refused("1 labels for 2 reports", good, good, "--labels", "one")
        broken = self.folder / "broken.json"
        broken.write_text("{")
        self.refused("Expecting", broken)
        self.refused("no benchmark_results", self.report("empty.json", sizes=()))

    @unittest.skipUnless(HAS_MATPLOTLIB, "left out: matplotlib is missing")
    def test_several_reports_are_drawn_by_either_way_to_name_percentiles(self):
        ours = self.report("ours.json")
        original = self.report("original.json", sizes=(10, 40), keys=("p50", "p95"))
        done = self.plot(ours, original, "--labels", "ours,original")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("observer throughput", (self.folder / "out.svg").read_text(encoding="utf-8"))

    @unittest.skipUnless(HAS_MATPLOTLIB, "left out: matplotlib is missing")
    def test_runs_that_ended_early_are_named(self):
        path = self.report("cut.json")
        report = json.loads(path.read_text())
        report["benchmark_results"][1]["incomplete"] = "interrupted"
        path.write_text(json.dumps(report))
        done = self.plot(path)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"cut\.json: the run with world_size 10 is incomplete: interrupted")
        self.assertEqual(done.stderr.count("\n"), 1)

    @unittest.skipUnless(HAS_MATPLOTLIB, "left out: matplotlib is missing")
    def test_a_key_that_is_missing_is_named(self):
        self.refused("lacks the key 'p95'", self.report("short.json", keys=("50",)))


if __name__ == "__main__":
    unittest.main()
