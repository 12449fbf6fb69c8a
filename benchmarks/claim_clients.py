"""Clients that claim one job after another over HTTP, with as little work of their own as possible."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field

from simulated_runner import OFFER, Connection, quantile_ms, register

WORKER = {"num_cpus": 64, "memory_gb": 256.0, "num_gpus": 0, "num_nodes": 1}


@dataclass
class Claims:
    """What all clients of a row have seen.

    Attributes:
        taken: How often each job was handed out, by its id.
        seconds: How long each answered call took.
        failures: Answers with another status than 200, and lost connections.
    """

    taken: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)

    def quantile_ms(self, part: float) -> float:
        """Return the time within which this part of the calls was answered."""
        return quantile_ms(self.seconds, part)

    @property
    def doubles(self) -> int:
        """Number of jobs that were handed out more than once."""
        return sum(count > 1 for count in self.taken.values())


def request(operation: str, workflow_id: int, node: int, number: int) -> tuple[str, dict[str, object] | None]:
    """Return path and body of the call that claims one job."""
    if operation == "exchange":
        offer = {"compute_node_id": node, "run_id": 1, "seq": number, "slots": 1, "free": OFFER, "total": OFFER}
        return f"/workflows/{workflow_id}/exchange", offer
    if operation == "claim_next_jobs":
        return f"/workflows/{workflow_id}/claim_next_jobs?limit=1", None
    return f"/workflows/{workflow_id}/claim_jobs_based_on_resources/1", WORKER


async def client(port: int, operation: str, workflow_id: int, claims: Claims, until: float) -> None:
    """Claim jobs of a workflow until none is left or the time is over."""
    connection = Connection(port)
    node = await register(connection, workflow_id) if operation == "exchange" else 0
    number = 0
    while time.monotonic() < until:
        number += 1
        path, content = request(operation, workflow_id, node, number)
        begin = time.perf_counter()
        status, body = await connection.call("POST", path, content)
        claims.seconds.append(time.perf_counter() - begin)
        if status != 200:
            claims.failures[f"{status} {body[:100].decode()}"] += 1
            continue
        answer = json.loads(body)
        jobs = answer["jobs"]
        if not jobs:
            break
        claims.taken.update(job["id"] for job in jobs)
    connection.close()


async def claim_all(
    ports: list[int], operation: str, workflow_ids: list[int], clients: int, seconds: float
) -> tuple[Claims, float]:
    """Run the clients, spread over servers and workflows; return what they saw and the seconds that it took."""
    claims = Claims()
    begin = time.monotonic()
    until = begin + seconds
    running = (
        client(ports[n % len(ports)], operation, workflow_ids[n // len(ports) % len(workflow_ids)], claims, until)
        for n in range(clients)
    )
    results = await asyncio.gather(*running, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            claims.failures[repr(result)[:100]] += 1
    return claims, time.monotonic() - begin
