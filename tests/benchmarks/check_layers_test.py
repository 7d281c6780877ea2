import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_layers.sh"


class CheckLayers(unittest.TestCase):
    """Runs scripts/check_layers.sh on a small source tree of its own."""

    def check(self, **files):
        """Returns the status and the output for a tree of files: path, with __ for /, to one line of code."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "scripts").mkdir()
            shutil.copy(SCRIPT, root / "scripts")
            for name, line in files.items():
                path = root / (name.replace("__", "/") + ".hpp")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("#pragma once\n" + line + "\n")
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
            run = subprocess.run([root / "scripts" / SCRIPT.name], capture_output=True, text=True)
            return run.returncode, run.stdout

    def assert_refused(self, message, **files):
        status, output = self.check(**files)
        self.assertNotEqual(status, 0)
        self.assertEqual(output, message + "\n")

    def test_includes_that_point_down_pass(self):
        status, output = self.check(
            src__node__a='#include "session/b.hpp"',
            src__session__b='#include "batchrpc/call/c.hpp"',
            include__batchrpc__call__c="int function();",
        )
        self.assertEqual((status, output), (0, "layers: 6 lines keep the rules\n"))

    def test_an_include_that_points_up_is_refused(self):
        self.assert_refused(
            "src/session/a.hpp:2: session includes node/node_core.hpp, which is not below it",
            src__session__a='#include "node/node_core.hpp"',
        )

    def test_layers_side_by_side_do_not_include_each_other(self):
        self.assert_refused(
            "src/peers/a.hpp:2: peers includes dispatch/workers.hpp, which is not below it",
            src__peers__a='#include "dispatch/workers.hpp"',
        )

    def test_a_layer_for_calls_alone_does_not_include_nodes(self):
        self.assert_refused(
            "include/batchrpc/rref/a.hpp:2: rref includes batchrpc/node/node.hpp, which is not below it",
            include__batchrpc__rref__a='#include "batchrpc/node/node.hpp"',
        )

    def test_the_core_includes_no_component(self):
        self.assert_refused(
            "src/node/a.hpp:2: the core includes batchrpc/env/env.hpp, of a component that it does not link",
            src__node__a='#include "batchrpc/env/env.hpp"',
        )

    def test_a_folder_without_a_rank_is_refused(self):
        self.assert_refused(
            "src/cluster/a.hpp:1: cluster has no rank: give it one in scripts/check_layers.sh",
            src__cluster__a="int function();",
        )


if __name__ == "__main__":
    unittest.main()
