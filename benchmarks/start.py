"""Measure how long short commands take, in wall time and in CPU time of all their processes.

The yardstick is ``python -S -c pass``, measured in the same rounds. The commands have a home folder and a database of
their own, which exist already, and no server runs.
"""

import argparse
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import compile_packages

YARDSTICK = "python -S -c pass"
_PR_SET_CHILD_SUBREAPER = 36


def measure(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """Run a command; return its wall time and the CPU time of all its processes, seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL) as process:
        if code := process.wait():
            sys.exit(f"{' '.join(command)} ended with exit code {code}")
        wall_s = time.perf_counter() - began
    wait_for_orphans()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def wait_for_orphans() -> None:
    """Wait for the processes that the command left to this one, so that their CPU time counts."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def main() -> None:
    """Measure in alternating rounds, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds: int = parser.parse_args().rounds
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    compile_packages()
    programs = Path(sys.executable).parent
    torc = str(programs / "torc")
    commands = {
        YARDSTICK: [sys.executable, "-S", "-c", "pass"],
        "torc --version": [torc, "--version"],
        "torc --help": [torc, "--help"],
        "torc run one.json": [torc, "run", "one.json"],
        "torc jobs list 1": [torc, "jobs", "list", "1"],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "one.json").write_text(json.dumps({"name": "one", "jobs": [{"name": "a", "command": "true"}]}))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "TORC_"))}
        environment = {**kept, "HOME": name, "TORC_DATABASE": str(folder / "torc.db")}
        for words in (commands["torc run one.json"], *commands.values()):  # the first makes the database
            measure(words, folder, environment)
        times: dict[str, list[tuple[float, float]]] = {label: [] for label in commands}
        for _ in range(rounds):
            for label, words in commands.items():
                times[label].append(measure(words, folder, environment))
    print("| command | wall ms | CPU ms | CPU × yardstick |\n|---|---|---|---|")
    yardstick_s = statistics.median(cpu_s for _, cpu_s in times[YARDSTICK])
    for label, found in times.items():
        wall_s, cpu_s = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"| {label} | {1e3 * wall_s:.0f} | {1e3 * cpu_s:.0f} | {cpu_s / yardstick_s:.1f} |")
    print("load", *os.getloadavg())


if __name__ == "__main__":
    main()
