#!/usr/bin/python3
"""Tests of the suites of benchmarks/compare: what they run, and how they read reports."""

import unittest

from support import recorded

from comparison import batch, calls, cartpole, envs, main, parameter_server, rl, suites, tensors
from comparison.suite import OURS, UsageError


def options_of(suite, *words):
    return main.make_parser().parse_args([suite, *words])


def values(read, sample_name):
    return {name: each.values for name, each in read(recorded(sample_name)).items()}


class Suites(unittest.TestCase):
    def test_calls(self):
        ours = values(calls.read_ours, "call_benchmark")
        self.assertEqual(set(ours), {"batchrpc", "batchrpc (workers)", "bare sockets"})
        rows = [row for row in recorded("call_benchmark") if row["handlers"] == "short"]
        best = max(row["calls_per_s"] for row in rows)
        self.assertEqual((len(rows), ours["batchrpc"]["calls_per_s"]), (2, best))
        peer = calls.read_peer("gRPC", recorded("grpc_calls"))["gRPC"]
        self.assertEqual(peer.version, "1.51.1")
        self.assertEqual(set(peer.values), {metric.key for metric in calls.METRICS})

    def test_tensors(self):
        ours = values(tensors.read_ours, "tensor_benchmark")
        rows = [row for row in recorded("tensor_benchmark") if row["system"] == "batchrpc"]
        self.assertEqual(ours["batchrpc"]["gb_per_s"], max(row["gb_per_s"] for row in rows))
        self.assertGreater(ours["bare sockets"]["cpu_s_per_gb"], 0)
        sample = recorded("grpc_echo")
        peer = tensors.read_peer("gRPC", sample)["gRPC"].values
        cpu = sum(sample["cpu_us_per_call"].values()) / 1e6 / (2 * sample["bytes"] / 1e9)
        self.assertAlmostEqual(peer["cpu_s_per_gb"], cpu)
        self.assertEqual(tensors.size_text(3 << 20), "3M")
        self.assertEqual(tensors.size_in_words(1 << 30), "1 GiB")
        self.assertEqual(tensors.size_in_words(1001), "1001 bytes")

    def test_rl(self):
        for name, sample in (("batchrpc", "rl_benchmark"), (rl.TORCH, "rl_torch_rpc")):
            found = rl.read(name, recorded(sample))[name]
            self.assertEqual(set(found.values), {metric.key for metric in rl.METRICS})
            self.assertTrue(all(value > 0 for value in found.values.values()))
        self.assertEqual(found.version, "1.13.0a0")

    def test_cartpole(self):
        for name, sample in (("batchrpc", "cartpole"), (cartpole.TORCH, "cartpole_torch_rpc")):
            found = cartpole.read(name, recorded(sample))[name].values
            self.assertTrue(all(found[metric.key] > 0 for metric in cartpole.METRICS))

    def test_batch(self):
        for name, sample in (("batchrpc", "batch_benchmark"), ("m", "batch_moolib_by_hand")):
            found = batch.read(name, recorded(sample))[name].values
            self.assertTrue(all(found[metric.key] > 0 for metric in batch.METRICS))

    def test_envs(self):
        ours = values(envs.read_ours, "env_benchmark")
        self.assertEqual(len(ours), 5)
        self.assertAlmostEqual(ours[envs.FREE]["efficiency"], 0.7372076974501627)
        self.assertAlmostEqual(
            ours["batchrpc, 2 buffers, any worker"]["efficiency"], 0.5341269254912986
        )
        self.assertEqual(envs.SUITE.make_cases(options_of("envs"))[0].title.split(";")[0],
                         "16 processes of one environment")
        large = envs.SUITE.make_cases(options_of("envs", "--observation-bytes", "28224"))[0]
        self.assertTrue(large.title.endswith("observations of 28224 bytes"))
        for job in large.jobs:  # Ray's as well as ours
            words = list(job.commands[0])
            self.assertEqual(words[words.index("--observation-bytes") + 1], "28224")

    def test_parameter_server(self):
        for sample in ("parameter_server", "parameter_server_torch_rpc"):
            report_of_run = recorded(sample)
            found = values(parameter_server.reader("x", 2), sample)["x"]
            self.assertEqual(found["iteration"], report_of_run["work_seconds"] / 2)

    def test_a_case_runs_all_its_systems_with_the_same_work(self):
        for name, suite in suites.SUITES.items():
            for extra in ([], ["--quick"]):
                for case in suite.make_cases(options_of(name, *extra)):
                    names = [system.name for system in case.systems()]
                    self.assertEqual(len(names), len(set(names)))
                    self.assertIn(OURS, {system.role for system in case.systems()})

    def test_options_of_the_parameter_server(self):
        def names(*words):
            cases = parameter_server.make_cases(options_of("parameter_server", *words))
            return [[system.word for system in case.systems()] for case in cases]

        adding, alone = names("--transports", "unix")
        self.assertIn("torch-distributed-rpc-no-cma", adding)
        self.assertEqual(alone[0], "batchrpc-unix-sockets")
        self.assertFalse(any("torch" in word for word in names("--floor", "only")[0]))
        self.assertFalse(any("bare" in word for word in names("--floor", "none")[0]))
        (training,) = names("--training")
        self.assertEqual(training[-1], "torch-distributed-rpc")
        with self.assertRaisesRegex(UsageError, "--floor"):
            names("--training", "--floor", "only")

    def test_what_comes_after_two_dashes_goes_to_our_program(self):
        cases = batch.make_cases(options_of("batch", "--", "--batcher", "all-of"))
        self.assertEqual(cases[0].jobs[0].commands[0][-2:], ("--batcher", "all-of"))
        self.assertNotIn("--batcher", cases[0].jobs[1].commands[0])


if __name__ == "__main__":
    unittest.main()
