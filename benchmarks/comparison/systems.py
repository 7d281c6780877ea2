"""The requirements of systems: our own programs, Python modules, compiled peers."""

import pathlib
import shutil
import subprocess

from .suite import PEERS, ROOT, Requirement

SETUP = "scripts/setup.sh --peers"
BUILT_PEERS = ROOT / "build" / "peers" / "bin"
BUILD_PEERS = ("cmake --preset peers", "cmake --build build/peers --target peers")


def words(*command):
    """A command, run in the root of this repository, with short paths."""
    return tuple(_short(word) if isinstance(word, pathlib.Path) else str(word) for word in command)


def _short(path):
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def program(options, name):
    """(path, Requirement) of a program of this repository."""
    path = options.programs / name
    build = f"cmake --preset release && cmake --build build/release --target {name}"

    def missing():
        return None if path.is_file() else f"{_short(path)} does not exist"

    return path, Requirement(missing, build)


def python_modules(python, imports, install, path=None):
    """A Requirement: a Python that imports modules, with `path` added to its search path."""
    code = f"import sys; sys.path.insert(0, {str(path)!r}); " if path else ""

    def missing():
        try:
            result = subprocess.run(
                [str(python), "-c", f"{code}import {imports}"],
                capture_output=True,
                text=True,
                timeout=300,
                cwd=ROOT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{words(python)[0]}: {getattr(error, 'strerror', None) or error}"
        lines = result.stderr.strip().splitlines() or ["no word"]
        return None if result.returncode == 0 else f"{words(python)[0]}: {lines[-1]}"

    return Requirement(missing, install)


def torch_rpc(options):
    return python_modules(options.python, "torch.distributed.rpc", SETUP)


def peer_script(options, name, *arguments):
    return words(options.python, PEERS / name, *arguments)


def build_peers(say):
    """Builds the C++ peers that can be built here, and reports the others and why to `say`.

    It runs each time, so that the programs match the sources. Without changes it does nothing.
    """
    if not shutil.which("cmake"):
        say("the peers in C++ are not built: cmake is missing (scripts/setup.sh installs it)")
        return
    say("building the peers in C++, in build/peers")
    for command in BUILD_PEERS:
        result = subprocess.run(
            command.split(), cwd=ROOT, capture_output=True, text=True, check=False
        )
        if result.returncode != 0:
            end = (result.stdout + result.stderr)[-1500:].rstrip()
            say(f"the peers in C++ are not built: `{command}` failed:\n{end}")
            return


def built_peer(name, packages):
    """(path, Requirement) of a peer in C++."""
    path = BUILT_PEERS / name

    def missing():
        return None if path.is_file() else f"{name} is not built, which needs {packages}"

    return path, Requirement(missing, f"{SETUP} && {' && '.join(BUILD_PEERS)}", built=True)
