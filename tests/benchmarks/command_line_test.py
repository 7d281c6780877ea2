#!/usr/bin/python3
"""Tests of the command line of benchmarks/compare, with programs that are not what they seem."""

import json
import os
import re
import subprocess
import unittest
from unittest import mock

from support import ROOT, Folder, call

from comparison import figure, main, page, suites


class CommandLine(Folder):
    def rl(self, *words):
        self.reporting("rl_benchmark", "--output-file-path", "rl_benchmark")
        self.reporting("rl_floor", "--json", "rl_floor")
        program_options = ["--programs", self.folder, "--python", "/no/python"]
        return call("rl", "--batch", "true", "--world-size", 4, *program_options, *words)

    def test_a_run_without_peers(self):
        json_file, markdown = self.folder / "a.json", self.folder / "a.md"
        status, out, err = self.rl("--rounds", 2, "--json", json_file, "--markdown", markdown)
        self.assertEqual(status, 0, err)
        self.assertIn("2 observers, in batches", out)
        self.assertIn("without torch.distributed.rpc: /no/python: No such file or directory", err)
        self.assertIn("scripts/setup.sh --peers", out)
        written = json.loads(json_file.read_text(encoding="utf-8"))
        self.assertEqual(written["rounds"], 2)
        self.assertIn("cpu", written["machine"])
        ours, floor, *peers = written["suites"][0]["cases"][0]["systems"]
        self.assertEqual(len(ours["values"]["actions_per_s"]["rounds"]), 2)
        self.assertEqual(floor["values"]["actions_per_s"]["rounds"], [50000.0, 50000.0])
        self.assertEqual(len(peers), 2)
        self.assertIn("cannot_run", peers[0])
        text = markdown.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("## Acting"))
        self.assertIn("`benchmarks/compare rl --batch true", text)

    def test_the_command_that_is_told_has_nothing_of_this_machine(self):
        words = ["rl", "--rounds", "2", "--programs", "/here", "--json=a.json", "--docs", "a.md"]
        self.assertEqual(main.command_of(words), "benchmarks/compare rl --rounds 2")

    def test_a_run_that_fails_says_so_by_its_exit_status(self):
        self.program("cartpole", "#!/bin/sh\necho no socket >&2\nexit 3\n")
        words = ["--programs", self.folder, "--python", "/no/python", "--rounds", 1]
        status, out, err = call("cartpole", "--observers", 2, *words)
        self.assertEqual(status, 1)
        self.assertIn("failed: exit status 3: no socket", out)
        self.assertIn("cartpole --world-size 3", err)

    def test_a_page_is_written_anew(self):
        begin, end = page.markers("rl")
        path = self.folder / "page.md"
        path.write_text(f"Head\n{begin}\n{end}\nTail\n", encoding="utf-8")
        (self.folder / "figures").mkdir()
        status, _, err = self.rl("--rounds", 1, "--docs", path)
        self.assertEqual(status, 0, err)
        text = path.read_text(encoding="utf-8")
        self.assertIn("**2 observers, in batches**", text)
        self.assertIn("Measured on ", text)
        self.assertTrue(text.startswith("Head") and text.endswith("Tail\n"))

    def test_missing_programs_are_told_in_one_line(self):
        status, out, err = call("calls", "--programs", self.folder, "--only", "batchrpc")
        self.assertEqual((status, out), (2, ""))
        reason = r"^benchmarks/compare: .*call_benchmark does not exist \(build it: [^\n]*\n$"
        self.assertRegex(err, reason)

    def test_what_cannot_be_is_found_out_before_anything_runs(self):
        nowhere = self.folder / "no" / "such"
        for words, reason in (
            (["--rounds", 0], "'0' is not a number of at least 1"),
            (["--only", "gprc"], "there is no 'gprc'; there are batchrpc, bare-sockets, torch"),
            (["--json", nowhere / "a.json"], "--json: cannot write .*: No such file"),
            (["--markdown", self.folder], "--markdown: cannot write .*: Is a directory"),
            (["--figure", self.folder / "a.png"], "--figure: .* does not end in .svg"),
            (["--docs", nowhere / "a.md"], "--docs: cannot read .*: No such file"),
            (["--nonsense"], "nonsense"),
            (["--limit", "-1"], "not a number above 0"),
        ):
            status, out, err = self.rl(*words)
            self.assertEqual((status, out), (2, ""), words)
            self.assertRegex(err, reason)
            self.assertNotIn("round 1", err)
        status, _, err = call("nope")
        self.assertEqual(status, 2)
        self.assertIn("invalid choice: 'nope' (choose from 'calls', 'tensors'", err)

    def test_without_matplotlib_there_is_no_picture_and_it_says_why(self):
        path = self.folder / "a.svg"
        with mock.patch.object(figure, "available", lambda: False):
            status, _, err = self.rl("--rounds", 1, "--figure", path)
        self.assertEqual(status, 0)
        self.assertIn("no figures: matplotlib is not installed (Debian: python3-matplotlib", err)
        self.assertFalse(path.exists())

    def test_the_list_has_the_commands_and_runs_nothing(self):
        status, out, err = call("all", "--list", "--programs", "/no/programs")
        self.assertEqual((status, err), (0, ""))
        for suite in suites.SUITES:
            self.assertIn(f"{suite}: ", out)
        self.assertIn("      /no/programs/rl_benchmark --world-size 10 --batch true", out)
        self.assertIn("benchmarks/peers/cartpole_torch_rpc.py --observers 4", out)

    def test_only_some_systems(self):
        _, out, _ = call("batch", "--list", "--only", "batchrpc,TorchRL (threads)")
        systems_of = re.findall(r"^    (\S+)$", out, re.MULTILINE)
        self.assertEqual(systems_of, ["batchrpc", "torchrl-threads"])

    def test_without_a_suite_it_is_all(self):
        self.assertEqual(call("--list")[1], call("all", "--list")[1])

    def test_it_runs_from_anywhere(self):
        result = subprocess.run(
            [ROOT / "benchmarks" / "compare", "rl", "--list"],
            cwd=self.folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertIn("build/release/bin/rl_benchmark --world-size 10", result.stdout)


if __name__ == "__main__":
    unittest.main()
