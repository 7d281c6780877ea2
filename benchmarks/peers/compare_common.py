"""What the compare_*.py that time whole programs share."""

import json
import pathlib
import subprocess
import sys
import tempfile


def run(command, limit):
    """What a command prints. Ends this program, with the reason, when it fails or takes too long."""
    command = [str(word) for word in command]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except (OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"{command[0]}: {error}")
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} exited with {result.returncode}:\n{result.stderr[-2000:]}")
    return result.stdout


def run_for_report(command, limit):
    """The same, for the report that a command writes with --json."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "report.json"
        run([*command, "--json", path], limit)
        return json.loads(path.read_text(encoding="utf-8"))
