"""Measure ``torc tui`` in a terminal: its first screen, memory, CPU time, and the bytes that it writes for a key.

The first screen is that of a workflow of 5,000 jobs, and its CPU time stands beside that of
``python -c "import textual.app"``, measured in the same rounds. The rest has a workflow of a million jobs (``--jobs``)
of all statuses. Its sections can be chosen; without a choice all are measured.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from attrs import frozen
from bench import compile_packages
from million import FAILING, TORC, Server, fill, running_server
from pty_program import PtyProgram
from specs import LEVELS

from torc_framework.client import TorcClient
from torc_framework.models.records import EventRecord
from torc_framework.store.database.opening import open_database
from torc_framework.store.records.events import TransactionEvents

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
QUIET_S: Final = 0.5
"""Seconds without output after which a key has had its effect."""
LOADED_S: Final = 1.5
"""Seconds without output after which an answer about a workflow of this size is there."""
DOWN: Final = "\x1b[B"
RIGHT: Final = "\x1b[C"
HOME: Final = "\x1b[H"
END: Final = "\x1b[F"
PAGE_DOWN: Final = "\x1b[6~"
FIRST_TEXTS: Final = {"DONE": "frame", "million": "list of workflows", "Failures by cause": "overview of the newest"}
"""What is drawn first, by a text of it."""
SMALL: Final = 5000
"""Jobs of the workflow whose first screen is measured."""
PAGES: Final = 2000
"""Pages of the list of jobs that are scrolled through."""
GRAPHS: Final = {"1,000 jobs, each a node": 1000, "100,000 jobs": 100_000}
STEPS: Final = 50
"""Steps of the cursor of which the mean counts."""
EVENTS_AT_ONCE: Final = 20_000


@frozen
class Bench:
    """What the sections measure on.

    Attributes:
        folder: Home of the programs, and the place of databases that are made.
        database: The database of the large workflow.
        jobs: Its jobs.
        rounds: Rounds of the first screen.
        events: Events that one session gets.
    """

    folder: Path
    database: Path
    jobs: int
    rounds: int
    events: int

    def large(self) -> AbstractContextManager[Server]:
        """Run a server of the large workflow."""
        if not self.database.exists():
            fill(str(self.database), self.jobs)
        return running_server(str(self.database))


def started(url: str, folder: Path, look: str = "256 colours", size: tuple[int, int] = SIZES[0]) -> PtyProgram:
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


def first_screens(bench: Bench) -> None:
    """Print how long the first screen takes."""
    yardstick, cpus, memories = [], [], []
    walls: dict[str, list[float]] = {text: [] for text in FIRST_TEXTS}
    database = bench.folder / "small.db"
    fill(str(database), SMALL)
    with running_server(str(database)) as server:
        for _ in range(bench.rounds):
            yardstick.append(import_of_library())
            with started(server.url, bench.folder) as program:
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


def bytes_of_keys(bench: Bench) -> None:
    """Print how many bytes a step of the cursor writes in each tab, and a page of jobs."""
    print("\n| bytes for a key | " + " | ".join(TABS) + " | Page Down | first screen |")
    print("|---|" + "---|" * (len(TABS) + 2))
    with bench.large() as server:
        for look in LOOKS:
            for size in SIZES:
                with started(server.url, bench.folder, look, size) as program:
                    cells = _bytes_of_keys(program)
                print(f"| {look}, {size[0]}x{size[1]} | " + " | ".join(map(str, cells)) + " |", flush=True)


def _bytes_of_keys(program: PtyProgram) -> list[int]:
    """Return the bytes of a step in each tab, of a page of jobs, and of the first screen."""
    program.until("Failures by cause")
    program.settle(LOADED_S)
    first = sum(map(len, program.written))
    program.bytes_for(RIGHT, QUIET_S)
    steps = []
    for name, (key, row) in TABS.items():
        piece = program.settle(QUIET_S)
        if name != "Overview":
            program.type(key)
            program.until(row, piece)
            program.settle(LOADED_S)
        steps.append(max(program.bytes_for(DOWN, QUIET_S) for _ in range(2)))
    program.bytes_for("2", LOADED_S)
    return [*steps, program.bytes_for(PAGE_DOWN, QUIET_S), first]


class Costs:
    """What keys cost in one session; each is a row of a table."""

    def __init__(self, program: PtyProgram, server: Server) -> None:
        self._program, self._server = program, server
        print("\n| keys | wall ms | CPU ms | CPU ms of the server | memory MB |\n|---|---|---|---|---|")

    def row(self, label: str, act: Callable[[], object], since: float | None = None) -> None:
        """Do something that waits for its effect, and print its costs; ``since`` is the clock's time when it began."""
        server_s, cpu_s = self._server.cpu(), self._program.cpu_s()
        began = time.perf_counter()
        act()
        wall_ms = 1e3 * (time.perf_counter() - (began if since is None else since))
        self._program.settle()
        cpu_ms, server_ms = 1e3 * (self._program.cpu_s() - cpu_s), 1e3 * (self._server.cpu() - server_s)
        memory = self._program.memory_mb(peak=True)
        print(f"| {label} | {wall_ms:.0f} | {cpu_ms:.0f} | {server_ms:.0f} | {memory:.0f} |", flush=True)

    def key(self, label: str, keys: str, text: str) -> None:
        """Type keys, and wait for a text."""
        piece = self._program.settle()

        def act() -> None:
            self._program.type(keys)
            self._program.until(text, piece)

        self.row(label, act)


def large_lists(bench: Bench) -> None:
    """Print what it costs to look at the large workflow, and to scroll through its jobs."""
    last, failed = f"{bench.jobs:,}", f"{bench.jobs // LEVELS // FAILING:,}"
    with bench.large() as server:
        for label in ("overview, first time", "overview, again"):
            with started(server.url, bench.folder) as program:
                costs = Costs(program, server)
                costs.row(label, lambda program=program: program.until(" of jobs in "), program.began_at)  # type: ignore[misc]  # mypy infers no type for the default
                program.settle(LOADED_S)
                if label.endswith("again"):
                    costs.key("Jobs", "2" + RIGHT, f"1 of {last}")
                    costs.row(f"{PAGES} × Page Down", lambda program=program: _scroll(program))  # type: ignore[misc]  # as above
                    costs.key("End", END, f"{last} of {last}")
                    costs.key("Home", HOME, f"1 of {last}")
                    costs.row("filter status:failed", lambda program=program: _filter(program, failed))  # type: ignore[misc]  # as above
                    costs.key("End of these", END, f"{failed} of {failed}")
                    costs.key("no filter", "\x1b", f" of {last}")
                    costs.key("Results", "5", "success")
                    costs.key("DAG", "8", "dependencies")


def _scroll(program: PtyProgram) -> None:
    """Scroll through pages as a key that is held down does: 100 in a second."""
    for _ in range(PAGES // 10):
        program.type(PAGE_DOWN * 10)
        time.sleep(0.1)
    program.settle()


def _filter(program: PtyProgram, failed: str) -> None:
    """Filter the failed jobs, once the filter is asked for, and wait for their number."""
    for keys, answer in (("/", "Enter take it"), ("status:failed\r", f"1 of {failed} ")):
        piece = len(program.written)
        program.type(keys)
        program.until(answer, piece)


def graphs(bench: Bench) -> None:
    """Print what it costs to look at the dependency graphs of workflows, and to move in them."""
    for label, jobs in GRAPHS.items():
        database = bench.folder / f"graph{jobs}.db"
        fill(str(database), jobs, _word if jobs <= min(GRAPHS.values()) else "job_{}".format)
        with running_server(str(database)) as server, started(server.url, bench.folder) as program:
            program.until(" of jobs in ")
            costs = Costs(program, server)
            costs.key(f"DAG of {label}", RIGHT + "8", "dependencies")
            costs.row(f"{STEPS} × Down", lambda program=program: _steps(program, STEPS))  # type: ignore[misc]  # mypy infers no type for the default
            costs.row("End", lambda program=program: program.bytes_for(END))  # type: ignore[misc]  # as above


def _word(number: int) -> str:
    """Return a name without digits, so that each job is a group of its own."""
    return "job_" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _steps(program: PtyProgram, count: int) -> None:
    for _ in range(count):
        piece = len(program.written)
        program.type(DOWN)
        while len(program.written) == piece:
            time.sleep(0.001)


def many_events(bench: Bench) -> None:
    """Print what a session costs that gets as many events as a day of a busy workflow has, and how soon keys answer."""
    database = bench.folder / "events.db"
    fill(str(database), SMALL)
    with running_server(str(database)) as server, started(server.url, bench.folder) as program:
        program.until(" of jobs in ")
        program.until("SSE")
        program.type("2" + RIGHT)
        program.until(f"1 of {SMALL:,}")
        program.settle()
        before, answers = program.memory_mb(), list[float]()
        costs = Costs(program, server)
        costs.row(f"{bench.events:,} events", lambda: answers.extend(_send_events(bench, server, program)))
        costs.key("Events", "4", "job_started")
        middle, longest = statistics.median(answers), max(answers)
        print(
            f"\nMemory {before:.0f} MB before these events, {program.memory_mb():.0f} MB after them. A step of the "
            f"cursor meanwhile: median {1e3 * middle:.0f} ms, longest {1e3 * longest:.0f} ms."
        )


def _send_events(bench: Bench, server: Server, program: PtyProgram) -> Sequence[float]:
    """Store events, wake the stream by one more of each block, and step; return the seconds of each step."""
    opened = open_database(str(bench.folder / "events.db"))
    answers = []
    try:
        with TorcClient(server.url) as client:
            for _ in range(bench.events // EVENTS_AT_ONCE):
                with opened.write() as tx:
                    events = TransactionEvents(1)
                    for number in range(EVENTS_AT_ONCE - 1):
                        events.add("job_started", job_id=number % SMALL + 1, job_name=f"job_{number % SMALL}")
                    events.write(tx)
                client.create(EventRecord(workflow_id=1, data={"event_type": "user_action", "action": "measure"}))
                for _ in range(4):
                    piece, began = len(program.written), time.perf_counter()
                    program.type(DOWN)
                    while len(program.written) == piece:
                        time.sleep(0.001)
                    answers.append(time.perf_counter() - began)
                    time.sleep(0.1)
            program.settle(LOADED_S)
    finally:
        opened.close()
    return answers


SECTIONS: Final[Mapping[str, Callable[[Bench], None]]] = {
    "start": first_screens,
    "keys": bytes_of_keys,
    "lists": large_lists,
    "graphs": graphs,
    "events": many_events,
}


def main() -> None:
    """Measure the sections."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(SECTIONS)} (default: all)")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--events", type=int, default=800_000)
    parser.add_argument("--database", type=Path, help="a file that this program filled before, or fills now")
    options = parser.parse_args()
    if unknown := set(options.sections).difference(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}")
    compile_packages()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = options.database or folder / "torc.db"
        bench = Bench(folder, database, options.jobs, options.rounds, options.events)
        for section in options.sections or SECTIONS:
            SECTIONS[section](bench)
    print("load", *os.getloadavg())


if __name__ == "__main__":
    main()
