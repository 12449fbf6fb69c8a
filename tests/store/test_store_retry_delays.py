"""Delays before the next attempt, and budgets of attempts by the classes of their endings."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torc_framework.models.exchange import RetryRequest
from torc_framework.models.exits import ExitClass
from torc_framework.models.failures import SEPARATE_BUDGET_CLASSES
from torc_framework.store.exchange import claims, single_claims
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.records.crud import get

LATER = "9999-01-01T00:00:00.000Z"


def fail(bench: Any, job: int = 0, *, exit_class: str = "user_error", slots: int = 0, **retry: Any) -> Any:
    """Report a failed attempt and ask for another one; return the reply."""
    request = RetryRequest(retry.pop("max_attempts", 9), **retry)
    ended = bench.ended(job, "failed", 3, exit_class=exit_class, retry=request)
    return bench.exchange(ended=[ended], slots=slots)


def not_before(bench: Any, job: int = 0) -> str | None:
    """Return the time until which a job is delayed."""
    with bench.database.read() as tx:
        return get(tx, JOBS, bench.job_id(job)).get("not_before")


def test_a_job_waits_before_its_next_attempt(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ready, and is claimed only after its time; the claim ends the delay."""
    bench.plan(2)
    bench.claim(1)
    reply = fail(bench, delay_s=3600.0, slots=5)
    assert [job.name for job in reply.jobs] == ["job1"]
    assert bench.statuses() == ["ready", "pending"]
    assert not_before(bench) is not None
    reply = bench.exchange(slots=5)
    assert (reply.jobs, reply.is_complete) == ([], False)
    assert reply.due_in_s > 0
    with bench.database.write() as tx:
        assert single_claims.claim_next(tx, bench.workflow_id, 5).jobs == []
    monkeypatch.setattr(claims, "utc_text", lambda: LATER)
    (job,) = bench.claim(5)
    assert (job.name, job.attempt_id, job.is_early) == ("job0", 2, False)
    assert not_before(bench) is None


def test_a_script_runs_before_the_wait_is_over(bench: Any) -> None:
    """The runner claims the job early for its script only; after a release the delay goes on for all runners."""
    bench.plan(1)
    bench.claim()
    (job,) = fail(bench, delay_s=3600.0, hold=True).jobs
    assert (job.is_early, job.attempt_id, bench.statuses()) == (True, 2, ["pending"])
    reply = bench.exchange(released=[job.id], slots=5)
    assert (reply.jobs, bench.statuses()) == ([], ["ready"])
    assert bench.claim(5, node=bench.node()) == []


def test_a_reset_ends_the_wait(bench: Any) -> None:
    """A reset job has no delay."""
    bench.plan(1)
    bench.claim()
    fail(bench, delay_s=3600.0)
    bench.begin()
    assert not_before(bench) is None
    assert [job.name for job in bench.claim()] == ["job0"]


CLASSES = [ExitClass.USER_ERROR, ExitClass.OOM, *sorted(SEPARATE_BUDGET_CLASSES)]


def test_what_is_not_the_jobs_doing_costs_no_attempt(bench: Any) -> None:
    """Preemptions have a budget of their own."""
    bench.plan(1)
    for exit_class in ("preempted", "user_error", "preempted"):
        bench.claim()
        fail(bench, exit_class=exit_class, max_attempts=3)
        assert bench.statuses() == ["ready"]
    bench.claim()
    fail(bench, exit_class="user_error", max_attempts=3)
    assert (bench.statuses(), bench.attempt(0)) == (["ready"], 5)
    bench.claim()
    fail(bench, exit_class="user_error", max_attempts=3)
    assert bench.statuses() == ["failed"]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(CLASSES), min_size=1, max_size=25), st.integers(0, 4))
def test_attempts_never_exceed_the_budgets(bench: Any, endings: list[ExitClass], limit: int) -> None:
    """With any endings, no budget is exceeded, and every attempt has a result."""
    bench.plan(1)
    own, others = 0, dict.fromkeys(SEPARATE_BUDGET_CLASSES, 0)
    for exit_class in endings:
        if not bench.claim():
            break
        fail(bench, exit_class=exit_class, max_attempts=limit)
        if exit_class in others:
            others[exit_class] += 1
        else:
            own += 1
    assert own <= max(limit, 1)
    assert all(count <= max(limit, 1) for count in others.values())
    assert len(bench.results()) == own + sum(others.values())
    spent = own >= limit or any(count >= max(limit, 1) for count in others.values())
    assert spent or bench.statuses() == ["ready"]
