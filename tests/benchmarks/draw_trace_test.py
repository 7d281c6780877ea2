#!/usr/bin/python3
"""Tests of scripts/draw_trace.py, but for its picture of a whole trace, which runs with profile_example."""

import json
import subprocess
import unittest

from support import ROOT, Folder

SLICE = {"ph": "X", "name": "f", "cat": "call", "pid": 1, "tid": 1, "ts": 0, "dur": 5, "args": {}}


class DrawTrace(Folder):
    def draw(self, text):
        trace = self.folder / "trace.json"
        trace.write_text(text)
        script = ROOT / "scripts" / "draw_trace.py"
        words = [script, trace, self.folder / "picture.svg"]
        return subprocess.run([str(word) for word in words], capture_output=True, text=True)

    def test_what_is_no_trace_is_told_in_one_line_and_makes_no_picture(self):
        events = [[{**SLICE, "name": 5}], [{**SLICE, "ts": "x"}], [{"ph": "X"}], [], [7], 7]
        for text in ["", "{", "[]", "{}", *(json.dumps({"traceEvents": part}) for part in events)]:
            done = self.draw(text)
            self.assertEqual(done.returncode, 1, text)
            self.assertRegex(done.stderr, r"^draw_trace: .*trace\.json (is not a trace|has no slices)")
            self.assertEqual(done.stderr.count("\n"), 1, text)
            self.assertFalse((self.folder / "picture.svg").exists(), text)

    def test_a_file_that_is_not_there_is_named(self):
        words = [str(ROOT / "scripts" / "draw_trace.py"), "/nowhere/trace.json", "/nowhere/picture.svg"]
        done = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "draw_trace: /nowhere/trace.json: No such file or directory\n")


if __name__ == "__main__":
    unittest.main()
