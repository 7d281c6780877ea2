"""The terms of a comparison: suites of cases, in which commands measure systems.

A case is one workload. Its jobs are commands. Each measures one or several systems and
writes a report as JSON. Measurements are read from it: a number for each of the
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
"""In a command: the file for its report. A command without it prints the report."""

OURS, FLOOR, PEER = "ours", "floor", "peer"


class UsageError(Exception):
    """The user's request is impossible; the message is one line."""


@dataclasses.dataclass(frozen=True)
class Metric:
    """`factor` converts reported values to the unit: 1e6 for µs from seconds. For those `compared`
    ratios are shown too. Figures show the first of a case's metrics."""

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
    """The needs of a system: `missing()` says what is not installed, or None; `install` is the
    command that installs it. `built`: check it after the C++ peers have been built.
    Without our own programs nothing is compared; a missing peer is left out."""

    missing: Callable[[], Optional[str]]
    install: str
    built: bool = False


@dataclasses.dataclass(frozen=True)
class System:
    """`against`: names of our systems that it is compared with; none: all."""

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
    """`values`: a number, or None, for each metric's key. `version`: the system's, if known."""

    values: Mapping[str, Optional[float]]
    version: str = ""


@dataclasses.dataclass(frozen=True)
class Job:
    """`read(report)` returns a Measurement for each of the systems, by name.

    Several commands are configurations of the same system: all run in each round, and for each
    system the one with the best first metric counts.
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
        """The systems in the order of the tables: ours, floors, peers."""
        every = [system for job in self.jobs for system in job.systems]
        return [system for role in (OURS, FLOOR, PEER) for system in every if system.role == role]


@dataclasses.dataclass(frozen=True)
class Suite:
    """`about`: a paragraph on what is measured, for --help and for Markdown."""

    name: str
    title: str
    about: str
    add_options: Callable[[argparse.ArgumentParser], None]
    make_cases: Callable[[argparse.Namespace], Sequence[Case]]
