"""Measure how many claims of one job a second servers answer when many clients ask at the same time.

The clients are coroutines of one process on the same machine, on connections that stay open. Each row has its own
database; a PostgreSQL server is started for it, and thrown away in the end. With ``--distance-ms`` a relay delays what
the servers and PostgreSQL say to each other. CPU time is that of the servers' processes, without PostgreSQL.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from claim_clients import claim_all
from torc_servers import postgres_database, running_server, sqlite_database

OPERATIONS = ("claim_next_jobs", "claim_jobs_based_on_resources", "exchange")


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
        servers = [stack.enter_context(running_server(folder, database)) for _ in range(servers_count)]
        ids = [servers[0].store(options.jobs // workflows) for _ in range(workflows)]
        before = sum(server.cpu() for server in servers)
        ports = [server.port for server in servers]
        claims, seconds = asyncio.run(claim_all(ports, operation, ids, options.clients, options.seconds))
        cpu = sum(server.cpu() for server in servers) - before
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
