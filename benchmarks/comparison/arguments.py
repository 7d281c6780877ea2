"""Types of options, and the options common to all suites."""

import argparse
import pathlib

from .suite import ROOT, UsageError


def numbers(text, least=1):
    """A comma-separated list of whole numbers."""
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or min(values) < least:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of numbers of at least {least}")
    return values


def number(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of at least 1")
    return int(text)


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def choices(*allowed):
    """The type of an option whose value is a comma-separated list of these."""

    def parse(text):
        parts = text.split(",")
        for part in parts:
            if part not in allowed:
                raise argparse.ArgumentTypeError(f"'{part}' is not one of {', '.join(allowed)}")
        return parts

    return parse


def python(text):
    """A name in PATH, or a path relative to the user's folder; commands run in the root."""
    return str(pathlib.Path(text).absolute()) if "/" in text else text


def sizes(text):
    """A comma-separated list of sizes in bytes, such as 64,64K,1M."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    values = []
    for part in text.split(","):
        digits = part[:-1] if part[-1:].upper() in units else part
        if not digits.isdigit() or int(digits) < 1:
            raise argparse.ArgumentTypeError(f"'{part}' is not a size such as 64, 64K or 1M")
        values.append(int(digits) * units.get(part[-1].upper(), 1))
    return values


def common_options():
    parser = argparse.ArgumentParser(add_help=False)
    group = parser.add_argument_group("all suites")
    group.add_argument("--rounds", type=number, default=3, help="(default: 3)")
    group.add_argument("--quick", action="store_true", help="fewer and smaller cases")
    group.add_argument("--list", action="store_true", help="print what would be run, and exit")
    group.add_argument("--only", metavar="SYSTEM,...", help="measure only these; see --list")
    group.add_argument("--json", type=pathlib.Path, metavar="FILE", help="the report's file")
    group.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="the tables' file")
    group.add_argument(
        "--figure", type=pathlib.Path, metavar="FILE.svg", help="draw it, and FILE.png"
    )
    group.add_argument(
        "--docs",
        type=pathlib.Path,
        metavar="PAGE.md",
        help="update the tables and figures of this page (docs/performance.md)",
    )
    group.add_argument(
        "--python", type=python, default="/usr/bin/python3", help="a Python that has torch"
    )
    group.add_argument(
        "--programs",
        type=lambda text: pathlib.Path(text).absolute(),
        metavar="DIR",
        default=ROOT / "build" / "release" / "bin",
        help="folder of our programs (default: build/release/bin)",
    )
    group.add_argument(
        "--limit", type=seconds, default=600.0, metavar="SECONDS", help="for a command (600)"
    )
    return parser


def check_writable(option, path):
    """Checks now that `path` can be written, instead of after minutes. Changes no existing file."""
    was_there = path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise UsageError(f"{option}: cannot write {path}: {error.strerror}") from None
    if not was_there:
        path.unlink()
