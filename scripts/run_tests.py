#!/usr/bin/env python3
"""Runs the tests of a build folder, one process for each test executable, and counts their test cases.

    scripts/run_tests.py BUILD [--layers LAYER,...] [--filter LAYER=PATTERN]... [--timeout SECONDS]

BUILD      the build folder, for example build/release
--layers   only these folders of tests/ (default: all that are built)
--filter   what one executable runs, in the language of Catch2, for example transport=[threads];
           "*=PATTERN" is for all that have none of their own
--timeout  seconds an executable may take (default: 900)

Two executables run at a time on two processors; those that take longest run in parts. Those that start
processes or measure real time run beside one other of that kind at most. A test case of theirs that fails is run
once more, alone, at the end, and is named. Tests that are no Catch2 executables (Python tests, programs that must not
compile) run by ctest as one of the jobs.
ctest itself, with one process for each test case, stays for people: `ctest --preset release`.

At the end it prints the ten slowest executables and test cases, a line "left out: <test> (<what is missing>)"
for each test that cannot run here, and "N passed, M failed".
"""
import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

# Layers whose tests start processes or measure real time.
REAL_TIME = {"process", "status", "examples", "benchmarks"}
# Layers whose tests are not Catch2 executables.
BY_CTEST = {"benchmarks", "status", "refused"}
# Executables that would keep one processor busy when all others have ended run in so many parts.
# What takes longest starts first. An executable that is not named comes after these.
PARTS = {"node": 2, "process": 3}
LONGEST = ["process", "benchmarks", "examples", "reliability", "node", "security", "batch", "torch", "ppo", "env", "rref"]


class Case:
    def __init__(self, layer, name, outcome, seconds, missing=""):
        self.layer, self.name, self.outcome, self.seconds, self.missing = layer, name, outcome, seconds, missing

    @property
    def title(self):
        return f"{self.layer}/{self.name}"


class Job:
    """One executable, or the tests of one layer that ctest runs."""

    def __init__(self, layer, build, options):
        self.layer, self.build, self.options = layer, build, options
        self.cases, self.output, self.seconds = [], "", 0.0

    def run(self, names=None):
        """Runs all test cases, or only those of these names."""
        began = time.monotonic()
        self.cases = self._run(names)
        self.seconds = time.monotonic() - began
        return self

    def _process(self, command, env=None):
        """The exit status and the output of the command. A command that takes too long is killed with its children."""
        with tempfile.TemporaryFile("w+", errors="replace") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       env={**os.environ, **(env or {})}, start_new_session=True)
            try:
                status = process.wait(self.options.timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                status = f"it took more than {self.options.timeout} s"
            out.seek(0)
            self.output = out.read()
        return status


class CatchJob(Job):
    def __init__(self, layer, build, options, part=0, parts=1):
        """Of `parts` jobs for one executable this is number `part`."""
        super().__init__(layer, build, options)
        self.part, self.parts = part, parts

    def _run(self, names):
        pattern = self.options.filters.get(self.layer, self.options.filters.get("*"))
        executable = str(self.build / "bin" / f"test_{self.layer}")
        if names is None and self.parts > 1:
            listed = subprocess.run([executable, "--list-test-names-only", *([pattern] if pattern else [])],
                                    capture_output=True, text=True).stdout
            names = [name.strip() for name in listed.splitlines() if name.strip()][self.part::self.parts]
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "cases")
            command = [executable, "--warn", "NoTests"]
            if names is not None:
                chosen = pathlib.Path(folder, "names")
                chosen.write_text("".join(re.sub(r"([\\,\[])", r"\\\1", name) + "\n" for name in names))
                command += ["--input-file", str(chosen)]
            elif pattern:
                command.append(pattern)
            status = self._process(command, {"BATCHRPC_TEST_LOG": str(log)})
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        cases, running = [], None
        for line in lines:
            what, *rest = line.split("\t")
            if what == "start":
                running = rest[0]
            else:
                seconds, name, missing = rest
                cases.append(Case(self.layer, name, what, float(seconds), missing))
                running = None
        failed = any(case.outcome == "failed" for case in cases)
        if self.parts > 1 and len(cases) < len(names) and running is None:
            cases.append(Case(self.layer, f"{len(names) - len(cases)} test cases, which did not run", "failed", 0.0))
        if running is not None:  # it died in there, and has not run the others
            cases.append(Case(self.layer, running, "failed", 0.0))
            self.output += f"\n{self.layer}: died in \"{running}\" with status {status}; the tests after it did not run\n"
        elif status != 0 and not failed:
            cases.append(Case(self.layer, f"the executable itself (status {status})", "failed", 0.0))
        return cases


class CtestJob(Job):
    LINE = re.compile(r"^ *\d+/\d+ Test +#\d+: (.*?) \.*(\*\*\*)? *(Passed|Failed|Skipped|Timeout|Not Run|Exception[^0-9]*) +([0-9.]+) sec")

    def _run(self, names):
        label = f"^{self.layer}$"
        command = ["ctest", "--test-dir", str(self.build), "--output-on-failure", "-L", label]
        executable = self.build / "bin" / f"test_{self.layer}"
        if executable.exists():  # the test cases of the executable are counted by its own job
            listed = subprocess.run([executable, "--list-test-names-only"], capture_output=True, text=True).stdout
            own = {f"{self.layer}/{name.strip()}" for name in listed.splitlines() if name.strip()}
            known = subprocess.run([*command, "-N"], capture_output=True, text=True).stdout
            others = [name for name in re.findall(r"Test +#\d+: (.*)$", known, re.M) if name not in own]
            if not others:
                return []
            command += ["-R", "^(" + "|".join(map(re.escape, others)) + ")$"]
        if names is not None:
            command += ["-R", "/(" + "|".join(map(re.escape, names)) + ")$"]
        status = self._process(command)
        cases = []
        for line in self.output.splitlines():
            match = self.LINE.match(line)
            if match:
                name, _, outcome, seconds = match.groups()
                outcome = {"Passed": "passed", "Skipped": "left out"}.get(outcome, "failed")
                cases.append(Case(self.layer, name.split("/", 1)[-1], outcome, float(seconds), "see its output"))
        if status != 0 and not any(case.outcome == "failed" for case in cases):
            cases.append(Case(self.layer, f"ctest itself (status {status})", "failed", 0.0))
        return cases


def built_layers(build):
    return {path.name[len("test_"):] for path in (build / "bin").glob("test_*") if os.access(path, os.X_OK)}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--layers", default="")
    parser.add_argument("--filter", action="append", default=[])
    parser.add_argument("--timeout", type=int, default=900)
    options = parser.parse_args()
    options.filters = dict(each.split("=", 1) for each in options.filter)

    built = built_layers(options.build)
    wanted = set(options.layers.split(",")) if options.layers else built | BY_CTEST
    unknown = wanted - built - BY_CTEST
    if unknown:
        sys.exit(f"run_tests: {options.build}/bin has no tests of {', '.join(sorted(unknown))}; build them first")
    processors = os.cpu_count() or 1
    jobs = []
    for layer in wanted & built:
        parts = PARTS.get(layer, 1) if processors > 1 else 1
        jobs += [CatchJob(layer, options.build, options, part, parts) for part in range(parts)]
    jobs += [CtestJob(layer, options.build, options) for layer in wanted & BY_CTEST]
    jobs.sort(key=lambda job: LONGEST.index(job.layer) if job.layer in LONGEST else len(LONGEST))

    free_processors = threading.Semaphore(processors)

    def run(job):
        with free_processors:
            job.run()
        bad = [case for case in job.cases if case.outcome == "failed"]
        print(f"{job.seconds:7.1f} s  {job.layer}: {len(job.cases)} test cases" + (f", {len(bad)} FAILED" if bad else ""),
              flush=True)

    with contextlib.ExitStack() as stack:
        real_time = stack.enter_context(concurrent.futures.ThreadPoolExecutor(2))
        others = stack.enter_context(concurrent.futures.ThreadPoolExecutor(processors))
        waiting = [(real_time if job.layer in REAL_TIME else others).submit(run, job) for job in jobs]
        for future in waiting:
            future.result()

    for job in jobs:
        again = [case for case in job.cases if case.outcome == "failed"] if job.layer in REAL_TIME else []
        if not again or len(again) > 10:
            continue
        first_output = job.output
        second = type(job)(job.layer, job.build, options).run([case.name for case in again])
        passed = {case.name for case in second.cases if case.outcome == "passed"}
        for case in again:
            if case.name in passed:
                case.outcome = "passed"
                print(f"passed only when it was run again: {case.title}")
        job.output = first_output + second.output

    cases = [case for job in jobs for case in job.cases]
    failed = [case for case in cases if case.outcome == "failed"]
    for job in jobs:
        if any(case.outcome == "failed" for case in job.cases):
            print(f"---- output of {job.layer}\n{job.output[-20000:]}\n----")
    for title, slow in (("executables", [(job.seconds, job.layer) for job in jobs]),
                        ("test cases", [(case.seconds, case.title) for case in cases])):
        print(f"the slowest {title}:")
        for seconds, name in sorted(slow, reverse=True)[:10]:
            print(f"{seconds:9.1f} s  {name}")
    left_out = [case for case in cases if case.outcome == "left out"]
    for case in left_out:
        print(f"left out: {case.title} ({case.missing})")
    if left_out:
        print("(scripts/setup.sh --ci installs what they need, but for CUDA)")
    for case in failed:
        print(f"FAILED: {case.title}")
    print(f"{len(cases) - len(failed) - len(left_out)} passed, {len(failed)} failed")
    sys.exit(1 if failed or not cases else 0)


if __name__ == "__main__":
    main()
