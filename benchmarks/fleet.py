"""Measure what jobs and runners cost as their numbers grow, with simulated runners that only speak the protocol.

Sections: ``storage`` is the database's size by jobs and dependencies; ``files`` the log files of real jobs by the
setting ``stdio``; ``waiting`` what waiting runners cost, and how soon all have a job; ``working`` how many jobs a
second servers hand out to runners whose jobs take no time. Run it with the Python of the environment that ``torc`` is
installed in. CPU time and memory are those of the servers, without PostgreSQL.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from markdown_tables import render, replace
from simulated_runner import WAIT_S, FleetRecord, SimulatedRunner, quantile_ms
from torc_servers import Server, has_postgres, postgres_database, running_server, sqlite_database

from torc_framework.api import make_api

TORC = Path(sys.executable).with_name("torc")
BATCH = 1000
"""Jobs that a runner claims and reports at once while a workflow of `storage` is run to its end."""
WARM_JOBS = 20_000
"""Jobs of the workflow that is stored before a measurement, so that the server's worker processes run already."""
COUNTINGS = 15
"""Number of calls that count jobs."""
LEVELS = 100
"""Levels of a workflow with dependencies."""
SINGLE_ENDS = 60
"""Ends that each make one job ready, while all runners wait; their jobs fit a simulated runner."""
SETTLE_S = 1.0
"""Time for the server to become idle."""
STDIO = {
    "separate (default)": {},
    "combined": {"stdio": "combined"},
    "none": {"stdio": "none"},
    "delete_stdio_on_success": {"delete_stdio_on_success": True},
}
"""Settings of the workflows of `files`."""


@dataclass
class Table:
    """A measured table.

    Attributes:
        name: Name of its markers in a page.
    """

    name: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@contextmanager
def one_server(*options: str) -> Iterator[tuple[Server, str]]:
    """Run a server of a new SQLite database; yield it and the path of the database."""
    with sqlite_database() as database, running_server(Path(database).parent, database, *options) as server:
        yield server, database


# --- storage ---------------------------------------------------------------------------------------------------------


def storage(options: argparse.Namespace) -> Iterator[Table]:
    """Measure the rows and bytes of jobs in the database, and the CPU time to store, claim and report them."""
    rows: list[list[str]] = []
    numbers: dict[str, list[float]] = {}
    for jobs in options.storage_jobs:
        for dependencies in (0, 1):
            cells, counts = stored_row(jobs, dependencies)
            rows.append(cells)
            for name, count in counts.items():
                numbers.setdefault(name, []).append(count)
    head = (
        "jobs",
        "dependencies of a job",
        "B/job planned",
        "B/job ended",
        "store, CPU µs/job",
        "run, CPU µs/job",
        "count, ms",
    )
    yield Table("storage", head, rows)
    named = sorted(name for name, counts in numbers.items() if max(counts) >= 0.1)
    yield Table(
        "rows",
        ("table", "rows per job, without and with a dependency"),
        [[f"`{name}`", " and ".join(f"{count:.2f}" for count in numbers[name][-2:])] for name in named],
    )


def stored_row(jobs: int, dependencies: int) -> tuple[list[str], dict[str, float]]:
    """Store a workflow and run it to its end; return its row, and how many rows of each table a job has."""
    width = max(1, jobs // LEVELS)
    pairs = ((job, job - width) for job in range(width, jobs)) if dependencies else ()
    with one_server() as (server, database):
        server.store(WARM_JOBS)
        empty, empty_rows = database_bytes(database), row_counts(database)
        before = server.cpu()
        workflow_id = server.store(jobs, pairs)
        planned, stored_cpu = database_bytes(database) - empty, server.cpu() - before
        count_ms = counting_ms(server, workflow_id)
        fleet, _, run_cpu = asyncio.run(run_fleet([server], [workflow_id], 1, BATCH))
        ended = database_bytes(database) - empty
        counts = {name: (count - empty_rows[name]) / jobs for name, count in row_counts(database).items()}
    check(fleet, jobs)
    cells = [f"{jobs:,}", str(dependencies), *(f"{size / jobs:,.0f}" for size in (planned, ended))]
    cells += [f"{1e6 * cpu / jobs:.0f}" for cpu in (stored_cpu, run_cpu)]
    return [*cells, f"{count_ms:.1f}"], counts


def counting_ms(server: Server, workflow_id: int) -> float:
    """Return how long the server takes to count the jobs of a workflow by status, the median of some calls."""
    with make_api(server.url) as client:
        seconds = []
        for _ in range(COUNTINGS):
            begin = time.perf_counter()
            client.job_counts(workflow_id)
            seconds.append(time.perf_counter() - begin)
    return quantile_ms(seconds, 0.5)


def database_bytes(database: str) -> int:
    """Return the size of a database's pages."""
    with sqlite3.connect(database) as connection:
        return int(
            connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()[0]
        )


def row_counts(database: str) -> dict[str, int]:
    """Return the number of rows of each table."""
    with sqlite3.connect(database) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {name: int(connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]) for (name,) in names}


# --- files -----------------------------------------------------------------------------------------------------------


def files(options: argparse.Namespace) -> Iterator[Table]:
    """Run real jobs that print a line, and count the files that are left in the output directory."""
    rows = []
    for name, setting in STDIO.items():
        with one_server() as (server, database):
            folder = Path(database).parent
            run_jobs(server, folder, options.files_jobs, setting)
            left = [path.stat() for path in (folder / "output").rglob("*") if path.is_file()]
        cells = [len(left) / options.files_jobs]
        cells += [sum(found.st_size for found in left) / options.files_jobs]
        cells += [512 * sum(found.st_blocks for found in left) / options.files_jobs]
        rows.append([f"`{name}`", f"{cells[0]:.1f}", f"{cells[1]:,.0f}", f"{cells[2]:,.0f}"])
    yield Table("files", ("`stdio`", "files per job", "B/job of content", "B/job on disk"), rows)


def run_jobs(server: Server, folder: Path, jobs: int, setting: dict[str, object]) -> None:
    """Run jobs that print a line, with ``torc run``."""
    listed = [{"name": f"job_{number}", "command": "echo done"} for number in range(jobs)]
    (folder / "files.json").write_text(json.dumps({"name": "files", "shell": "sh", "jobs": listed, **setting}))
    environment = os.environ | {"TORC_API_URL": server.url, "HOME": str(folder)}
    command = [TORC, "run", "files.json", "--max-parallel-jobs", "4"]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


# --- waiting ---------------------------------------------------------------------------------------------------------


def waiting(options: argparse.Namespace) -> Iterator[Table]:
    """Measure what waiting runners cost, and how soon all have a job when one end makes many ready."""
    head = ("runners", "memory, KiB each", "CPU ms/minute each", "CPU ms for one ready job", "all have a job after s")
    rows = [asyncio.run(waiting_row(count, options.waiting_seconds)) for count in options.waiting_runners]
    yield Table("waiting", head, rows)


async def waiting_row(runners: int, seconds: float) -> list[str]:
    """Let runners wait, give them single jobs, then as many jobs at once as there are runners."""
    with one_server("--connections-per-address", "0") as (server, _):
        # the first jobs have one dependent each, the last of them has as many as there are runners
        gates = SINGLE_ENDS + 1
        pairs = [(gates + number, min(number, SINGLE_ENDS)) for number in range(SINGLE_ENDS + runners)]
        workflow_id = server.store(gates + len(pairs), pairs)
        fleet = FleetRecord()
        ends = SimulatedRunner([server.port], workflow_id, fleet, gates)
        await ends.register()
        claimed = await ends.claim()
        before = server.memory_kib()
        members = [SimulatedRunner([server.port], workflow_id, fleet) for _ in range(runners)]
        tasks = await start(members)
        memory = (server.memory_kib() - before) / runners
        idle_cpu = await cpu_during(server, seconds)
        begin, cpu = time.monotonic(), server.cpu()
        for job_id in claimed[:SINGLE_ENDS]:
            await ends.report([job_id])
            await asyncio.sleep(WAIT_S / SINGLE_ENDS)  # in all as long as a call waits, so that each is renewed once
        used = server.cpu() - cpu - idle_cpu * (time.monotonic() - begin) / seconds
        for member in members:
            member.keeps_jobs = True
        begin = time.monotonic()
        await ends.report(claimed[SINGLE_ENDS:])
        await asyncio.gather(*tasks)
        delay = time.monotonic() - begin
    check(fleet, SINGLE_ENDS + runners)
    each = 60_000 * idle_cpu / seconds / runners
    return [f"{runners:,}", f"{memory:.0f}", f"{each:.1f}", f"{1000 * used / SINGLE_ENDS:.1f}", f"{delay:.2f}"]


async def start(members: Sequence[SimulatedRunner]) -> list[asyncio.Task[None]]:
    """Let runners begin to work; return when they wait."""
    for member in members:
        await member.register()
    tasks = [asyncio.create_task(member.work()) for member in members]
    await asyncio.sleep(SETTLE_S + len(members) / 500)
    return tasks


async def cpu_during(server: Server, seconds: float) -> float:
    """Return the CPU seconds that a server uses in a time."""
    before = server.cpu()
    await asyncio.sleep(seconds)
    return server.cpu() - before


# --- working ---------------------------------------------------------------------------------------------------------


@dataclass
class Load:
    """One row of `working`.

    Attributes:
        slots: Jobs that a runner claims and reports in one call.
    """

    database: str
    servers: int
    workflows: int
    runners: int
    slots: int = 1


def working(options: argparse.Namespace) -> Iterator[Table]:
    """Measure how many jobs a second servers hand out and store the ends of, to runners whose jobs take no time."""
    most = max(options.working_runners)
    loads = [Load("SQLite", 1, 1, runners) for runners in options.working_runners]
    loads += [Load("SQLite", 1, 10, most), Load("SQLite", 1, 1, most, 16)]
    if options.postgresql and not has_postgres():
        print("PostgreSQL is not installed: its rows are left out", file=sys.stderr)
    elif options.postgresql:
        for servers in (1, 3):
            loads += [Load("PostgreSQL", servers, 1, runners) for runners in options.working_runners]
            loads += [Load("PostgreSQL", servers, 10, most), Load("PostgreSQL", servers, 1, most, 16)]
    head = ("database", "servers", "workflows", "runners", "jobs per call", "jobs/s", "CPU µs/job", "p50 ms", "p99 ms")
    yield Table("working", head, [working_row(load, options) for load in loads])


def working_row(load: Load, options: argparse.Namespace) -> list[str]:
    """Let runners work for some time; return the row."""
    database = sqlite_database() if load.database == "SQLite" else postgres_database()
    with ExitStack() as stack:
        url = stack.enter_context(database)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torc-fleet-")))
        servers = [stack.enter_context(running_server(folder, url)) for _ in range(load.servers)]
        ids = [servers[0].store(options.working_jobs // load.workflows) for _ in range(load.workflows)]
        work = run_fleet(servers, ids, load.runners, load.slots, options.working_seconds)
        fleet, seconds, cpu = asyncio.run(work)
    check(fleet)
    jobs = max(1, len(fleet.reported))
    cells = [load.database, str(load.servers), str(load.workflows), str(load.runners), str(load.slots)]
    cells += [f"{jobs / seconds:,.0f}", f"{1e6 * cpu / jobs:,.0f}"]
    return [*cells, f"{fleet.quantile_ms(0.5):.1f}", f"{fleet.quantile_ms(0.99):.1f}"]


async def run_fleet(
    servers: Sequence[Server], workflow_ids: Sequence[int], runners: int, slots: int, seconds: float = float("inf")
) -> tuple[FleetRecord, float, float]:
    """Let runners work, spread over servers and workflows, until all is done or the time is over.

    Returns:
        What they have seen, and the wall time and the servers' CPU time without the registration; seconds.
    """
    fleet = FleetRecord()
    members = []
    for number in range(runners):
        port, place = servers[number % len(servers)].port, number // len(servers) % len(workflow_ids)
        members.append(SimulatedRunner([port], workflow_ids[place], fleet, slots))
    for member in members:
        await member.register()
    begin, before = time.monotonic(), sum(server.cpu() for server in servers)
    await asyncio.gather(*(member.work(seconds) for member in members))
    return fleet, time.monotonic() - begin, sum(server.cpu() for server in servers) - before


def check(fleet: FleetRecord, jobs: int | None = None) -> None:
    """Check that no attempt was handed out twice, no call failed, and as many jobs were handed out as expected.

    Raises:
        RuntimeError: that is not so.
    """
    if fleet.doubles or fleet.failures or (jobs is not None and len(fleet.taken) != jobs):
        raise RuntimeError(f"{fleet.doubles} doubles, {len(fleet.taken)} of {jobs} jobs, {dict(fleet.failures)}")


SECTIONS: dict[str, Callable[[argparse.Namespace], Iterator[Table]]] = {
    "storage": storage,
    "files": files,
    "waiting": waiting,
    "working": working,
}


def numbers_of(text: str) -> list[int]:
    """Return the numbers in a text, which commas separate."""
    return [int(part) for part in text.split(",")]


def main() -> None:
    """Measure the sections that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help=f"sections (all): {', '.join(SECTIONS)}")
    parser.add_argument("--storage-jobs", type=numbers_of, default=[1000, 10_000, 100_000], metavar="N,N")
    parser.add_argument("--files-jobs", type=int, default=1000, metavar="N")
    parser.add_argument("--waiting-runners", type=numbers_of, default=[10, 100, 1000], metavar="N,N")
    parser.add_argument("--waiting-seconds", type=float, default=60.0, metavar="S", help="time that runners wait")
    parser.add_argument("--working-runners", type=numbers_of, default=[1, 10, 100, 300], metavar="N,N")
    parser.add_argument("--working-jobs", type=int, default=50_000, metavar="N", help="ready jobs at the begin")
    parser.add_argument("--working-seconds", type=float, default=6.0, metavar="S", help="longest time of a row")
    parser.add_argument("--no-postgresql", dest="postgresql", action="store_false", help="leave out its rows")
    parser.add_argument("--write", type=Path, metavar="FILE", help="Markdown page whose tables are replaced")
    options = parser.parse_args()
    for name in options.sections or SECTIONS:
        for table in SECTIONS[name](options):
            text = render(table.head, table.rows)
            print(f"{text}\n", flush=True)
            if options.write:
                replace(options.write, table.name, text)


if __name__ == "__main__":
    main()
