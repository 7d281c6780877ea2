#!/usr/bin/python3
"""Tests of the command line of scripts/export_policy.py, with a PyTorch that is none."""

import contextlib
import importlib.util
import io
import pathlib
import sys
import unittest
from unittest import mock

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts" / "export_policy.py"


def script():
    torch = mock.MagicMock()
    torch.nn.Module = object
    spec = importlib.util.spec_from_file_location("export_policy", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, torch=torch), mock.patch.object(sys, "dont_write_bytecode", True):
        spec.loader.exec_module(module)
    return module


class CommandLine(unittest.TestCase):
    def refused(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
            script().parse(["mlp", "folder", *words])
        self.assertEqual(end.exception.code, 2)
        return said.getvalue().splitlines()[-1]

    def test_batches_are_numbers_or_any(self):
        parse = script().parse
        self.assertEqual(parse(["mlp", "folder"]).batch, [1, 4, 16, 64])
        self.assertEqual(parse(["mlp", "folder", "--batch", "2,65536"]).batch, [2, 65536])
        self.assertEqual(parse(["mlp", "folder", "--batch", "any"]).batch, ["any"])
        for words in ("x", "0", "-1", "1,", "1,any", "1.5", ""):
            self.assertIn("argument --batch: '", self.refused(f"--batch={words}"))
        self.assertIn("a batch may have at most 65536 rows", self.refused("--batch", "1,65537"))

    def test_counts_are_from_one_on(self):
        for option in ("--threads", "--actions"):
            for words in ("0", "-2", "x"):
                said = self.refused(f"{option}={words}")
                self.assertIn(f"error: argument {option}: '{words}' is not a number of at least 1", said)
        arguments = script().parse(["mlp", "folder", "--threads", "2", "--actions", "3"])
        self.assertEqual((arguments.threads, arguments.actions), (2, 3))

    def test_a_size_is_exported_once(self):
        self.assertEqual(script().parse(["mlp", "folder", "--batch", "4,1,4"]).batch, [1, 4])

    def test_packages_of_a_pytorch_that_makes_none_are_refused_before_anything_is_written(self):
        module = script()
        module.torch = mock.Mock(spec=["__version__"], __version__="1.13.0")
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            module.parse(["mlp", "folder"])
        self.assertIn("--forms: PyTorch 1.13.0 cannot compile packages; use --forms script", said.getvalue())
        self.assertEqual(module.parse(["mlp", "folder", "--forms", "script"]).forms, ["script"])

    def test_a_gpu_that_is_not_there_is_refused_before_anything_is_written(self):
        module = script()
        module.torch.__version__ = "2.0"
        module.torch.cuda.is_available.return_value = False
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            module.parse(["mlp", "folder", "--device", "cuda:0"])
        self.assertIn("--device cuda:0: PyTorch", said.getvalue())

    def test_unknown_forms_and_networks_are_named(self):
        self.assertIn("--forms: thawed is not one of script, frozen", self.refused("--forms", "thawed,script"))
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            script().parse(["resnet", "folder"])
        self.assertIn("invalid choice: 'resnet'", said.getvalue())


if __name__ == "__main__":
    unittest.main()
