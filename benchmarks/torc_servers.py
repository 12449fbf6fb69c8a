"""The servers that benchmarks start, each with a database of its own, and the CPU time and memory that they use."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from torc_framework.api import make_api
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord

HERE = Path(__file__).parent
API = "/torc-service/v1"
PORT_LINE = "TORC_SERVER_PORT="
TICKS = os.sysconf("SC_CLK_TCK")
TORC_SERVER = Path(sys.executable).with_name("torc-server")
TESTS_HELPERS = HERE.parent / "tests" / "helpers"
"""Folder of the module that starts a PostgreSQL server."""
sys.path.append(str(TESTS_HELPERS))


@dataclass
class Server:
    """A torc server of our own."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}{API}"

    def cpu(self) -> float:
        """CPU seconds that it and its worker processes have used."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/children")  # a child belongs to the thread that made it
        children = [int(pid) for thread in threads for pid in thread.read_text().split()]
        return cpu_s(self.pid) + sum(map(cpu_s, children))

    def memory_kib(self) -> int:
        """Memory of its process without workers, as VmRSS of proc(5) counts it."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    def store(self, jobs: int, dependencies: Iterable[tuple[int, int]] = ()) -> int:
        """Store a workflow of jobs ``true``, and begin its first run; return its id.

        Args:
            jobs: Number of jobs.
            dependencies: Pairs of positions, of a job and of the job that it waits for.
        """
        planned = [PlannedJob(f"job_{number}", "true") for number in range(jobs)]
        plan = Plan(WorkflowRecord(name="measured", user="bench"), planned, list(dependencies))
        with make_api(self.url) as client:
            return client.create_from_plan(plan, initialize=True).id


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, and of its children that have ended (proc(5), utime to cstime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


@contextmanager
def running_server(folder: Path, database: str, *options: str) -> Iterator[Server]:
    """Run a server of a database on a free port of loopback.

    Args:
        folder: Its home directory.
        database: Path or URL of the database.
        options: Further options of ``torc-server run``.
    """
    command = [TORC_SERVER, "run", "--host", "127.0.0.1", "--port", "0", "--log-level", "error", *options]
    environment = {**os.environ, "DATABASE_URL": database, "HOME": str(folder)}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if not line.startswith(PORT_LINE):
            raise RuntimeError("the server has not started")
        try:
            yield Server(int(line.removeprefix(PORT_LINE)), process.pid)
        finally:
            process.terminate()


@contextmanager
def sqlite_database() -> Iterator[str]:
    """Yield the path of a new database."""
    with tempfile.TemporaryDirectory(prefix="torc-bench-") as folder:
        yield f"{folder}/torc.db"


def has_postgres() -> bool:
    """Return whether the programs of a PostgreSQL server are installed."""
    from postgres_server import installed_programs

    return installed_programs() is not None


@contextmanager
def postgres_database(distance_ms: float = 0.0) -> Iterator[str]:
    """Yield the URL of a new database on a PostgreSQL server of its own.

    Args:
        distance_ms: Time that a relay in front of it adds to a round trip, milliseconds; 0 uses no relay.
    """
    from postgres_server import OWNER, running_postgres

    with ExitStack() as stack:
        url = stack.enter_context(stack.enter_context(running_postgres()).database())
        if distance_ms:
            head, _, folder = url.partition("?host=")
            program = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torc-relay-")), "delayed_relay")
            compiler = shutil.which("cc") or "cc"
            subprocess.run([compiler, "-O2", "-o", program, HERE / "delayed_relay.c"], check=True)
            command = [program, f"{folder}/.s.PGSQL.5432", str(distance_ms)]
            relay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            stack.callback(relay.wait)
            stack.callback(relay.terminate)
            assert relay.stdout is not None
            url = f"postgresql://{OWNER}@127.0.0.1:{int(relay.stdout.readline())}/{head.rpartition('/')[2]}"
        yield url
