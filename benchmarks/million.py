"""Measure the commands that read, create and delete a very large workflow.

The columns are wall time, and CPU time and largest memory of the command and of the server.

Run it with the Python of the environment that ``torc`` is installed in. The workflow has jobs of all statuses in chains
of 100, with a result for each job that has ended.
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from markdown_tables import render, replace
from specs import LEVELS, levels

from torc_framework.client import TorcClient
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.plan_parts import parts_of
from torc_framework.models.records import ResourceRequirementsRecord, WorkflowRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.opening import open_database
from torc_framework.store.database.sql import Tx, insertion
from torc_framework.store.records.events import utc_text
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.plans import store_plan

TORC: Final = Path(sys.executable).with_name("torc")
TORC_SERVER: Final = Path(sys.executable).with_name("torc-server")
TICKS: Final = os.sysconf("SC_CLK_TCK")
POLL_S: Final = 0.05
RESET_PEAK: Final = "5"
"""Written to ``/proc/PID/clear_refs``, it makes the present memory the peak (proc(5))."""
FAILING: Final = 4
"""One of this many chains fails in its middle."""
FAILURES: Final = (
    (1, 1, "user_error", "exit code 1"),
    (2, 2, "user_error", "exit code 2"),
    (137, None, "oom", "the memory that it requests ran out"),
    (152, None, "timeout", "it reached its time limit"),
)
"""Return code, exit code, class and reason of each kind of failure; the chains have them in turn."""
ROWS: Final[tuple[tuple[str, ...], ...]] = (
    ("workflows", "list"),
    ("status", "1"),
    ("jobs", "list", "1"),
    ("results", "list", "1"),
    ("jobs", "list", "1", "--status", "failed"),
    ("explain", "1"),
    ("why-failed", "1"),
    ("reports", "summary", "1"),
    ("reports", "check-resource-utilization", "1"),
    ("job-dependencies", "job-job", "1"),
    ("jobs", "list-by-status", "1"),
    ("workflows", "create", "spec.json"),
    ("workflows", "export", "1", "--output", "export.json"),
    ("results", "list", "1", "--limit", "0", "-f", "json"),
    ("reports", "results", "1", "--output-dir", "."),
    ("workflows", "delete", "--no-prompts", "--force", "1"),
)
"""Commands that are measured, in this order."""
LEFT_OUT: Final = ("1", "--output-dir", ".", "--output", "export.json", "--no-prompts", "--force")
"""Words of commands that the table leaves out."""
HEAD: Final = ("command", "s", "CPU s, command", "CPU s, server", "MiB, command", "MiB, server")
_INSERT_RESULTS: Final = insertion(
    t.RESULT,
    *("id", "job_id", "workflow_id", "run_id", "attempt_id", "compute_node_id", "return_code", "exec_time_minutes"),
    *("completion_time", "status", "peak_memory_bytes", "exit_code", "exit_class", "reason"),
)


@dataclass
class Server:
    """A torc server of our own."""

    url: str
    pid: int

    def cpu(self) -> float:
        """CPU seconds that it and its workers have used."""
        return sum(self._cpu(pid) for pid in (self.pid, *self._workers()))

    def _cpu(self, pid: int) -> float:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # the worker has just ended
            return 0.0
        return sum(map(int, fields[11:15])) / TICKS  # with the children that have ended (proc(5))

    def _workers(self) -> list[int]:
        lists = Path(f"/proc/{self.pid}/task").glob("*/children")
        return [int(pid) for each in lists for pid in each.read_text().split()]

    def reset_peak(self) -> None:
        """Forget the largest memory so far."""
        Path(f"/proc/{self.pid}/clear_refs").write_text(RESET_PEAK)

    def peak_mib(self) -> int:
        """Its largest memory since `reset_peak`, and that of its workers so far, MiB."""
        return sum(_peak_mib(pid) for pid in (self.pid, *self._workers()))


def _peak_mib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # the worker has just ended
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:")), 0)


@contextmanager
def running_server(database: str) -> Iterator[Server]:
    """Run a server of a database on a free port of loopback; wait until it answers."""
    command = [TORC_SERVER, "run", "--host", "127.0.0.1", "--port", "0", "--database", database]
    with subprocess.Popen([*command, "--log-level", "error"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip().removeprefix("TORC_SERVER_PORT=")
        url = f"http://127.0.0.1:{port}/torc-service/v1"
        try:
            with TorcClient(url) as client:
                client.ping()
            yield Server(url, process.pid)
        finally:
            process.terminate()


def fill(database: str, count: int, name_of: Callable[[int], str] = "job_{}".format) -> None:
    """Store a workflow of ``count`` jobs in a database.

    Args:
        database: File or URL; it is made if it does not exist.
        count: Number of jobs.
        name_of: Returns the name of a job by its position.
    """
    opened = open_database(database)
    width = max(1, count // LEVELS)
    plan = Plan(
        WorkflowRecord(name="million", user="bench"),
        [PlannedJob(name_of(n), "true", resource_requirements=n % 3) for n in range(count)],
        [(n, n - width) for n in range(width, count)],
        resource_requirements=[
            ResourceRequirementsRecord(workflow_id=0, name=f"size{n}", num_cpus=n, memory=f"{n}g") for n in (1, 2, 4)
        ],
    )
    try:
        with opened.write_bulk() as tx:
            stored = store_plan(tx, parts_of(plan), initialized=True)
            _run(tx, stored.workflow_id, stored.first["jobs"], count, width)
    finally:
        opened.close()


def _run(tx: Tx, workflow_id: int, first: int, count: int, width: int) -> None:
    """Let most jobs have ended: a chain of `FAILING` failed at its middle, the others came to their last tenth."""
    middle, last = width * (LEVELS // 2), width * (LEVELS * 9 // 10)
    place = t.JOB.c.id - first
    fails = (place % width) % FAILING == 0
    values = {
        JobStatus.COMPLETED: (place < middle) | ((place < last) & ~fails),
        JobStatus.FAILED: (place >= middle) & (place < middle + width) & fails,
        JobStatus.CANCELED: (place >= middle + width) & fails,
        JobStatus.READY: (place >= last) & (place < last + width) & ~fails,
    }
    for status, chosen in values.items():
        change = {"status": int(status), "blockers": 0, "failed_blockers": 0}
        if status is JobStatus.FAILED:
            change |= {"ended_badly": True}
        tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.workflow_id == workflow_id, chosen).values(change))
    node_id = tx.add(
        t.COMPUTE_NODE,
        workflow_id=workflow_id,
        hostname="node",
        pid=1,
        start_time=utc_text(),
        is_active=False,
        num_cpus=4,
        memory_gb=16.0,
        num_gpus=0,
        num_nodes=1,
        compute_node_type="local",
    )
    tx.connection.execute(sa.update(t.WORKFLOW_STATUS).where(t.WORKFLOW_STATUS.c.id == workflow_id).values(run_id=1))
    ended = (JobStatus.COMPLETED, JobStatus.FAILED)
    query = sa.select(t.JOB.c.id, t.JOB.c.status == int(JobStatus.FAILED)).where(t.JOB.c.status.in_(map(int, ended)))
    found = [(int(job_id), bool(failed)) for job_id, failed in tx.connection.execute(query)]
    start, now = tx.new_ids(t.RESULT, len(found)), utc_text()
    rows = []
    for result_id, (job_id, failed) in enumerate(found, start):
        code, exit_code, kind, reason = FAILURES[job_id % len(FAILURES)] if failed else (0, 0, "success", None)
        status = int(JobStatus.FAILED if failed else JobStatus.COMPLETED)
        ids = (result_id, job_id, workflow_id, 1, 1, node_id)
        rows.append((*ids, code, 0.01, now, status, (job_id % 1000) * 2**20, exit_code, kind, reason))
    tx.insert(_INSERT_RESULTS, rows)
    result = sa.select(t.RESULT.c.id).where(t.RESULT.c.job_id == t.JOB.c.id).scalar_subquery()
    tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.workflow_id == workflow_id).values(result_id=result))


def _write_spec(folder: Path, count: int) -> None:
    levels(folder, count)[0].rename(folder / "spec.json")


def measure(server: Server, folder: Path, command: tuple[str, ...]) -> list[str]:
    """Run one command; return its row.

    Raises:
        SystemExit: the command failed.
    """
    env = os.environ | {"TORC_API_URL": server.url, "HOME": str(folder)}
    server.reset_peak()
    before, begin = server.cpu(), time.perf_counter()
    with open(os.devnull, "w+b") as nothing, open(folder / "errors", "w+b") as errors:  # noqa: PTH123 - a device and a plain file
        process = subprocess.Popen([TORC, *command], cwd=folder, env=env, stdin=nothing, stdout=nothing, stderr=errors)
        peak = 0
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:  # a worker may end before the command
            peak = max(peak, server.peak_mib())
            time.sleep(POLL_S)
        _, status, used = ended
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"torc {' '.join(command)}: {(folder / 'errors').read_text(encoding='utf-8', errors='replace')}")
    times = (wall, used.ru_utime + used.ru_stime, server.cpu() - before)
    shown = " ".join(word for word in command if word not in LEFT_OUT)
    return [
        f"`torc {shown}`",
        *(f"{each:.1f}" for each in times),
        f"{used.ru_maxrss // 1024}",
        f"{max(peak, server.peak_mib())}",
    ]


def main() -> None:
    """Parse the arguments, make the database, measure each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="number of jobs (default: 1,000,000)")
    parser.add_argument("--database", help="SQLite file, or URL of an empty PostgreSQL database, to use (default: new)")
    parser.add_argument("--only", default="", help="measure only the commands that contain this text")
    parser.add_argument("--write", type=Path, metavar="FILE", help="Markdown page whose table is replaced")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="torc-million-") as made:
        folder = Path(made)
        database = asked.database or str(folder / "million.db")
        if "://" in database or not Path(database).exists():
            begin = time.perf_counter()
            filling = multiprocessing.Process(target=fill, args=(database, asked.jobs))
            filling.start()  # a process of its own: what this one has used would count as memory of its children
            filling.join()
            print(f"stored {asked.jobs} jobs in {time.perf_counter() - begin:.1f} s", flush=True)
        writing = multiprocessing.Process(target=_write_spec, args=(folder, asked.jobs))
        writing.start()
        writing.join()
        chosen = [command for command in ROWS if asked.only in " ".join(command)]
        rows = []
        for command in chosen:
            with running_server(database) as server:  # of its own: another keeps what the commands before have asked
                rows.append(measure(server, folder, command))
            print(*rows[-1], flush=True)
        print(table := render(HEAD, rows))
        if asked.write:
            replace(asked.write, "million", table)


if __name__ == "__main__":
    main()
