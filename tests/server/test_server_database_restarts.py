"""Tests of servers whose PostgreSQL database restarts while many runners work."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from postgres_server import PostgresServer
from simulated_runner import FleetRecord, SimulatedRunner
from torc_servers import Server, running_server

SERVERS = 3
RUNNERS = 20
JOBS = 1000


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """A fresh database."""
    with postgres.database() as made:
        yield made


@pytest.fixture
def servers(tmp_path: Path, url: str) -> Iterator[list[Server]]:
    """Servers of the database."""
    with ExitStack() as stack:
        yield [stack.enter_context(running_server(tmp_path, url)) for _ in range(SERVERS)]


@pytest.mark.crash
@pytest.mark.parametrize("fast", [True, False], ids=["fast", "immediate"])
def test_no_claim_is_lost_or_made_twice(servers: list[Server], url: str, postgres: PostgresServer, fast: bool) -> None:
    """The database ends and starts again in the middle of the run: every job runs once, and has one result."""
    workflow_id = servers[0].store(JOBS)
    fleet = asyncio.run(run_through_restart([server.port for server in servers], workflow_id, postgres, fast=fast))
    assert fleet.failures, "calls failed meanwhile"
    assert set(fleet.taken.values()) == {1}
    assert {job_id for job_id, _ in fleet.taken} == fleet.reported
    assert len(fleet.taken) == JOBS, "no job had a second attempt"
    with psycopg.connect(url) as connection:
        jobs = connection.execute("SELECT status, count(*), count(result_id) FROM job GROUP BY status").fetchall()
        assert jobs == [(5, JOBS, JOBS)]
        results = connection.execute("SELECT count(*), count(DISTINCT job_id), max(attempt_id) FROM result").fetchall()
        assert results == [(JOBS, JOBS, 1)]


async def run_through_restart(
    ports: list[int], workflow_id: int, postgres: PostgresServer, *, fast: bool
) -> FleetRecord:
    """Let runners work, spread over the servers; restart the database when a quarter of the jobs have ended."""
    fleet = FleetRecord()
    members = [
        SimulatedRunner(ports[number % SERVERS :] + ports[: number % SERVERS], workflow_id, fleet)
        for number in range(RUNNERS)
    ]
    for member in members:
        await member.register()
    tasks = [asyncio.create_task(member.work()) for member in members]
    while len(fleet.reported) < JOBS // 4:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(postgres.stop, fast=fast)
    failed = sum(fleet.failures.values())
    while sum(fleet.failures.values()) < failed + RUNNERS:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(postgres.start)
    await asyncio.wait_for(asyncio.gather(*tasks), 120)
    return fleet
