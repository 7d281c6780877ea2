#!/usr/bin/env python3
"""Checks what a compiler says of a program that must not compile.

    check.py FILE COMPILER FLAG...

The compiler must refuse the file, in at most 12 lines. Its first error must be at a line of the file, be within the
first two lines, and contain the words of the file's first line (a regular expression).
"""
import pathlib
import re
import subprocess
import sys

MOST_LINES = 12

file = pathlib.Path(sys.argv[1])
words = file.read_text().splitlines()[0].removeprefix("// ")
result = subprocess.run([*sys.argv[2:], "-fsyntax-only", str(file)], stderr=subprocess.PIPE, text=True)
lines = result.stderr.splitlines()
errors = [line for line in lines[:2] if "error:" in line]
faults = []
if result.returncode == 0:
    faults.append("it compiles")
if len(lines) > MOST_LINES:
    faults.append(f"the compiler says {len(lines)} lines; {MOST_LINES} is the limit")
if not errors or f"{file.name}:" not in errors[0].split("error:")[0]:
    faults.append("none of the first two lines is an error at a line of the file")
elif not re.search(words if "|" in words else re.escape(words), errors[0]):
    faults.append(f"the first error does not say: {words}")
if faults:
    print(result.stderr)
    sys.exit("\n".join(faults))
