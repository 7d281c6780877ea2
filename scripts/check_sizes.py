#!/usr/bin/env python3
"""Checks that no class in src/ has more than 20 data members, and that no source file has more than 400 lines.

    scripts/check_sizes.py [--classes N]

--classes N  also prints the N classes with the most data members, public headers included

Data members are counted by Universal Ctags. Public option and statistics structs in include/ are no classes in
this sense: their fields are what users set and read.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

MOST_MEMBERS = 20
MOST_LINES = 400


def tracked(*patterns):
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *patterns]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [file for file in files if pathlib.Path(file).exists()]


def data_members(files):
    """(file, class) -> the number of its data members."""
    command = ["ctags", "--output-format=json", "--fields=+KS", "--kinds-C++=m", "-I", "BATCHRPC_EXPORT", "-f", "-", *files]
    counts = collections.Counter()
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        tag = json.loads(line)
        counts[tag["path"], tag.get("scope", "?")] += 1
    return counts


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--classes", type=int, default=0)
    options = parser.parse_args()
    root = subprocess.run(["git", "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=True, cwd=pathlib.Path(__file__).parent)
    os.chdir(root.stdout.strip())

    violations = []
    counts = data_members(tracked("src/*.hpp", "src/*.cpp", "include/*.hpp"))
    for (file, name), count in counts.most_common():
        if count > MOST_MEMBERS and file.startswith("src/"):
            violations.append(f"{file}: {name} has {count} data members; the limit is {MOST_MEMBERS}: split its work, not its file")
    for (file, name), count in counts.most_common(options.classes):
        print(f"{count:4d}  {name}  {file}")
    files = tracked("*.hpp", "*.cpp", "*.py", "*.sh", "*.cmake", "*CMakeLists.txt")
    for file in files:
        with open(file, "rb") as content:
            lines = sum(1 for _ in content)
        if lines > MOST_LINES:
            violations.append(f"{file}: {lines} lines; the limit is {MOST_LINES}: split its concepts")
    for violation in violations:
        print(violation)
    if violations:
        sys.exit(1)
    print(f"sizes: {len(counts)} classes and {len(files)} files keep the limits")


if __name__ == "__main__":
    main()
