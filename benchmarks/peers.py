"""Measure other programs that run many jobs against the yardstick of ``bench.py``, and print ratios.

A program that is not installed is left out. The Python packages huey, parsl and hyperqueue may be in another
environment than ``torc``: ``--python`` names its interpreter.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench import HERE, Bench, Row, Sample, children_cpu
from markdown_tables import render, replace
from peer_programs.graphs import parents_of


class Workload(NamedTuple):
    """What a row of each peer runs.

    Attributes:
        count: Number of jobs; of ``barrier`` that of one wide level.
        slots: Jobs at a time.
    """

    graph: str
    count: int
    slots: int
    command: str = "true"


WORKLOADS = {
    "independent": Workload("independent", 1000, 4),
    "barrier": Workload("barrier", 1000, 4),
    "chain": Workload("chain", 200, 1),
    "sleeps": Workload("independent", 100, 16, "sleep 0.1"),
}
PROGRAMS = {"huey": {"independent", "sleeps"}, "parsl": set(WORKLOADS), "hyperqueue": set(WORKLOADS)}
"""Python packages with a program in ``peer_programs``, and the workloads that each can run."""
HEAD = ("peer", "row", "yardstick s", "peer s", "ratio, whole", "ratio, exec", "CPU × yardstick")


def timed(command: list[str], folder: Path, *, prints_seconds: bool = False) -> Sample:
    """Run a peer; one that ``prints_seconds`` prints how long its jobs alone took."""
    begin, begin_cpu = time.perf_counter(), children_cpu()
    environment = os.environ | {"PARALLEL_SHELL": "/bin/sh", "HOME": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    whole, cpu = time.perf_counter() - begin, children_cpu() - begin_cpu
    return Sample(whole, float(done.stdout.splitlines()[-1]) if prints_seconds else None, cpu)


def lines_file(folder: Path, line: str, count: int) -> str:
    """Return the path of a file of equal lines."""
    path = folder / "lines"
    path.write_text(f"{line}\n" * count, encoding="utf-8")
    return str(path)


def run_xargs(folder: Path, work: Workload) -> Sample:
    """Independent jobs by ``xargs -P``, which keeps nothing of them."""
    lines = lines_file(folder, "x", work.count)
    return timed(["xargs", "-a", lines, "-P", str(work.slots), "-n", "1", "sh", "-c", work.command], folder)


def run_parallel(folder: Path, work: Workload) -> Sample:
    """Independent jobs by GNU parallel with a job log."""
    lines = lines_file(folder, work.command, work.count)
    log = str(Path(tempfile.mkdtemp(dir=folder)) / "joblog")
    return timed(["parallel", "--will-cite", f"-j{work.slots}", "--joblog", log, "-a", lines], folder)


def run_ninja(folder: Path, work: Workload) -> Sample:
    """Jobs by ninja, which keeps their times in ``.ninja_log``; they write no files."""
    project = Path(tempfile.mkdtemp(dir=folder))
    lines = ["rule run", f"  command = {work.command}"]
    for number, parents in enumerate(parents_of(work.graph, work.count)):
        lines.append(f"build job_{number}: run" + "".join(f" job_{parent}" for parent in parents))
    (project / "build.ninja").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return timed(["ninja", "--quiet", "-j", str(work.slots)], project)


COMMANDS: dict[str, tuple[set[str], Callable[[Path, Workload], Sample]]] = {
    "xargs": ({"independent", "sleeps"}, run_xargs),
    "parallel": ({"independent", "sleeps"}, run_parallel),
    "ninja": (set(WORKLOADS), run_ninja),
}
"""Installed programs, the workloads that each can run, and how."""


def program(name: str, python: str) -> Callable[[Path, Workload], Sample]:
    """Return the function that runs a workload with a program of ``peer_programs``."""

    def run(folder: Path, work: Workload) -> Sample:
        arguments = [work.graph, str(work.count), str(work.slots), work.command]
        return timed([python, str(HERE / "peer_programs" / f"{name}_jobs.py"), *arguments], folder, prints_seconds=True)

    return run


def installed_peers(python: str) -> dict[str, tuple[set[str], Callable[[Path, Workload], Sample]]]:
    """Return the peers that are installed; name the others on the standard error stream."""
    peers = {name: peer for name, peer in COMMANDS.items() if shutil.which(name)}
    for name, workloads in PROGRAMS.items():
        if subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0:
            peers[name] = (workloads, program(name, python))
    for name in (COMMANDS.keys() | PROGRAMS.keys()) - peers.keys():
        print(f"{name} is not installed: its rows are left out", file=sys.stderr)
    return peers


def measure(bench: Bench, name: str, workload: str, run: Callable[[Path, Workload], Sample]) -> Row:
    """Return the row of one peer and one workload."""
    work = WORKLOADS[workload]
    jobs = len(parents_of(work.graph, work.count))
    return bench.against(
        lambda: bench.run_raw(jobs, work.slots, "sh", work.command),
        lambda: run(bench.folder, work),
        f"{name} | {workload}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", choices=[*WORKLOADS, []], help=f"rows (all): {', '.join(WORKLOADS)}")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per row; the median counts")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environment with the packages")
    parser.add_argument("--write", type=Path, help="Markdown file whose table is replaced")
    options = parser.parse_args()
    peers = installed_peers(options.python)
    measured = []
    with tempfile.TemporaryDirectory(prefix="torc-bench-") as folder:
        bench = Bench(Path(folder), options.rounds, 0)
        for workload in options.rows or WORKLOADS:
            for name, (workloads, run) in peers.items():
                if workload in workloads:
                    measured.append(measure(bench, name, workload, run))
    table = render(HEAD, (row.cells() for row in measured))
    print(table)
    if options.write:
        replace(options.write, "peers", table)


if __name__ == "__main__":
    main()
