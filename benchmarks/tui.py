"""Measure ``torc tui`` in a terminal: its first screen, memory, CPU time, and the bytes that it writes for a key.

The first screen is that of a workflow of 5,000 jobs; the rest has a workflow of a million jobs (``--jobs``) of all
statuses. The CPU time until the overview is there stands beside that of
``python -c "import textual.app"``, measured in the same rounds.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench import compile_packages
from million import TORC, fill, running_server
from pty_program import PtyProgram

SIZES: Final = ((80, 24), (200, 50))
LOOKS: Final[Mapping[str, Mapping[str, str]]] = {
    "256 colours": {"TERM": "xterm-256color"},
    "16 colours": {"TERM": "xterm"},
    "NO_COLOR": {"TERM": "xterm-256color", "NO_COLOR": "1"},
}
TABS: Final = {
    "Overview": ("1", "Failures by cause"),
    "Jobs": ("2", "job_0"),
    "Results": ("5", "success"),
    "DAG": ("8", "dependencies"),
}
"""Tabs with their keys, and a text of their rows."""
QUIET_S: Final = 1.5
"""Seconds without output after which an answer about a workflow of this size is there."""
DOWN: Final = "\x1b[B"
END: Final = "\x1b[F"
PAGE_DOWN: Final = "\x1b[6~"
FIRST_TEXTS: Final = {"DONE": "frame", "million": "list of workflows", "Failures by cause": "overview of the newest"}
"""What is drawn first, by a text of it."""
SMALL: Final = 5000
"""Jobs of the workflow whose first screen is measured."""


def started(url: str, folder: Path, look: str, size: tuple[int, int]) -> PtyProgram:
    """Start the program in a terminal."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment = {"LANG": "C.UTF-8", **kept, "HOME": str(folder), **LOOKS[look]}
    command = [str(TORC), "--url", url, "tui", "--all-users"]
    return PtyProgram(command, environment, folder, columns=size[0], lines=size[1])


def import_of_library() -> tuple[float, float]:
    """Import the library of the screens in a program of its own; return wall and CPU time, seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", "import textual.app"], check=True)
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_screens(url: str, folder: Path, rounds: int) -> None:
    """Print how long the first screen takes."""
    yardstick, cpus, memories = [], [], []
    walls: dict[str, list[float]] = {text: [] for text in FIRST_TEXTS}
    for _ in range(rounds):
        yardstick.append(import_of_library())
        with started(url, folder, "256 colours", SIZES[0]) as program:
            for text, found in walls.items():
                found.append(program.until(text))
            cpus.append(program.cpu_s())
            program.settle()
            memories.append(program.memory_mb())
    wall_s, cpu_s = (statistics.median(column) for column in zip(*yardstick, strict=True))
    print("| first screen | wall ms | CPU ms | CPU × yardstick | memory MB |\n|---|---|---|---|---|")
    print(f"| `python -c 'import textual.app'` | {1e3 * wall_s:.0f} | {1e3 * cpu_s:.0f} | 1.0 | |")
    cpu = statistics.median(cpus)
    costs = f"{1e3 * cpu:.0f} | {cpu / cpu_s:.1f} | {statistics.median(memories):.0f}"
    for text, label in FIRST_TEXTS.items():
        more = costs if text == [*FIRST_TEXTS][-1] else "| |"
        print(f"| `torc tui`, {label} | {1e3 * statistics.median(walls[text]):.0f} | {more} |")


def bytes_of_keys(url: str, folder: Path) -> None:
    """Print how many bytes a step of the cursor writes in each tab, and a page of jobs."""
    print("\n| bytes for a key | " + " | ".join(TABS) + " | Page Down | first screen |")
    print("|---|" + "---|" * (len(TABS) + 2))
    for look in LOOKS:
        for size in SIZES:
            with started(url, folder, look, size) as program:
                program.until("Failures by cause")
                program.settle(QUIET_S)
                cells = [sum(map(len, program.written))]
                program.type("\x1b[C")
                steps = []
                for key, row in TABS.values():
                    piece = program.settle(QUIET_S)
                    program.type(key)
                    program.until(row, piece)
                    program.settle(QUIET_S)
                    steps.append(max(program.bytes_for(DOWN) for _ in range(3)))
                program.bytes_for("2", QUIET_S)
                cells = [*steps, program.bytes_for(PAGE_DOWN), *cells]
            print(f"| {look}, {size[0]}x{size[1]} | " + " | ".join(map(str, cells)) + " |", flush=True)


def scrolling(url: str, folder: Path, jobs: int) -> None:
    """Print what it costs to scroll through all jobs."""
    with started(url, folder, "256 colours", SIZES[0]) as program:
        program.until("Failures by cause")
        program.settle(QUIET_S)
        before, cpu_s, began = program.memory_mb(), program.cpu_s(), time.perf_counter()
        program.bytes_for("2\x1b[C", 2)
        pages = 2000
        for _ in range(pages // 50):
            program.type(PAGE_DOWN * 50)
            time.sleep(0.5)
        piece = program.settle(1.0)
        program.type(END)
        program.until(f"job_{jobs - 1}", piece)
        program.settle(1.0)
        wall_s = time.perf_counter() - began
        print(
            f"\n{pages} pages and the end of {jobs:,} jobs: {wall_s:.0f} s, CPU {program.cpu_s() - cpu_s:.1f} s, "
            f"memory {before:.0f} MB before, {program.memory_mb(peak=True):.0f} MB at most"
        )


def main() -> None:
    """Fill a database, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--database", type=Path, help="a file that this program filled before, or fills now")
    options = parser.parse_args()
    compile_packages()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = options.database or folder / "torc.db"
        if not database.exists():
            fill(str(database), options.jobs)
        fill(str(folder / "small.db"), SMALL)
        with running_server(str(folder / "small.db")) as server:
            first_screens(server.url, folder, options.rounds)
        with running_server(str(database)) as server:
            bytes_of_keys(server.url, folder)
            scrolling(server.url, folder, options.jobs)
    print("load", *os.getloadavg())


if __name__ == "__main__":
    main()
