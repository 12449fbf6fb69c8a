"""Runners that only speak the protocol: they register, claim, report and wait over HTTP, and run no job.

Like the runner of ``torc run``, each has two connections, one for calls that report and one for the call that waits,
reports ends in the call that asks for the next jobs, reads the counts of jobs while it has none, and after a lost
answer lists what it holds. All runners of a
process are coroutines. docs/explanation/exchange-and-takeover.md describes the calls.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torc_servers import API

OFFER = {"num_cpus": 64, "memory_bytes": 2**38, "num_gpus": 0, "num_nodes": 1}
RECORD = {
    "hostname": "simulated",
    "pid": 1,
    "start_time": "2026-01-01T00:00:00.000Z",
    "is_active": True,
    "num_cpus": 64,
    "memory_gb": 256.0,
    "num_gpus": 0,
    "num_nodes": 1,
    "compute_node_type": "local",
}
"""The record of a simulated runner on the server, without its workflow."""
WAIT_S = 20.0
"""How long the server may hold a waiting call, as in the runner of ``torc run``."""
RETRY_PAUSE_S = 0.2
"""Pause after a call that failed."""


class RefusedError(Exception):
    """The server answered a call with another status than 200."""


FAILURES = (OSError, EOFError, asyncio.LimitOverrunError, RefusedError)
"""What a call raises that gets no answer, or a refusal."""


class Connection:
    """A connection that stays open, and is opened again after an error.

    Args:
        port: Port of the server, on loopback.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, method: str, path: str, content: object = None) -> tuple[int, bytes]:
        """Make one call; return the status and the body of the answer.

        Raises:
            OSError: there was no answer; an `EOFError` or ``LimitOverrunError`` of the stream says so, too.
        """
        if self._streams is not None and self._streams[0].at_eof():
            self.close()  # the server closes connections that were idle for long
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self._streams
        body = b"" if content is None else json.dumps(content).encode()
        head = f"{method} {API}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        try:
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            headers = (await reader.readuntil(b"\r\n\r\n")).lower()
            size = int(headers.partition(b"content-length: ")[2].partition(b"\r")[0])
            return int(headers[9:12]), await reader.readexactly(size)
        except (OSError, EOFError, asyncio.LimitOverrunError):
            self.close()
            raise

    async def json(self, method: str, path: str, content: object = None) -> Any:
        """Make one call; return the value of its answer.

        Raises:
            RefusedError: its status is not 200.
        """
        status, body = await self.call(method, path, content)
        if status != 200:
            raise RefusedError(f"{status} {body[:200].decode(errors='replace')}")
        return json.loads(body)

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def register(connection: Connection, workflow_id: int) -> int:
    """Make the record of a runner; return its id."""
    record = await connection.json("POST", "/compute_nodes", RECORD | {"workflow_id": workflow_id})
    return int(record["id"])


@dataclass
class FleetRecord:
    """What the runners of a fleet have seen.

    Attributes:
        taken: How often each attempt was handed out, by ids of job and attempt.
        reported: Jobs whose end the server has acknowledged.
        seconds: How long each answered call took that did not wait.
        failures: Calls without an answer, and answers with another status than 200.
    """

    taken: Counter[tuple[int, int]] = field(default_factory=Counter)
    reported: set[int] = field(default_factory=set)
    seconds: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def doubles(self) -> int:
        """Number of attempts that were handed out more than once."""
        return sum(count > 1 for count in self.taken.values())

    def quantile_ms(self, part: float) -> float:
        """Return the time within which this part of the calls was answered."""
        return quantile_ms(self.seconds, part)


def quantile_ms(seconds: Sequence[float], part: float) -> float:
    """Return the time within which this part of the calls was answered, milliseconds."""
    ordered = sorted(seconds)
    return 1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


class SimulatedRunner:
    """One runner of a workflow.

    Args:
        ports: Ports of the servers on one database; a call that fails is repeated at the next one.
        workflow_id: The workflow.
        fleet: Collects what the runner sees.
        slots: Number of jobs that it claims at once.
        num_cpus: Number of its CPUs.
        num_gpus: Number of its GPUs.
        wait_s: How long the server may hold a waiting call.

    Attributes:
        keeps_jobs: It ends as soon as it holds jobs, and does not report their ends.
    """

    def __init__(
        self,
        ports: Sequence[int],
        workflow_id: int,
        fleet: FleetRecord,
        slots: int = 1,
        *,
        num_cpus: int = 64,
        num_gpus: int = 0,
        wait_s: float = WAIT_S,
    ) -> None:
        self._ports, self._workflow_id, self._fleet, self._slots = list(ports), workflow_id, fleet, slots
        self._offer, self._wait_s = OFFER | {"num_cpus": num_cpus, "num_gpus": num_gpus}, wait_s
        self._reporter, self._waiter = Connection(self._ports[0]), Connection(self._ports[0])
        self._node = self._seq = 0
        self._held: list[dict[str, Any]] = []
        self._is_answer_lost = False
        self.keeps_jobs = False

    async def register(self) -> None:
        """Make its record on the server."""
        self._node = await register(self._reporter, self._workflow_id)

    async def work(self, seconds: float = float("inf")) -> None:
        """Claim jobs, report their ends and claim the next ones at once, and wait while there is none.

        It ends when the workflow is complete or the time is over.
        """
        until = time.monotonic() + seconds
        wait_s = 0.0
        try:
            while time.monotonic() < until:
                answer = await self._exchange_or_retry(wait_s)
                if answer is None:
                    wait_s = 0.0
                    continue
                if answer["is_complete"] or (self.keeps_jobs and self._held):
                    return
                wait_s = 0.0 if self._held else self._wait_s
        finally:
            self._reporter.close()
            self._waiter.close()

    async def claim(self) -> list[int]:
        """Claim jobs without a report; return their ids, in the order of the answer."""
        return [job["id"] for job in (await self._exchange(0.0, []))["jobs"]]

    async def report(self, job_ids: Sequence[int]) -> None:
        """Report ends of first attempts of jobs, and claim none."""
        await self._exchange(0.0, [ended(job_id, 1) for job_id in job_ids], slots=0)

    async def _exchange_or_retry(self, wait_s: float) -> dict[str, Any] | None:
        """Report the ends of what is held and ask for more; None after an error, and a pause."""
        try:
            answer = await self._exchange(wait_s, [ended(job["id"], job["attempt_id"]) for job in self._held])
        except FAILURES as error:
            self._fleet.failures[repr(error)[:100]] += 1
            self._is_answer_lost = True
            self._ports.append(self._ports.pop(0))
            self._reporter.close()
            self._waiter.close()
            self._reporter, self._waiter = Connection(self._ports[0]), Connection(self._ports[0])
            await asyncio.sleep(RETRY_PAUSE_S)
            return None
        self._is_answer_lost = False
        self._fleet.reported.update(job["id"] for job in self._held)
        self._fleet.taken.update((job["id"], job["attempt_id"]) for job in answer["jobs"])
        self._held = answer["jobs"]
        return answer

    async def _exchange(self, wait_s: float, ends: list[dict[str, Any]], slots: int | None = None) -> dict[str, Any]:
        self._seq += 1
        request = {
            "compute_node_id": self._node,
            "run_id": 1,
            "seq": self._seq,
            "slots": self._slots if slots is None else slots,
            "free": self._offer,
            "total": self._offer,
            "ended": ends,
            "wait_s": wait_s,
            "want_unfinished": not ends,
            "want_following": [],
        }
        if self._is_answer_lost:
            request["holding"] = [job["id"] for job in self._held]
        connection = self._waiter if wait_s else self._reporter
        begin = time.perf_counter()
        answer = await connection.json("POST", f"/workflows/{self._workflow_id}/exchange", request)
        if not wait_s:
            self._fleet.seconds.append(time.perf_counter() - begin)
        return {"jobs": [], "is_complete": False, **answer}


def ended(job_id: int, attempt_id: int) -> dict[str, Any]:
    """Return the report of a completed attempt, with what the executor ``local`` observes of ``true``."""
    now = time.time()
    observation = {
        "executor": "local",
        "exit_code": 0,
        "started_at": now - 0.004,
        "ended_at": now,
        "duration_s": 0.003795333000127357,
        "cpu_time_s": 0.0025919999999999997,
        "raw": {"peak_memory_below_bytes": 9846784},
    }
    return {
        "job_id": job_id,
        "attempt_id": attempt_id,
        "status": "completed",
        "return_code": 0,
        "exit_code": 0,
        "exit_class": "success",
        "reason": "exit code 0",
        "exec_time_s": 0.003795333000127357,
        "ended_at": now,
        "peak_cpu_percent": 68.14,
        "avg_cpu_percent": 68.14,
        "cpu_time_s": 0.0025919999999999997,
        "observation": observation,
    }
