"""Fixtures: empty databases of both kinds, and a driver of one workflow that acts as its runners do."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa
from postgres_server import PostgresServer
from sample_records import NODE

from torc_framework.models.barriers import Barrier
from torc_framework.models.exchange import (
    ClaimedJob,
    EndedReport,
    ExchangeReply,
    ExchangeRequest,
    RetryRequest,
    StartedReport,
)
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord
from torc_framework.models.resources import Resources
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.base import Database
from torc_framework.store.database.opening import open_database
from torc_framework.store.exchange.exchange import exchange
from torc_framework.store.job_state.dependency_counters import recount
from torc_framework.store.migrations.upgrade import insert_id_counters
from torc_framework.store.record_kinds.nodes import COMPUTE_NODES
from torc_framework.store.record_kinds.results import EVENTS, RESULTS
from torc_framework.store.records import crud
from torc_framework.store.records.kind import PageRequest, RecordKind
from torc_framework.store.runs import lifecycle
from torc_framework.store.runs.workflow_status import workflow_status
from torc_framework.store.tables import METADATA
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.plans import create_plan

Pair = tuple[int, int]


class Bench:
    """One workflow in a database, driven as its runners would; jobs are numbered by their position in the plan."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.workflow_id = 0
        self.first_job = 0
        self.count = 0
        self.nodes: list[int] = []

    def do(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function of the store on the workflow."""
        with self.database.write() as tx:
            return function(tx, self.workflow_id, *arguments, **options)

    def plan(
        self,
        jobs: int | Sequence[PlannedJob],
        dependencies: Iterable[Pair] = (),
        barriers: Iterable[tuple[list[int], list[int]]] = (),
        *,
        begin: bool = True,
        **parts: Any,
    ) -> int:
        """Store a plan, register a runner, begin a run; return the workflow's id."""
        if isinstance(jobs, int):
            jobs = [PlannedJob(name=f"job{n}", command=f"run {n}") for n in range(jobs)]
        plan = Plan(
            workflow=parts.pop("workflow", WorkflowRecord(name="bench", user="tester")),
            jobs=list(jobs),
            dependencies=list(dependencies),
            barriers=[Barrier(upstream, downstream) for upstream, downstream in barriers],
            **parts,
        )
        with self.database.write() as tx:
            self.workflow_id = create_plan(tx, plan).id
            query = sa.select(sa.func.min(t.JOB.c.id)).where(t.JOB.c.workflow_id == self.workflow_id)
            self.first_job = tx.connection.execute(query).scalar() or 0
        self.count = len(jobs)
        self.nodes = [self.node()]
        if begin:
            self.begin()
        return self.workflow_id

    def node(self, **fields: Any) -> int:
        """Register a runner; return its id."""
        values = {**NODE, "workflow_id": self.workflow_id, "num_cpus": 64, **fields}
        with self.database.write() as tx:
            return int(crud.create(tx, COMPUTE_NODES, values)["id"])

    def leave(self) -> None:
        """End the first runner, which releases what it has claimed."""
        pending = [self.job_id(job) for job, status in enumerate(self.statuses()) if status == "pending"]
        self.exchange(released=pending)
        with self.database.write() as tx:
            crud.update(tx, COMPUTE_NODES, self.nodes[0], {"is_active": False})

    def begin(self, **options: Any) -> int:
        """Begin a run; return its number."""
        with self.database.write() as tx:
            return lifecycle.begin_run(tx, self.workflow_id, **options).run_id

    def job_id(self, job: int) -> int:
        """Return the id of a job by its position."""
        return self.first_job + job

    def exchange(self, node: int | None = None, **fields: Any) -> ExchangeReply:
        """Make one exchange as the first runner, or as another one."""
        fields.setdefault("run_id", self.run_id())
        request = ExchangeRequest(compute_node_id=node or self.nodes[0], **fields)
        with self.database.write() as tx:
            return exchange(tx, self.workflow_id, request)

    def claim(self, slots: int = 1000, node: int | None = None, **fields: Any) -> list[ClaimedJob]:
        """Claim jobs without a comparison of resources."""
        return self.exchange(node, slots=slots, **fields).jobs

    def started(self, job: int, attempt: int | None = None) -> StartedReport:
        """Return the report that a job started."""
        return StartedReport(self.job_id(job), attempt or self.attempt(job), time.time())

    def ended(self, job: int, status: str = "completed", code: int | None = None, **fields: Any) -> EndedReport:
        """Return the report that a job ended."""
        attempt = fields.pop("attempt", None) or self.attempt(job)
        code = (0 if status == "completed" else 1) if code is None else code
        values: dict[str, Any] = {"exec_time_s": 1.5, "ended_at": time.time(), **fields}
        return EndedReport(self.job_id(job), attempt, status, code, **values)

    def start(self, *jobs: int) -> None:
        """Claim all ready jobs and start these jobs."""
        self.claim()
        self.exchange(started=[self.started(job) for job in jobs])

    def end(self, job: int, status: str = "completed", code: int | None = None, **fields: Any) -> ExchangeReply:
        """Report the end of a job without a claim."""
        return self.exchange(ended=[self.ended(job, status, code, **fields)])

    def finish(self, *jobs: int, status: str = "completed", code: int | None = None) -> None:
        """Claim, start and end these jobs, one after another."""
        for job in jobs:
            self.start(job)
            self.end(job, status, code)

    def retry(self, job: int, limit: int, *, hold: bool = False, **fields: Any) -> ExchangeReply:
        """Report a failed attempt and ask for another one."""
        return self.end(job, "failed", 1, retry=RetryRequest(limit, hold, "rule 1"), **fields)

    def column(self, name: str) -> list[Any]:
        """Return one column of all jobs, in order."""
        query = sa.select(t.JOB.c[name]).where(t.JOB.c.workflow_id == self.workflow_id).order_by(t.JOB.c.id)
        with self.database.read() as tx:
            return list(tx.connection.execute(query).scalars())

    def statuses(self) -> list[str]:
        """Return the statuses of all jobs."""
        return self.column("status")

    def attempt(self, job: int) -> int:
        """Return the present attempt of a job."""
        return int(self.column("attempt_id")[job])

    def set_status(self, job: int, status: JobStatus, **values: Any) -> None:
        """Set the status of a job directly, which no program does, and compute the counters again."""
        with self.database.write() as tx:
            change = sa.update(t.JOB).where(t.JOB.c.id == self.job_id(job)).values(status=status, **values)
            tx.connection.execute(change)
            recount(tx, self.workflow_id)

    def run_id(self) -> int:
        """Return the present run."""
        with self.database.read() as tx:
            return workflow_status(tx, self.workflow_id).run_id

    def results(self) -> list[dict[str, Any]]:
        """Return all results."""
        return self._all(RESULTS)

    def events(self, *types: str) -> list[dict[str, Any]]:
        """Return the data of all events, or of those of some types."""
        found = [event["data"] for event in self._all(EVENTS)]
        return [data for data in found if not types or data["event_type"] in types]

    def _all(self, resource: RecordKind) -> list[dict[str, Any]]:
        with self.database.read() as tx:
            mine = [resource.table.c.workflow_id == self.workflow_id]
            return crud.find(tx, resource, mine, PageRequest(limit=-1))[0]

    def check_counters(self) -> None:
        """Assert that every counter of blockers has the value that is computed from the statuses."""
        with self.database.write() as tx:
            before = self._counters(tx)
            recount(tx, self.workflow_id)
            assert before == self._counters(tx)

    def _counters(self, tx: Any) -> list[Any]:
        jobs = sa.select(t.JOB.c.id, t.JOB.c.blockers, t.JOB.c.failed_blockers).order_by(t.JOB.c.id)
        group = t.DEPENDENCY_GROUP.c
        groups = sa.select(group.id, group.remaining, group.failed).order_by(group.id)
        return [tuple(row) for query in (jobs, groups) for row in tx.connection.execute(query)]


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty database, to be copied."""
    path = tmp_path_factory.mktemp("empty") / "torc.db"
    open_database(str(path)).close()
    return path


@pytest.fixture(scope="session")
def shared_postgres(postgres: PostgresServer) -> Iterator[Database]:
    """A database on PostgreSQL, emptied before each use."""
    with postgres.database() as url:
        opened = open_database(url)
        yield opened
        opened.close()


def emptied(database: Database) -> Database:
    """Delete all rows; ids begin again."""
    tables = ", ".join(table.name for table in METADATA.sorted_tables)
    with database.write() as tx:
        tx.connection.exec_driver_sql(f"TRUNCATE {tables} RESTART IDENTITY")
        insert_id_counters(tx.connection)
    return database


@pytest.fixture
def fresh_postgres(shared_postgres: Database) -> Callable[[], Database]:
    """A function that empties the database on PostgreSQL and returns it."""
    return lambda: emptied(shared_postgres)


@pytest.fixture
def sqlite(tmp_path: Path, empty_database: Path) -> Iterator[Database]:
    """An empty database on SQLite, for tests of SQLite only."""
    opened = open_database(str(shutil.copy(empty_database, tmp_path / "torc.db")))
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return cast("Database", request.getfixturevalue("sqlite"))
    return emptied(request.getfixturevalue("shared_postgres"))


@pytest.fixture
def bench(database: Database) -> Bench:
    """A bench on an empty database."""
    return Bench(database)


@pytest.fixture
def bench_on() -> type[Bench]:
    """A function that makes a bench on a database."""
    return Bench


@pytest.fixture
def roomy() -> Resources:
    """Resources of a runner that no job of a test exceeds."""
    return Resources(num_cpus=64, memory_bytes=2**40, num_gpus=8, num_nodes=1)
