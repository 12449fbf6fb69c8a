"""Measure how long short commands take, in wall time and in CPU time of all their processes.

The yardstick is ``python -S -c pass``, measured in the same rounds. The commands have a home folder and a database of
their own, which exist already. No server runs, except in the rows of the server that stays (``keep_server``).
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
from markdown_tables import render, replace

YARDSTICK = "python -S -c pass"
HEAD = ("command", "wall ms", "CPU ms", "CPU × yardstick")
_PR_SET_CHILD_SUBREAPER = 36


def measure(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """Run a command; return its wall time and the CPU time of all its processes, seconds.

    Beside the server that stays, that is the time of the command and its children: the server and what the command
    leaves are not waited for.
    """
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL) as process:
        if code := process.wait():
            sys.exit(f"{' '.join(command)} ended with exit code {code}")
        wall_s = time.perf_counter() - began
    if "TORC_KEEP_SERVER" not in environment:
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


def measure_in_turn(
    commands: Mapping[str, Sequence[str]], rounds: int, folder: Path, environment: Mapping[str, str]
) -> dict[str, list[tuple[float, float]]]:
    """Measure each command once in each round; return the times of each."""
    times: dict[str, list[tuple[float, float]]] = {label: [] for label in commands}
    for _ in range(rounds):
        for label, words in commands.items():
            times[label].append(measure(words, folder, environment))
    return times


def measure_all(folder: Path, rounds: int) -> list[list[str]]:
    """Return the rows of the table, with the medians."""
    programs = Path(sys.executable).parent
    torc, server = str(programs / "torc"), str(programs / "torc-server")
    run, listing = [torc, "run", "one.json"], [torc, "jobs", "list", "1"]
    (folder / "one.json").write_text(json.dumps({"name": "one", "jobs": [{"name": "a", "command": "true"}]}))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "TORC_"))}
    alone = {**kept, "HOME": str(folder), "TORC_DATABASE": str(folder / "torc.db")}
    staying = {**alone, "TORC_KEEP_SERVER": "true", "TORC_DATABASE": str(folder / "kept.db")}
    without_server = {
        YARDSTICK: [sys.executable, "-S", "-c", "pass"],
        "`torc --version`": [torc, "--version"],
        "`torc --help`": [torc, "--help"],
        "`torc run` of one job": run,
        "`torc jobs list`": listing,
    }
    with_server = {"`torc run` of one job, server that stays": run, "`torc jobs list`, server that stays": listing}
    measure(run, folder, alone)  # makes the database
    times = measure_in_turn(without_server, rounds, folder, alone)
    try:
        for _ in range(2):  # the first command makes the database, the second one starts the server
            measure(run, folder, staying)
        times |= measure_in_turn(with_server, rounds, folder, staying)
    finally:
        subprocess.run([server, "kept", "stop"], cwd=folder, env=staying, stdout=subprocess.DEVNULL, check=True)
    yardstick_s = statistics.median(cpu_s for _, cpu_s in times[YARDSTICK])
    rows = []
    for label, found in times.items():
        wall_s, cpu_s = (statistics.median(column) for column in zip(*found, strict=True))
        rows.append([label, f"{1e3 * wall_s:.0f}", f"{1e3 * cpu_s:.0f}", f"{cpu_s / yardstick_s:.1f}"])
    return rows


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--write", type=Path, help="Markdown file whose table is replaced")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    compile_packages()
    with tempfile.TemporaryDirectory() as name:
        table = render(HEAD, measure_all(Path(name), options.rounds))
    print(table)
    print("load", *os.getloadavg(), file=sys.stderr)
    if options.write:
        replace(options.write, "start", table)


if __name__ == "__main__":
    main()
