"""Runs the commands of cases, round by round, and collects what they measure."""

import dataclasses
import json
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile

from .ratios import better
from .suite import PEER, REPORT, ROOT, UsageError


class CommandFailed(Exception):
    """`str()` is one line. `detail` contains the command and the end of its output."""

    def __init__(self, reason, command, said=""):
        super().__init__(reason)
        end = "\n".join("    " + line for line in said.strip().splitlines()[-15:])
        self.detail = f"{shlex.join(command)}\n  {reason}" + (f":\n{end}" if end else "")


@dataclasses.dataclass(frozen=True)
class Absence:
    """Why a system has no figures. `install`: the command that installs it; none if it failed."""

    reason: str
    install: str = ""


@dataclasses.dataclass
class Result:
    """`rounds`: for each system that has figures, its Measurement of each round."""

    case: object
    rounds: dict
    absent: dict


def _end_group(process):
    """Ends a command and all processes that it started; it leads its own process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def execute(command, limit):
    """Runs a command for at most `limit` seconds, ends its processes, and returns its report."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        real = [word.replace(REPORT, str(report)) for word in command]
        out, err = pathlib.Path(folder) / "out", pathlib.Path(folder) / "err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            try:
                process = subprocess.Popen(
                    real,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                raise CommandFailed(f"{error.filename}: {error.strerror}", command) from None
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end_group(process)
        said = err.read_text(encoding="utf-8", errors="replace")
        if status is None:
            raise CommandFailed(f"took more than {limit:g} s", command, said)
        if status != 0:
            ended = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
            lines = said.strip().splitlines()
            last = f": {lines[-1].strip()}" if lines else ""
            raise CommandFailed(ended + last, command, said)
        printed = out.read_text(encoding="utf-8", errors="replace")
        return parse_report(report, printed, real != list(command), command)


def parse_report(path, printed, written, command):
    try:
        if written:
            return json.loads(path.read_text(encoding="utf-8"))
        return json.JSONDecoder().raw_decode(printed, printed.index("{"))[0]
    except (OSError, ValueError):
        raise CommandFailed("left no report", command, printed) from None


def best_of(metric, measurements):
    """The configuration that counts, of several."""
    chosen = measurements[0]
    for each in measurements[1:]:
        ratio = better(metric, each.values.get(metric.key), chosen.values.get(metric.key))
        if ratio is not None and ratio > 1:
            chosen = each
    return chosen


def _checked(measurement):
    for key, value in measurement.values.items():
        if value is not None and not isinstance(value, (int, float)):
            raise TypeError(f"{key} is {value!r}, which is not a number")
    return measurement


def measure(case, job, limit, run):
    """{system: Measurement} of one run of a job's commands."""
    found = {}
    for command in job.commands:
        report = run(command, limit)
        try:
            for name, measurement in job.read(report).items():
                found.setdefault(name, []).append(_checked(measurement))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            reason = f"its report cannot be read: {type(error).__name__}: {error}"
            raise CommandFailed(reason, command) from None
    for system in job.systems:
        if system.name not in found:
            raise CommandFailed(f"its report has no figures of {system.name}", job.commands[-1])
    return {system.name: best_of(case.metrics[0], found[system.name]) for system in job.systems}


def run_case(case, absent, rounds, limit, say, run=execute):
    """Runs all jobs one after the other in each round; every second round in reverse order.

    `absent`: {system: Absence} of the systems to leave out. A job that fails is not run again.
    """
    result = Result(case, {}, dict(absent))
    for number in range(rounds):
        jobs = list(case.jobs)
        for job in jobs if number % 2 == 0 else reversed(jobs):
            names = [system.name for system in job.systems]
            if any(name in result.absent for name in names):
                continue
            say(f"{case.title}: round {number + 1} of {rounds}: {' and '.join(names)}")
            try:
                measured = measure(case, job, limit, run)
            except CommandFailed as error:
                say(f"failed: {error.detail}")
                for name in names:
                    result.absent[name] = Absence(str(error))
                    result.rounds.pop(name, None)
                continue
            for name, measurement in measured.items():
                result.rounds.setdefault(name, []).append(measurement)
    return result


def find_absent(cases):
    """{system: Absence} of the peers that are not installed. Raises UsageError if programs of
    ours, or the floors, are missing: without them there is nothing to compare with."""
    known, absent, ours = {}, {}, {}
    for system in (system for case in cases for system in case.systems()):
        need = system.requirement
        if need is None:
            continue
        if need not in known:
            known[need] = need.missing()
        reason = known[need]
        if reason and system.role == PEER:
            absent[system.name] = Absence(reason, need.install)
        elif reason:
            ours[reason] = need.install
    if ours:
        told = "; ".join(f"{reason} (build it: {install})" for reason, install in ours.items())
        raise UsageError(told)
    return absent
