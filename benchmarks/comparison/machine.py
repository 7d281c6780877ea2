"""The machine and the versions of a measurement."""

import datetime
import os
import pathlib
import platform
import re
import subprocess

from .suite import ROOT


def _first(pattern, path, default="unknown"):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return default
    return found.group(1).strip().strip('"') if found else default


def _first_line_of(*command):
    try:
        result = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = result.stdout.splitlines()
    return lines[0].strip() if result.returncode == 0 and lines else ""


def _compiler(programs):
    """The compiler of our programs, as CMake has recorded it; else the one of this machine."""
    cache = pathlib.Path(programs).parent / "CMakeCache.txt"
    compiler = _first(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, "c++")
    return _first_line_of(compiler, "--version") or "unknown"


def _our_version():
    header = ROOT / "include" / "batchrpc" / "base" / "version.hpp"
    parts = [
        _first(rf"define BATCHRPC_VERSION_{part}\s+(\d+)", header, "?")
        for part in ("MAJOR", "MINOR", "PATCH")
    ]
    commit = _first_line_of("git", "rev-parse", "--short", "HEAD")
    # Changes in pages do not count: this program may be writing them.
    what = ["--untracked-files=no", "--", ".", ":!docs"]
    changed = _first_line_of("git", "status", "--porcelain", *what)
    state = f" ({commit}{', with changes' if changed else ''})" if commit else ""
    return ".".join(parts) + state


def describe(programs):
    kilobytes = _first(r"^MemTotal:\s+(\d+) kB$", "/proc/meminfo", "0")
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": _first(r"^model name\s*:\s*(.+)$", "/proc/cpuinfo", platform.machine()),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(kilobytes) / (1 << 20), 1),
        "kernel": f"{platform.system()} {platform.release()}",
        "system": _first(r"^PRETTY_NAME=(.+)$", "/etc/os-release"),
        "congestion_control": _first(r"^(\w+)$", "/proc/sys/net/ipv4/tcp_congestion_control"),
        "compiler": _compiler(programs),
        "batchrpc": _our_version(),
        "python": platform.python_version(),
    }


def versions(results):
    """{system: version} of all systems that reported a version."""
    found = {}
    for result in results:
        for name, rounds in result.rounds.items():
            if rounds[-1].version:
                found[name] = rounds[-1].version
    return found


def sentence(machine, of_systems):
    """The description as one paragraph of Markdown."""
    text = (
        f"Measured on {machine['date']}: {machine['cpu']}, {machine['cpus']} CPUs,"
        f" {machine['memory_gib']} GiB of memory, {machine['kernel']}, {machine['system']},"
        f" TCP by {machine['congestion_control']};"
        f" {machine['compiler']}; batchrpc {machine['batchrpc']}"
    )
    others = {name: version for name, version in of_systems.items() if name[:8] != "batchrpc"}
    if others:
        text += ", " + ", ".join(f"{name} {version}" for name, version in sorted(others.items()))
    return text + "."
