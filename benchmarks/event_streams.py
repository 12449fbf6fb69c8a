"""Measure what event streams cost: CPU time of the server and of ``torc-dash`` for an event that a reader gets.

A row has some workflows, and some readers of each. Events are stored at a rate for each workflow, one by one through
the server, as those of running jobs, or in bursts by another process on the same database, twice a second. "sent" are
the events that readers got one by one, "counted" those of which they got numbers only. "CPU" is the time of a process
for each second of the row; 100 % is one core. The server's includes that of storing events one by one; a row of no
readers shows it. "age" is that of the oldest of some events that a reader got.
"""

import argparse
import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from simulated_runner import Connection
from torc_servers import Server, cpu_s, running_server

from torc_framework.store.database.opening import open_database
from torc_framework.store.records.events import TransactionEvents

TORC_DASH: Final = Path(sys.executable).with_name("torc-dash")
BURST_S: Final = 0.5
"""Seconds between two bursts of another process, as between a server's looks for such changes."""
MOST_ONE_BY_ONE: Final = 400.0
"""Events a second that a server stores one by one beside its streams."""
WARM_UP_S: Final = 2.0
"""Seconds after the first reader's beginning that are not measured."""
ROWS: Final = ((1, 0), (1, 1), (1, 8), (1, 64), (8, 8), (32, 0), (32, 1), (32, 2))
"""Numbers of workflows, and of readers of each; a person may read 32 workflows, and have 64 streams."""


@dataclass
class Row:
    """What the readers of one row got.

    Attributes:
        is_measured: The warm-up is over.
    """

    sent: int = 0
    counted: int = 0
    resyncs: int = 0
    received: int = 0
    is_measured: bool = False
    ages_s: list[float] = field(default_factory=list)

    def take(self, frame: bytes) -> None:
        """Count one frame."""
        if not self.is_measured:
            return
        self.received += len(frame)
        if frame.startswith(b"event: counts\n"):
            self.counted += sum(json.loads(frame.partition(b"data: ")[2])["by_type"].values())
        elif frame.startswith(b"event: resync\n"):
            self.resyncs += 1
        elif frame.startswith(b"data: "):
            self.sent += 1
            if self.sent % 100 == 0 and (stamp := re.search(rb'"timestamp":(\d+)', frame)):
                self.ages_s.append(time.time() - int(stamp[1]) / 1000)


@dataclass
class Dash:
    """A ``torc-dash`` of our own."""

    port: int
    pid: int
    token: str

    async def read(self, workflow_id: int, row: Row) -> None:
        """Read the events of a workflow as a browser that the owner uses."""
        cookie = await self._log_in()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = f"GET /dash/events?workflows={workflow_id} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n"
        writer.write(head.encode())
        try:
            while (frame := await reader.readuntil(b"\n\n")) is not None:
                row.take(re.sub(rb"^(?:\r\n)?[0-9a-f]+\r\n", b"", frame))  # without the beginning of a chunk
        finally:
            writer.close()

    async def _log_in(self) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET /?token={self.token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.close()
        found = re.search(r"set-cookie: ([^;]+)", head, re.IGNORECASE)
        assert found is not None, head
        return found[1]


@contextmanager
def running_dash(folder: Path, server: Server) -> Iterator[Dash]:
    """Run ``torc-dash`` in front of a server."""
    token = secrets.token_urlsafe(16)
    environment = {**os.environ, "HOME": str(folder), "TORC_DASH_TOKEN": token}
    command = [TORC_DASH, "--port", "0", "--api-url", server.url]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            printed = next(line for line in process.stdout if line.startswith("Dashboard: "))
            yield Dash(urlsplit(printed.removeprefix("Dashboard: ").strip()).port or 0, process.pid, token)
        finally:
            process.terminate()


async def store_one_by_one(port: int, workflow_id: int, rate: float) -> None:
    """Store events through the server, each with a request of its own."""
    connection, begin, number = Connection(port), time.monotonic(), 0
    data = {"event_type": "job_completed", "job_name": "train_000123", "status": "completed", "return_code": 0}
    try:
        while True:
            await connection.json("POST", "/events", {"workflow_id": workflow_id, "data": {**data, "job_id": number}})
            number += 1
            await asyncio.sleep(max(0.0, begin + number / rate - time.monotonic()))
    finally:
        connection.close()


@contextmanager
def bursts(database: str, workflow_ids: list[int], rate: float) -> Iterator[None]:
    """Store events as another server on the same database does, in a thread."""
    is_over = threading.Event()

    def store() -> None:
        begin, done = time.monotonic(), 0
        while not is_over.wait(max(0.0, begin + done * BURST_S - time.monotonic())):
            done += 1
            with opened.write() as tx:
                for workflow_id in workflow_ids:
                    events = TransactionEvents(workflow_id)
                    for number in range(int(rate * BURST_S)):
                        events.add(
                            "job_completed", job_id=number, job_name="train_000123", status="completed", return_code=0
                        )
                    events.write(tx)

    with closing(open_database(database)) as opened:
        thread = threading.Thread(target=store)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


async def measure_row(server: Server, dash: Dash, ids: list[int], readers: int, *, rate: float, seconds: float) -> str:
    """Return a row of the table; with a rate of 0 nothing is stored here."""
    row = Row()
    reading = [asyncio.create_task(dash.read(id_, row)) for id_ in ids for _ in range(readers)]
    storing = [asyncio.create_task(store_one_by_one(server.port, id_, rate)) for id_ in ids if rate]
    await asyncio.sleep(WARM_UP_S)
    row.is_measured, begin = True, time.monotonic()
    before = server.cpu(), cpu_s(dash.pid)
    await asyncio.sleep(seconds)
    wall = time.monotonic() - begin
    used = server.cpu() - before[0], cpu_s(dash.pid) - before[1]
    row.is_measured = False
    for task in (*reading, *storing):
        task.cancel()
    endings = await asyncio.gather(*reading, *storing, return_exceptions=True)
    failed = [str(ending) for ending in endings if not isinstance(ending, asyncio.CancelledError)]
    got = row.sent + row.counted
    cost = f"{1e6 * used[1] / got:.0f}" if got else ""
    age = f"{1000 * max(row.ages_s):.0f}" if row.ages_s else ""
    cells = [len(ids), readers, f"{row.sent / wall:,.0f}", f"{row.counted / wall:,.0f}", row.resyncs]
    cells += [f"{100 * used[0] / wall:.0f} %", f"{100 * used[1] / wall:.0f} %", cost, age]
    return "| " + " | ".join(map(str, cells)) + f" | {failed[0] if failed else ''}"


HEAD: Final = (
    "| workflows | readers of each | sent/s | counted/s | resyncs | server | dash | dash, us an event | age, ms |"
)


def print_head(title: str) -> None:
    """Print the head of a table."""
    rule = "---".join("|" * HEAD.count("|"))
    print(f"\n{title}\n\n{HEAD}\n{rule}", flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds of a row (default: 10)")
    parser.add_argument("--rate", type=float, default=180.0, help="events a second of a workflow (default: 180)")
    parser.add_argument("--only", type=int, nargs=2, metavar=("WORKFLOWS", "READERS"), help="measure only this row")
    asked = parser.parse_args()
    rows = [tuple(asked.only)] if asked.only else ROWS
    with tempfile.TemporaryDirectory(prefix="torc-bench-") as name:
        folder, database = Path(name), f"{name}/torc.db"
        with running_server(folder, database) as server, running_dash(folder, server) as dash:
            ids = [server.store(1) for _ in range(max(workflows for workflows, _ in rows))]
            print_head(f"Stored one by one, {asked.rate:g} events/s of each workflow")
            for workflows, readers in rows:
                if workflows * asked.rate <= MOST_ONE_BY_ONE:
                    print(
                        asyncio.run(
                            measure_row(server, dash, ids[:workflows], readers, rate=asked.rate, seconds=asked.seconds)
                        )
                    )
            print_head(f"In bursts of another process, {asked.rate:g} events/s of each workflow")
            for workflows, readers in rows:
                with bursts(database, ids[:workflows], asked.rate):
                    print(
                        asyncio.run(measure_row(server, dash, ids[:workflows], readers, rate=0, seconds=asked.seconds)),
                        flush=True,
                    )


if __name__ == "__main__":
    main()
