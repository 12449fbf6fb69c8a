"""The transitions: one function for each row of the table, which changes what its row allows and nothing else."""

import re
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import torc_framework.store
from torc_framework.models.statuses import TRANSITIONS, JobStatus
from torc_framework.store.database.probe import is_postgres
from torc_framework.store.database.sql import Tx
from torc_framework.store.job_state import transitions
from torc_framework.store.tables import core as t

S = JobStatus

CALLS: dict[str, Callable[[Tx, int, int, JobStatus], Any]] = {
    "found_blocked": lambda tx, job, _wf, _target: transitions.found_blocked(tx, [job]),
    "found_ready": lambda tx, _job, wf, _target: transitions.found_ready(tx, wf),
    "unblocked": lambda tx, job, _wf, _target: transitions.unblocked(tx, [job]),
    "blocker_failed": lambda tx, job, _wf, _target: transitions.blocker_failed(tx, [job]),
    "claimed": lambda tx, job, _wf, _target: transitions.claimed(tx, 7, [job]),
    "released": lambda tx, job, _wf, _target: transitions.released(tx, [job]),
    "attempt_started": lambda tx, job, _wf, _target: transitions.attempt_started(tx, 7, [job]),
    "attempt_ended": lambda tx, job, _wf, target: transitions.attempt_ended(tx, [(int(target), 0, None, job)]),
    "attempt_interrupted": lambda tx, job, _wf, _target: transitions.attempt_interrupted(tx, [(7, job)]),
    "resumed": lambda tx, job, _wf, _target: _resumed(tx, job),
    "recorded": lambda tx, job, _wf, target: transitions.recorded(tx, job, target, badly=False, result_id=None),
    "attempt_retried": lambda tx, job, _wf, _target: transitions.attempt_retried(tx, [job]),
    "attempt_lost": lambda tx, job, _wf, _target: transitions.attempt_lost(tx, [job]),
    "canceled": lambda tx, _job, wf, _target: transitions.canceled(tx, wf),
    "reset": lambda tx, job, _wf, _target: transitions.reset(tx, [job]),
    "judged": lambda tx, job, _wf, target: transitions.judged(tx, job, target),
    "disabled": lambda tx, job, _wf, _target: transitions.disabled(tx, job),
    "enabled": lambda tx, job, _wf, _target: transitions.enabled(tx, job),
}


def _resumed(tx: Tx, job: int) -> None:
    """Resume a job that is interrupted, in any status."""
    tx.connection.execute(sa.update(t.JOB).values(is_interrupted=True))
    transitions.resumed(tx, [job])


def test_every_transition_has_its_function() -> None:
    """The table and the module have the same names."""
    assert set(CALLS) == set(TRANSITIONS)


@pytest.mark.parametrize("name", TRANSITIONS)
def test_a_transition_leads_from_its_sources_only(bench: Any, name: str) -> None:
    """From a status of its row it leads to the target; in any other it changes nothing.

    All statuses on SQLite, and two on PostgreSQL: the statements are the same.
    """
    transition = TRANSITIONS[name]
    sources: Iterable[S] = JobStatus
    if is_postgres(bench.database.source):
        sources = {min(transition.sources), min(set(S) - transition.sources, default=min(transition.sources))}
    for source, target in product(sources, sorted(transition.targets)):
        bench.plan(1, begin=False)
        bench.set_status(0, source)
        with bench.database.write() as tx:
            CALLS[name](tx, bench.job_id(0), bench.workflow_id, target)
        expected = target if source in transition.sources else source
        assert bench.statuses() == [expected.label], (source, target)


@pytest.mark.parametrize("name", ["found_ready_again", "all_found_blocked", "all_reset"])
def test_a_transition_of_many_jobs_is_legal_too(bench: Any, name: str) -> None:
    """The functions for a whole workflow make only changes that their row allows."""
    transition = TRANSITIONS[name.removeprefix("all_").removesuffix("_again")]
    for source in JobStatus:
        bench.plan(2, [(1, 0)], begin=False)
        bench.set_status(1, source)
        with bench.database.write() as tx:
            getattr(transitions, name)(tx, bench.workflow_id)
        after = S.from_label(bench.statuses()[1])
        assert after is source or (source in transition.sources and after is transition.target), source


def test_nothing_else_writes_a_status() -> None:
    """No other module of the store changes the status of a job."""
    for path in Path(torc_framework.store.__file__).parent.rglob("*.py"):
        if path.name == "transitions.py":
            continue
        source = path.read_text()
        for change in re.finditer(r"sa\.update\((?:t\.)?JOB\)", source):
            statement = source[change.start() : change.start() + 400].split("sa.update", 2)[1]
            assert "status=" not in statement.split(".values(")[-1].split(")")[0], path


def test_a_claim_remembers_the_runner_until_the_end(bench: Any) -> None:
    """A job has its runner from the claim until the end."""
    bench.plan(3)
    bench.claim(2)
    assert bench.column("active_compute_node_id") == [bench.nodes[0], bench.nodes[0], None]
    bench.exchange(started=[bench.started(0)], released=[bench.job_id(1)])
    assert bench.column("active_compute_node_id") == [bench.nodes[0], None, None]
    bench.end(0)
    assert bench.column("active_compute_node_id") == [None, None, None]


def test_a_job_made_ready_by_verdict_gets_another_attempt(bench: Any) -> None:
    """Its attempt is the next one after that of the verdict."""
    bench.plan(1)
    bench.start(0)
    bench.end(0, "pending_failed", 3)
    with bench.database.write() as tx:
        transitions.judged(tx, bench.job_id(0), S.READY)
    assert (bench.statuses(), bench.attempt(0)) == (["ready"], 2)


def test_only_interrupted_jobs_are_resumed(bench: Any) -> None:
    """A job that reached its own limit stays terminated."""
    bench.plan(1)
    bench.set_status(0, S.TERMINATED)
    with bench.database.write() as tx:
        transitions.resumed(tx, [bench.job_id(0)])
    assert bench.statuses() == ["terminated"]


@pytest.mark.parametrize("name", [name for name, each in TRANSITIONS.items() if S.TERMINATED in each.sources])
def test_a_job_that_leaves_terminated_is_not_interrupted_any_more(bench: Any, name: str) -> None:
    """After every transition from ``terminated``."""
    bench.plan(1)
    bench.set_status(0, S.TERMINATED, is_interrupted=True)
    with bench.database.write() as tx:
        CALLS[name](tx, bench.job_id(0), bench.workflow_id, min(TRANSITIONS[name].targets))
    assert (bench.statuses() != ["terminated"], bench.column("is_interrupted")) == (True, [False])


def test_unknown_jobs_are_left_alone(bench: Any) -> None:
    """A transition of a job that does not exist changes nothing."""
    bench.plan(1)
    with bench.database.write() as tx:
        transitions.unblocked(tx, [999_999])
        assert tx.connection.execute(sa.select(sa.func.count()).select_from(t.JOB)).scalar() == 1
    assert tx.transition_counts == {}
