"""Verdicts on jobs in ``pending_failed``: their effect, their propagation, refusals, and what is stored."""

from typing import Any

import pytest
import sqlalchemy as sa
from attrs import fields_dict

from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import ResourceRequirementsRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.models.verdicts import JudgeKind, Verdict, VerdictOrder, VerdictReceipt, VerdictRecord
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.records.kind import PageRequest
from torc_framework.store.recovery import verdicts
from torc_framework.store.tables import core as t
from torc_framework.store.tables.verdicts import VERDICT


def judge(bench: Any, *given: Verdict, **fields: Any) -> VerdictReceipt:
    fields.setdefault("judge", "somebody")
    with bench.database.write() as tx:
        return verdicts.judge(tx, bench.workflow_id, VerdictOrder(list(given), **fields), "ann")


def kept(bench: Any, **wanted: Any) -> list[VerdictRecord]:
    with bench.database.read() as tx:
        return verdicts.find_verdicts(tx, bench.workflow_id, PageRequest(), **wanted)[0]


def waiting(bench: Any, jobs: Any, *args: Any, wait: tuple[int, ...] = (0,), **parts: Any) -> None:
    """Begin a workflow of which these jobs are in ``pending_failed``."""
    bench.plan(jobs, *args, **parts)
    for job in wait:
        bench.finish(job, status="pending_failed", code=1)
    assert [bench.statuses()[job] for job in wait] == ["pending_failed"] * len(wait)


def retry(bench: Any, job: int, **fields: Any) -> Verdict:
    return Verdict(bench.job_id(job), "retry", "the network was away", **fields)


def fail(bench: Any, job: int, **fields: Any) -> Verdict:
    return Verdict(bench.job_id(job), "fail", "the program is wrong", **fields)


def requirements(bench: Any) -> dict[int, dict[str, Any]]:
    """The requirements of each job by position."""
    table = t.RESOURCE_REQUIREMENTS
    with bench.database.read() as tx:
        rows = {row["id"]: dict(row) for row in tx.connection.execute(sa.select(table)).mappings()}
    return {job: rows[id_] for job, id_ in enumerate(bench.column("resource_requirements_id"))}


def test_a_record_is_a_row() -> None:
    assert {column.name for column in VERDICT.c} == set(fields_dict(VerdictRecord)) - {"job_name"}


def test_a_retry_gives_another_attempt(bench: Any) -> None:
    """The job is ready with its next attempt; its dependents stay blocked."""
    waiting(bench, 2, [(1, 0)])
    receipt = judge(bench, retry(bench, 0, confidence=0.9, evidence=["Connection refused"]))
    assert bench.statuses() == ["ready", "blocked"]
    assert bench.attempt(0) == 2
    assert (receipt.ready_job_ids, receipt.canceled_job_ids) == ([bench.job_id(0)], [])
    bench.check_counters()
    bench.finish(0, 1)
    assert bench.statuses() == ["completed", "completed"]
    assert [event["new_attempt"] for event in bench.events("job_retried")] == [2]


def test_a_failure_cancels_what_waits_for_it(bench: Any) -> None:
    """Also their dependents; jobs without the flag become ready. Then the workflow is complete."""
    jobs = [PlannedJob(name=f"j{n}", command="x", cancel_on_blocking_job_failure=n != 3) for n in range(4)]
    waiting(bench, jobs, [(1, 0), (2, 1), (3, 0)])
    receipt = judge(bench, fail(bench, 0))
    assert bench.statuses() == ["failed", "canceled", "canceled", "ready"]
    assert receipt.canceled_job_ids == [bench.job_id(1), bench.job_id(2)]
    assert receipt.ready_job_ids == [bench.job_id(3)]
    bench.check_counters()
    bench.finish(3)
    assert len(bench.events("workflow_completed")) == 1
    assert [event["reason"] for event in bench.events("job_failed")] == ["the program is wrong"]


def test_a_judged_attempt_is_a_failed_one(bench: Any) -> None:
    """The status of its result is ``failed``."""
    waiting(bench, 2, wait=(0, 1))
    judge(bench, retry(bench, 0), fail(bench, 1))
    assert [result["status"] for result in bench.results()] == ["failed", "failed"]


def test_every_verdict_is_kept(bench: Any) -> None:
    """With its judge, reason, evidence and time; there is an event, too."""
    waiting(bench, 2, wait=(0, 1))
    order = [retry(bench, 0, confidence=0.9, evidence=["a line"]), fail(bench, 1)]
    receipt = judge(bench, *order, judge="claude", judge_kind=JudgeKind.AGENT)
    assert kept(bench) == receipt.verdicts
    first, second = kept(bench)
    assert (first.judge, first.judge_kind, first.user) == ("claude", "agent", "ann")
    assert (first.action, first.reason, first.confidence, first.evidence) == (
        "retry",
        "the network was away",
        0.9,
        ["a line"],
    )
    assert (first.run_id, first.attempt_id, first.job_name) == (1, 1, "job0")
    assert (second.confidence, second.evidence) == (None, [])
    assert kept(bench, job_id=bench.job_id(1)) == [second]
    assert [event["judge"] for event in bench.events("job_judged")] == ["claude", "claude"]


def test_a_dry_run_changes_nothing(bench: Any) -> None:
    """It returns what would happen, and notifies no listener."""
    waiting(bench, 3, [(1, 0), (2, 1)])
    before = bench.statuses(), bench.events(), bench.results(), requirements(bench)
    heard: list[Any] = []
    bench.database.on_workflows_with_events(heard.append)
    receipt = judge(bench, fail(bench, 0), dry_run=True)
    assert receipt.dry_run
    assert receipt.canceled_job_ids == [bench.job_id(1), bench.job_id(2)]
    assert [verdict.id for verdict in receipt.verdicts] == [None]
    assert (bench.statuses(), bench.events(), bench.results(), requirements(bench)) == before
    assert (kept(bench), heard) == ([], [])
    bench.check_counters()


# --- requests --------------------------------------------------------------------------------------

ASKING = [ResourceRequirementsRecord(workflow_id=0, name="big", memory="4g", runtime="PT1H", num_cpus=2)]


def asking(count: int) -> list[PlannedJob]:
    return [PlannedJob(name=f"job{n}", command="x", resource_requirements=0) for n in range(count)]


def test_a_retry_may_ask_for_more(bench: Any) -> None:
    """Jobs that share the requirements and have no verdict keep theirs; equal requests share a new record."""
    waiting(bench, asking(3), wait=(0, 1), resource_requirements=ASKING)
    judge(bench, retry(bench, 0, memory="16g"), retry(bench, 1, memory="16g"))
    now = requirements(bench)
    assert [now[job]["memory"] for job in range(3)] == ["16g", "16g", "4g"]
    assert now[0]["id"] == now[1]["id"]
    assert (now[0]["runtime"], now[0]["num_cpus"], now[0]["memory_bytes"]) == ("PT1H", 2, 16 * 2**30)


def test_a_job_that_asked_for_nothing_gets_whole_requests(bench: Any) -> None:
    """Memory and run time must be given together, because the defaults are one megabyte and one minute."""
    waiting(bench, 1)
    with pytest.raises(RuleError, match="give memory and runtime together"):
        judge(bench, retry(bench, 0, memory="16g"))
    assert bench.statuses() == ["pending_failed"]
    judge(bench, retry(bench, 0, memory="16g", runtime="PT2H"))
    assert requirements(bench)[0]["runtime_s"] == 7200


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"memory": "much"}, "memory"),
        ({"runtime": "soon"}, "runtime|duration"),
        ({"num_cpus": -1}, "num_cpus"),
        ({"confidence": 1.5}, "expected 0 to 1"),
        ({"attempt_id": 7}, "is on attempt 7, but job .* is at attempt 1"),
    ],
)
def test_a_verdict_that_makes_no_sense_is_refused(bench: Any, fields: dict[str, Any], message: str) -> None:
    """The whole order is refused."""
    waiting(bench, asking(2), wait=(0, 1), resource_requirements=ASKING)
    with pytest.raises(RuleError, match=message):
        judge(bench, fail(bench, 1), retry(bench, 0, **fields))
    assert bench.statuses() == ["pending_failed", "pending_failed"]
    assert kept(bench) == []


def test_requests_go_with_a_retry_only(bench: Any) -> None:
    waiting(bench, asking(1), resource_requirements=ASKING)
    with pytest.raises(RuleError, match="memory can be changed with a retry only"):
        judge(bench, fail(bench, 0, memory="16g"))


def test_only_jobs_that_wait_are_judged(bench: Any) -> None:
    """The message has all errors of the order."""
    waiting(bench, 2)
    with pytest.raises(RuleError) as refused:
        judge(bench, retry(bench, 0), retry(bench, 1), Verdict(10**6, "fail", "x"))
    assert f"Job {bench.job_id(1)} is pending: only a job that is pending_failed" in str(refused.value)
    assert "Job 1000000 is not in workflow" in str(refused.value)
    assert bench.statuses()[0] == "pending_failed"
    with pytest.raises(RuleError, match="one verdict"):
        judge(bench, retry(bench, 0), fail(bench, 0))
    with pytest.raises(RuleError, match="Run ID mismatch"):
        judge(bench, retry(bench, 0), run_id=9)
    with bench.database.write() as tx, pytest.raises(NotFoundError):
        verdicts.judge(tx, 10**6, VerdictOrder([], "x"))


def test_a_job_whose_dependency_runs_again_waits_for_it(bench: Any) -> None:
    """A dependency was reset between the failure and the verdict."""
    bench.plan(2, [(1, 0)])
    bench.finish(0)
    bench.finish(1, status="pending_failed", code=1)
    bench.set_status(0, JobStatus.READY)
    receipt = judge(bench, retry(bench, 1))
    assert bench.statuses() == ["ready", "blocked"]
    assert receipt.ready_job_ids == []
    bench.finish(0, 1)
    assert bench.statuses() == ["completed", "completed"]
