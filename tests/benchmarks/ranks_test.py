#!/usr/bin/python3
"""Tests of how the peers on torch.distributed.rpc start their ranks, without torch."""

import subprocess
import sys
import unittest

from support import ROOT, Folder

SCRIPT = """
import sys, time
sys.path.insert(0, {peers!r})
from ranks import start_ranks
if "--rank" not in sys.argv:
    sys.exit(start_ranks(3, "--more", "words"))
rank = int(sys.argv[sys.argv.index("--rank") + 1])
assert sys.argv[1:3] == ["--own", "argument"] and "--port" in sys.argv and "--more" in sys.argv
if {fails} and rank == 1:
    sys.exit(3)
if {fails}:
    time.sleep(600)
sys.stdout.write(f"rank {{rank}}\\n")  # one write: ranks share the pipe
"""


class Ranks(Folder):
    def start(self, fails):
        path = self.folder / "script.py"
        path.write_text(SCRIPT.format(peers=str(ROOT / "benchmarks" / "peers"), fails=fails))
        words = [sys.executable, str(path), "--own", "argument"]
        return subprocess.run(words, capture_output=True, text=True, timeout=60)

    def test_every_rank_is_a_process(self):
        done = self.start(fails=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), ["rank 0", "rank 1", "rank 2"])

    def test_a_rank_that_fails_ends_all(self):
        self.assertEqual(self.start(fails=True).returncode, 3)


if __name__ == "__main__":
    unittest.main()
