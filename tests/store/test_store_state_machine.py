"""Claims, starts, ends, retries, cancels and resets in any order, compared with a model in plain Python."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sample_records import NODE

from torc_framework.models.barriers import Barrier
from torc_framework.models.exchange import EndedReport, ExchangeReply, ExchangeRequest, RetryRequest, StartedReport
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord
from torc_framework.models.statuses import LIVE, UNBLOCKING, UNFINISHED, JobStatus
from torc_framework.store.database.base import Database
from torc_framework.store.database.opening import open_database
from torc_framework.store.exchange.exchange import exchange
from torc_framework.store.job_state.dependency_counters import recount
from torc_framework.store.record_kinds.nodes import COMPUTE_NODES
from torc_framework.store.records import crud
from torc_framework.store.runs import lifecycle
from torc_framework.store.runs.workflow_status import workflow_completion
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.plans import create_plan

S = JobStatus
Pairs = set[tuple[int, int]]
ENDS = [
    (S.COMPLETED, 0),
    (S.FAILED, 1),
    (S.TERMINATED, 0),
    (S.TERMINATED, 143),
    (S.PENDING_FAILED, 1),
    (S.CANCELED, 143),
]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Pairs, list[tuple[list[int], list[int]]], list[bool]]:
    """Draw a small graph: a number of jobs, pairs, barriers, and the jobs that are canceled with their dependencies."""
    count = draw(st.integers(1, 8))
    pairs: Pairs = set()
    barriers = []
    if count > 1:
        ordered = st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True).map(sorted)
        pairs = {(later, earlier) for earlier, later in draw(st.lists(ordered, max_size=8))}
        for cut in draw(st.lists(st.integers(1, count - 1), max_size=2)):
            up = draw(st.lists(st.integers(0, cut - 1), min_size=1, max_size=4, unique=True))
            down = draw(st.lists(st.integers(cut, count - 1), min_size=1, max_size=4, unique=True))
            barriers.append((up, down))
    flags = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return count, pairs, barriers, flags


class Model:
    """The expected state, computed by the rules in the simplest way."""

    def __init__(self, count: int, waits_for: list[set[int]], cancel: list[bool]) -> None:
        self.waits_for, self.cancel = waits_for, cancel
        self.status = [S.UNINITIALIZED] * count
        self.badly = [False] * count
        self.attempt = [1] * count
        self.lost = [0] * count
        self.interrupted = [False] * count
        self.free = [0] * count
        self.canceled = False

    def is_unfinished(self, job: int) -> bool:
        """Return whether a job is unfinished or interrupted."""
        return self.status[job] in UNFINISHED or self.interrupted[job]

    def resume(self) -> None:
        """A runner asks for jobs: interrupted ones become ready."""
        for job, flag in enumerate(self.interrupted):
            if flag and not self.canceled:
                self.status[job], self.interrupted[job] = S.READY, False
                self.attempt[job] += 1

    def open(self, job: int) -> bool:
        """Return whether the job has blockers."""
        return any(self.status[other] not in UNBLOCKING or self.interrupted[other] for other in self.waits_for[job])

    def begin(self) -> None:
        """Begin a run."""
        count = len(self.status)
        self.canceled, self.badly, self.attempt = False, [False] * count, [1] * count
        self.lost, self.free, self.interrupted = [0] * count, [0] * count, [False] * count
        self.status = [S.UNINITIALIZED] * count
        self.status = [S.BLOCKED if self.waits_for[job] else S.READY for job in range(count)]

    def end(self, job: int, status: JobStatus, code: int) -> None:
        """End a job; make its dependents ready or cancel them, one after another."""
        self.status[job] = status
        self.badly[job] = status in (S.FAILED, S.CANCELED) or (status is S.TERMINATED and code != 0)
        over = {job} if status in UNBLOCKING else set()
        while over:
            waiting = [other for other, dependencies in enumerate(self.waits_for) if dependencies & over]
            free = [other for other in waiting if self.status[other] is S.BLOCKED and not self.open(other)]
            for other in free:
                failed = any(self.badly[dependency] for dependency in self.waits_for[other])
                self.badly[other] = failed and self.cancel[other]
                self.status[other] = S.CANCELED if self.badly[other] else S.READY
            over = {other for other in free if self.status[other] is S.CANCELED}


@cache
def empty_database() -> Path:
    """Return the file of an empty database, to be copied."""
    path = Path(tempfile.mkdtemp(prefix="torc-machine-")) / "torc.db"
    open_database(str(path)).close()
    return path


class StoreMachine(RuleBasedStateMachine):
    """Two runners on one workflow."""

    attempts = Bundle("attempts")
    """Attempts that were handed out, as (job, attempt, run, runner)."""

    @initialize(graph=graphs())
    def make(self, graph: Any) -> None:
        """Store the graph and begin a run."""
        count, pairs, barriers, flags = graph
        self.database = self.opened()
        waits_for: list[set[int]] = [set() for _ in range(count)]
        for job, other in pairs:
            waits_for[job].add(other)
        for up, down in barriers:
            for job in down:
                waits_for[job].update(up)
        self.model = Model(count, waits_for, flags)
        jobs = [PlannedJob(f"j{n}", "x", cancel_on_blocking_job_failure=flag) for n, flag in enumerate(flags)]
        plan = Plan(WorkflowRecord(name="w", user="u"), jobs, sorted(pairs), [Barrier(*b) for b in barriers])
        with self.database.write() as tx:
            self.workflow_id = create_plan(tx, plan).id
            node = {**NODE, "workflow_id": self.workflow_id, "num_cpus": 9}
            self.nodes = [crud.create(tx, COMPUTE_NODES, node)["id"] for _ in range(2)]
        self.results: set[tuple[int, int, int]] = set()
        self.holder: dict[int, int] = {}
        self.begin()

    def opened(self) -> Database:
        """Return an empty database."""
        self.folder = Path(tempfile.mkdtemp(prefix="torc-machine-"))
        return open_database(str(shutil.copy(empty_database(), self.folder / "torc.db")))

    def teardown(self) -> None:
        """Delete the database."""
        if hasattr(self, "database"):
            self.database.close()
            shutil.rmtree(self.folder)

    def begin(self) -> None:
        """Begin a run."""
        with self.database.write() as tx:
            self.run = lifecycle.begin_run(tx, self.workflow_id, force=True).run_id
        self.model.begin()
        self.holder = {}

    def ask(self, node: int, **fields: Any) -> ExchangeReply:
        """Make an exchange."""
        request = ExchangeRequest(compute_node_id=self.nodes[node], run_id=fields.pop("run", self.run), **fields)
        with self.database.write() as tx:
            return exchange(tx, self.workflow_id, request)

    def taken(self, node: int, reply: ExchangeReply) -> Iterator[tuple[int, int, int, int]]:
        """Note claimed jobs: only ready ones, each by one runner, none with blockers."""
        for claimed in reply.jobs:
            job = claimed.id - 1
            assert self.model.status[job] is S.READY
            assert not self.model.open(job)
            assert claimed.attempt_id == self.model.attempt[job]
            assert not self.model.canceled
            self.model.status[job] = S.PENDING
            self.holder[job] = node
            yield job, claimed.attempt_id, self.run, node

    @rule(target=attempts, node=st.integers(0, 1), slots=st.integers(1, 9))
    def claim(self, node: int, slots: int) -> Any:
        """Claim jobs, as many as there are."""
        self.model.resume()
        ready = self.model.status.count(S.READY)
        reply = self.ask(node, slots=slots)
        assert len(reply.jobs) == (0 if self.model.canceled else min(slots, ready))
        return multiple(*self.taken(node, reply))

    def present(self, attempt: tuple[int, int, int, int]) -> bool:
        """Return whether an attempt is of this run and the present one of its job."""
        job, number, run, _ = attempt
        return run == self.run and number == self.model.attempt[job]

    @rule(attempt=attempts)
    def start(self, attempt: tuple[int, int, int, int]) -> None:
        """Report a start, possibly a second time or too late."""
        job, number, run, node = attempt
        if run != self.run:
            return
        self.ask(node, started=[StartedReport(job + 1, number, 0.0)])
        if self.present(attempt) and self.model.status[job] is S.PENDING and self.holder.get(job) == node:
            self.model.status[job] = S.RUNNING

    def news(self, attempt: tuple[int, int, int, int], *, again: bool) -> bool:
        """Return whether the report of an end, possibly with a request for another attempt, changes something."""
        job, number, run, _ = attempt
        if not self.present(attempt):
            return False
        status = self.model.status[job]
        if status is S.READY and again:
            return False
        return status in LIVE or (status in (S.READY, S.CANCELED) and (job, run, number) not in self.results)

    @rule(
        target=attempts,
        attempt=attempts,
        end=st.sampled_from(ENDS),
        limit=st.sampled_from([None, 1, 2, 3]),
        hold=st.booleans(),
        times=st.integers(1, 2),
    )
    def end(self, attempt: Any, end: tuple[JobStatus, int], limit: int | None, hold: bool, times: int) -> Any:
        """Report an end, possibly a second time or too late, possibly with a request for another attempt."""
        job, number, run, node = attempt
        if run != self.run:
            return multiple()
        status, code = end
        retry = None if limit is None else RetryRequest(limit, hold)
        report = EndedReport(job + 1, number, status.label, code, 1.0, 0.0, retry=retry)
        news, before = self.news(attempt, again=limit is not None), self.model.status[job]
        if news:
            self.results.add((job, run, number))
            again = (
                limit is not None
                and number - self.model.lost[job] - self.model.free[job] < limit
                and not self.model.canceled
            )
            if before is S.CANCELED:
                pass
            elif again:
                self.model.status[job] = S.READY
                self.model.attempt[job] += 1
            else:
                self.model.end(job, status, code)
        reply = self.ask(node, ended=[report] * times)
        expected = [job + 1] if news and before is not S.CANCELED and again and hold else []
        assert reply.held == expected
        return multiple(*self.taken(node, reply))

    @rule(attempt=attempts)
    def interrupt(self, attempt: tuple[int, int, int, int]) -> None:
        """Report that an attempt ended because its runner had to end, possibly too late."""
        job, number, run, node = attempt
        if run != self.run:
            return
        news = self.news(attempt, again=False)
        report = EndedReport(job + 1, number, "terminated", 152, 1.0, 0.0, exit_class="interrupted", interrupted=True)
        self.ask(node, ended=[report])
        if news:
            self.results.add((job, run, number))
            if self.model.status[job] is not S.CANCELED:
                self.model.status[job], self.model.badly[job] = S.TERMINATED, False
                self.model.interrupted[job] = True
                self.model.free[job] += 1

    @rule(attempt=attempts)
    def release(self, attempt: tuple[int, int, int, int]) -> None:
        """Release a job, possibly too late."""
        job, _, run, node = attempt
        if run != self.run:
            return
        self.ask(node, released=[job + 1])
        if self.model.status[job] is S.PENDING and self.holder.get(job) == node:
            self.model.status[job] = S.READY

    @rule(attempt=consumes(attempts))
    def lose(self, attempt: tuple[int, int, int, int]) -> None:
        """Report a lost attempt."""
        job, number, run, node = attempt
        if run != self.run:
            return
        report = EndedReport(job + 1, number, "failed", 1, 1.0, 0.0, retry=RetryRequest(99), lost=True)
        news = self.news(attempt, again=True)
        self.ask(node, ended=[report])
        if news:
            self.results.add((job, run, number))
            if self.model.status[job] is not S.CANCELED:
                self.model.status[job] = S.FAILED if self.model.canceled else S.READY
                if self.model.canceled:
                    self.model.end(job, S.FAILED, 1)
                else:
                    self.model.attempt[job] += 1
                    self.model.lost[job] += 1

    @rule()
    def cancel(self) -> None:
        """Cancel the workflow."""
        with self.database.write() as tx:
            lifecycle.cancel_workflow(tx, self.workflow_id)
        self.model.canceled = True
        for job, status in enumerate(self.model.status):
            if status in LIVE:
                self.model.status[job], self.model.badly[job] = S.CANCELED, True

    @rule()
    def run_again(self) -> None:
        """Begin another run in any state."""
        self.begin()

    @precondition(lambda self: not self.model.canceled and S.PENDING_FAILED not in self.model.status)
    @rule()
    def finish(self) -> None:
        """All jobs that are left can run to their ends."""
        while any(map(self.model.is_unfinished, range(len(self.model.status)))):
            live = [job for job, status in enumerate(self.model.status) if status in LIVE]
            for job in live:
                self.model.end(job, S.COMPLETED, 0)
                self.results.add((job, self.run, self.model.attempt[job]))
                report = EndedReport(job + 1, self.model.attempt[job], "completed", 0, 1.0, 0.0)
                self.ask(self.holder[job], ended=[report])
            self.model.resume()
            got = [*self.taken(0, self.ask(0, slots=99))]
            assert live or got, "nothing is live, nothing is ready, and not everything is done"
        assert self.ask(0).is_complete

    @invariant()
    def agree(self) -> None:
        """The store has the state of the model, and its counters are right."""
        if not hasattr(self, "database"):
            return
        query = t.JOB.select().order_by(t.JOB.c.id)
        with self.database.write() as tx:
            rows = list(tx.connection.execute(query).mappings())
            recount(tx, self.workflow_id)
            again = list(tx.connection.execute(query).mappings())
            finished = workflow_completion(tx, self.workflow_id)
        assert [row["status"] for row in rows] == [status.label for status in self.model.status]
        assert [row["attempt_id"] for row in rows] == self.model.attempt
        assert rows == again
        assert [bool(row["is_interrupted"]) for row in rows] == self.model.interrupted
        done = not any(map(self.model.is_unfinished, range(len(self.model.status))))
        assert finished.is_complete == (done or self.model.canceled)


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_postgresql_does_the_same(fresh_postgres: Callable[[], Database]) -> None:
    """The same on PostgreSQL, with fewer examples."""

    class OnPostgres(StoreMachine):
        def opened(self) -> Database:
            return fresh_postgres()

        def teardown(self) -> None:
            pass

    run_state_machine_as_test(OnPostgres, settings=settings(TestStoreMachine.settings, max_examples=6))
