"""Measure how many claims of one job a second servers answer when many clients ask at the same time.

The clients are coroutines of one process on the same machine, on connections that stay open. Each row has its own
database; a PostgreSQL server is started for it, and thrown away in the end. With ``--distance-ms`` a relay delays what
the servers and PostgreSQL say to each other. CPU time is that of the servers' processes, without PostgreSQL.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from claim_clients import API, claim_all

HERE = Path(__file__).parent
OPERATIONS = ("claim_next_jobs", "claim_jobs_based_on_resources", "exchange")
PORT_LINE = "TORC_SERVER_PORT="


class Server:
    """A running server.

    Attributes:
        port: Its port.
    """

    def __init__(self, folder: Path, database: str) -> None:
        program = [sys.executable, "-m", "torc_framework.cli.programs.torc_server"]
        options = ["--host", "127.0.0.1", "--port", "0", "--log-level", "warning"]
        environment = {**os.environ, "DATABASE_URL": database, "HOME": str(folder)}
        self._process = subprocess.Popen(
            [*program, "run", *options], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().removeprefix(PORT_LINE))
        urllib.request.urlopen(f"http://127.0.0.1:{self.port}{API}/ping", timeout=60).close()

    def cpu_s(self) -> float:
        """Return the CPU seconds of the process so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()

    def workflow(self, jobs: int) -> int:
        """Store a workflow of ready jobs; return its id."""
        plan = {
            "workflow": {"name": "claims", "user": "bench"},
            "jobs": [{"name": f"job_{n}", "command": "true"} for n in range(jobs)],
        }
        call = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{API}/workflows/from_plan?initialize=true",
            json.dumps(plan).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(call) as answer:
            return int(json.load(answer)["id"])


@contextmanager
def sqlite_database() -> Iterator[str]:
    """Yield the path of a new database."""
    with tempfile.TemporaryDirectory(prefix="torc-claims-") as folder:
        yield f"{folder}/torc.db"


@contextmanager
def postgres_database(distance_ms: float) -> Iterator[str]:
    """Yield the URL of a new database on a PostgreSQL server of its own, behind a relay if it is distant."""
    sys.path.insert(0, str(HERE.parent / "tests" / "helpers"))
    from postgres_server import OWNER, running_postgres

    with ExitStack() as stack:
        url = stack.enter_context(stack.enter_context(running_postgres()).database())
        if distance_ms:
            head, _, folder = url.partition("?host=")
            command = [sys.executable, HERE / "delayed_relay.py", f"{folder}/.s.PGSQL.5432", str(distance_ms)]
            relay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            stack.callback(relay.wait)
            stack.callback(relay.terminate)
            assert relay.stdout is not None
            url = f"postgresql://{OWNER}@127.0.0.1:{int(relay.stdout.readline())}/{head.rpartition('/')[2]}"
        yield url


def round_trip_ms(url: str) -> float:
    """Return how long the database takes to answer a query that does nothing."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        times = []
        for _ in range(50):
            begin = time.perf_counter()
            connection.execute("SELECT 1")
            times.append(time.perf_counter() - begin)
    return 1000 * sorted(times)[25]


def measure(options: argparse.Namespace, operation: str, servers_count: int, workflows: int) -> str:
    """Return the line of one row."""
    with ExitStack() as stack:
        is_sqlite = options.database == "sqlite"
        database = stack.enter_context(sqlite_database() if is_sqlite else postgres_database(options.distance_ms))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torc-claims-")))
        servers = []
        for _ in range(servers_count):
            servers.append(Server(folder, database))
            stack.callback(servers[-1].end)
        ids = [servers[0].workflow(options.jobs // workflows) for _ in range(workflows)]
        before = sum(server.cpu_s() for server in servers)
        ports = [server.port for server in servers]
        claims, seconds = asyncio.run(claim_all(ports, operation, ids, options.clients, options.seconds))
        cpu = sum(server.cpu_s() for server in servers) - before
        distance = "" if is_sqlite else f"{round_trip_ms(database):.1f}"
    for failure, count in claims.failures.most_common(5):
        print(f"{count} x {failure}", file=sys.stderr)
    total = len(claims.taken)
    cells = [options.database, distance, operation, str(servers_count), str(workflows), str(options.clients)]
    cells += [str(total), f"{total / seconds:.0f}", f"{claims.quantile_ms(0.5):.1f}", f"{claims.quantile_ms(0.99):.1f}"]
    cells += [f"{1e6 * cpu / max(1, total):.0f}", str(claims.doubles), str(sum(claims.failures.values()))]
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "| database | ms away | operation | servers | workflows | clients | claims | claims/s | p50 ms | p99 ms "
    "| CPU µs/claim | doubles | failures |\n" + "|---" * 13 + "|"
)


def main() -> None:
    """Measure the rows that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--distance-ms", type=float, default=0.0, help="round trip to PostgreSQL, milliseconds")
    parser.add_argument("--operation", choices=OPERATIONS, action="append", help="may be repeated; default: all")
    parser.add_argument("--servers", type=int, action="append", help="number of servers; may be repeated; default: 1")
    parser.add_argument("--workflows", type=int, action="append", help="number of workflows; may be repeated")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=100_000, help="ready jobs at the begin, of all workflows together")
    parser.add_argument("--seconds", type=float, default=30.0, help="longest time of one row")
    options = parser.parse_args()
    print(HEAD)
    for operation in options.operation or OPERATIONS:
        for workflows in options.workflows or [1]:
            for servers in options.servers or [1]:
                print(measure(options, operation, servers, workflows), flush=True)


if __name__ == "__main__":
    main()
