"""The words of a comparison: suites of cases, in which systems are measured by commands.

A case is one workload. Its jobs are commands, each of which measures one or several systems and
leaves a report as JSON. What is read from a report are measurements: a number for each of the
case's metrics.
"""

import argparse
import dataclasses
import pathlib
import re
from typing import Any, Callable, Mapping, Optional, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PEERS = ROOT / "benchmarks" / "peers"
REPORT = "REPORT.json"
"""In a command: the file into which it writes its report; without it, it prints the report."""

OURS, FLOOR, PEER = "ours", "floor", "peer"


class UsageError(Exception):
    """What the user asked for cannot be; in one line."""


@dataclasses.dataclass(frozen=True)
class Metric:
    """`factor` makes the unit of what reports have: 1e6 for µs of seconds. Of those `compared`
    ratios are shown, too; the first of a case's metrics is what its pictures show."""

    key: str
    name: str
    unit: str
    higher_is_better: bool = True
    compared: bool = False
    factor: float = 1.0

    def heading(self):
        return f"{self.name}, {self.unit}" if self.unit else self.name


@dataclasses.dataclass(frozen=True)
class Requirement:
    """What a system needs: `missing()` says what of it is not there, or None; `install` is the
    command that brings it. `built`: it is to be looked for when the C++ peers have been built.
    Without our own programs nothing is compared; without a peer, all but that one."""

    missing: Callable[[], Optional[str]]
    install: str
    built: bool = False


@dataclasses.dataclass(frozen=True)
class System:
    """`against`: names of the systems of ours that it is compared with; none: with all."""

    name: str
    role: str
    requirement: Optional[Requirement] = None
    against: Sequence[str] = ()

    @property
    def word(self):
        """The name as an argument of --only."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


@dataclasses.dataclass(frozen=True)
class Measurement:
    """`values`: a number, or None, for each metric's key. `version`: of the system, where known."""

    values: Mapping[str, Optional[float]]
    version: str = ""


@dataclasses.dataclass(frozen=True)
class Job:
    """`read(report)` gives a Measurement for each of the systems, by name.

    Several commands are several configurations of the same: in each round all run, and for each
    system the one counts whose first metric is the best.
    """

    systems: Sequence[System]
    commands: Sequence[Sequence[str]]
    read: Callable[[Any], Mapping[str, Measurement]]


@dataclasses.dataclass(frozen=True)
class Case:
    title: str
    metrics: Sequence[Metric]
    jobs: Sequence[Job]

    def systems(self):
        """In the order in which they are told: ours, floors, peers."""
        every = [system for job in self.jobs for system in job.systems]
        return [system for role in (OURS, FLOOR, PEER) for system in every if system.role == role]


@dataclasses.dataclass(frozen=True)
class Suite:
    """`about`: what is measured, in a paragraph, for --help and for Markdown."""

    name: str
    title: str
    about: str
    add_options: Callable[[argparse.ArgumentParser], None]
    make_cases: Callable[[argparse.Namespace], Sequence[Case]]
