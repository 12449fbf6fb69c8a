"""Single calls: what they change, and what they refuse."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from torc_framework.models.exchange import Offer
from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import FailureHandlerRecord, ResourceRequirementsRecord, SlurmSchedulerRecord
from torc_framework.models.resources import Resources
from torc_framework.models.statuses import UNBLOCKING, JobStatus
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.exchange import single_steps, status_changes
from torc_framework.store.exchange.single_claims import claim_by_resources, claim_next
from torc_framework.store.runs.lifecycle import cancel_workflow

S = JobStatus


def result(bench: Any, job: int, code: int = 0, **fields: Any) -> dict[str, Any]:
    values = {
        "job_id": bench.job_id(job),
        "workflow_id": bench.workflow_id,
        "run_id": bench.run_id(),
        "compute_node_id": bench.nodes[0],
        "return_code": code,
        "exec_time_minutes": 0.5,
        "completion_time": "2026-01-01T00:00:00.000Z",
        "status": "failed" if code else "completed",
    }
    return values | fields


def step(bench: Any, name: str, job: int, *arguments: Any, **named: Any) -> dict[str, Any]:
    """Make one call about a job in the present run, in its own transaction."""
    with bench.database.write() as tx:
        done: dict[str, Any] = getattr(status_changes if name == "change_status" else single_steps, name)(
            tx, bench.job_id(job), *arguments, **named
        )
        return done


def start(bench: Any, job: int) -> None:
    """Claim one job and start it."""
    step(bench, "change_status", job, "pending", bench.run_id())
    step(bench, "start_job", job, bench.run_id(), bench.nodes[0])


def complete(bench: Any, job: int, label: str = "completed", code: int = 0, **fields: Any) -> dict[str, Any]:
    return step(bench, "complete_job", job, label, bench.run_id(), result(bench, job, code, **fields))


def retry(bench: Any, job: int, limit: int | None = None) -> dict[str, Any]:
    return step(bench, "retry_job", job, bench.run_id(), limit)


def claim(bench: Any, slots: int = 100, **fields: Any) -> list[int]:
    """Claim by resources; return the positions of the jobs."""
    free = fields.pop("free", None) or Resources(num_cpus=64, memory_bytes=2**40, num_gpus=8, num_nodes=1)
    with bench.database.write() as tx:
        found = claim_by_resources(tx, bench.workflow_id, Offer(slots=slots, free=free, **fields)).jobs
    return [(job.id or 0) - bench.first_job for job in found]


def test_a_step_does_what_an_exchange_does(bench: Any) -> None:
    """Dependents become ready or are canceled in the same transaction; the counters are right after each call."""
    bench.plan(5, [(1, 0), (2, 1), (3, 0)], barriers=[([1, 3], [4])])
    for job, code in ((0, 0), (3, 0), (1, 2)):
        start(bench, job)
        assert bench.statuses()[job] == "running"
        complete(bench, job, "failed" if code else "completed", code)
        bench.check_counters()
    assert bench.statuses() == ["completed", "failed", "canceled", "completed", "canceled"]
    assert [row["return_code"] for row in bench.results()] == [0, 0, 2]
    types = [data["event_type"] for data in bench.events()]
    assert types.count("workflow_completed") == 1
    assert types.count("job_started") == 3


@pytest.mark.parametrize("status", sorted(set(S) - UNBLOCKING - {S.DISABLED}))
def test_a_job_is_completed_from_any_unfinished_status(bench: Any, status: S) -> None:
    """A result is stored in every unfinished status of the job."""
    bench.plan(3, [(1, 0), (2, 1)])
    bench.set_status(1, status)
    assert complete(bench, 1)["status"] == "completed"
    bench.check_counters()
    with pytest.raises(RuleError, match="is already complete with status completed"):
        complete(bench, 1)


def test_a_result_of_a_canceled_job_is_kept(bench: Any) -> None:
    """A job that was canceled while it ran stays canceled and gets its result."""
    bench.plan(1)
    start(bench, 0)
    with bench.database.write() as tx:
        cancel_workflow(tx, bench.workflow_id)
    assert complete(bench, 0, "terminated", 143)["status"] == "canceled"
    assert [row["return_code"] for row in bench.results()] == [143]
    with pytest.raises(RuleError, match="already complete with status canceled"):
        complete(bench, 0, "terminated", 143)


def test_a_job_canceled_by_a_failure_takes_the_end_that_its_client_reports(bench: Any) -> None:
    """The client has run it; jobs that were canceled because of it become ready, and the counters are right."""
    bench.plan(5, [(1, 0), (2, 1), (3, 2)], barriers=[([1, 2], [4])])
    start(bench, 0)
    complete(bench, 0, "failed", 1)
    assert bench.statuses() == ["failed", *["canceled"] * 4]
    assert complete(bench, 1)["status"] == "completed"
    assert bench.statuses() == ["failed", "completed", "ready", "blocked", "blocked"]
    bench.check_counters()
    assert complete(bench, 2, "failed", 3)["status"] == "failed"
    assert bench.statuses() == ["failed", "completed", "failed", "canceled", "canceled"]
    bench.check_counters()
    assert complete(bench, 4)["status"] == "completed"
    bench.check_counters()
    assert [row["return_code"] for row in bench.results()] == [1, 0, 3, 0]
    with pytest.raises(RuleError, match="already complete with status completed"):
        complete(bench, 4)


def test_a_job_canceled_with_its_workflow_keeps_that_status_beside_a_failure(bench: Any) -> None:
    """It ran although another had failed, because it is not to be canceled then."""
    bench.plan([PlannedJob("a", "x"), PlannedJob("b", "x", cancel_on_blocking_job_failure=False)], [(1, 0)])
    start(bench, 0)
    complete(bench, 0, "failed", 1)
    start(bench, 1)
    with bench.database.write() as tx:
        cancel_workflow(tx, bench.workflow_id)
    assert complete(bench, 1)["status"] == "canceled"
    assert [row["return_code"] for row in bench.results()] == [1, 0]


@pytest.mark.parametrize(
    ("label", "fields", "reason"),
    [
        ("ready", {}, "cannot be completed with status 'ready'; expected one of completed"),
        ("completed", {"job_id": 0}, "another job's or run's: job_id 0, expected"),
        ("completed", {"workflow_id": 0}, "workflow_id 0, expected"),
        ("completed", {"run_id": 7}, "run_id 7, expected 1"),
        ("completed", {"attempt_id": 5, "compute_node_id": 99}, "is of attempt 5, but job"),
        ("completed", {"status": "happy"}, "unknown job status 'happy'"),
    ],
)
def test_a_result_that_does_not_fit_changes_nothing(bench: Any, label: str, fields: Any, reason: str) -> None:
    """Neither a result nor a status is stored."""
    bench.plan(1)
    start(bench, 0)
    with pytest.raises(RuleError, match=reason):
        complete(bench, 0, label, **fields)
    assert (bench.statuses(), bench.results()) == (["running"], [])


def test_a_step_of_another_run_changes_nothing(bench: Any) -> None:
    """A call of another run than the present one is refused."""
    bench.plan(1)
    calls: list[Callable[[], Any]] = [
        lambda: step(bench, "start_job", 0, 9, bench.nodes[0]),
        lambda: step(bench, "complete_job", 0, "completed", 9, result(bench, 0)),
        lambda: step(bench, "retry_job", 0, 9),
        lambda: step(bench, "change_status", 0, "pending", 9),
    ]
    for call in calls:
        with pytest.raises(RuleError, match="Run ID mismatch: provided 9 but workflow status has 1"):
            call()
    assert (bench.statuses(), bench.results()) == (["ready"], [])


def test_a_runner_that_knows_no_attempts_may_end_a_later_one(bench: Any) -> None:
    """The runner always sends 1; the server knows that it holds the job, and the job's attempt."""
    bench.plan(1)
    start(bench, 0)
    retry(bench, 0)
    start(bench, 0)
    complete(bench, 0, attempt_id=1)
    assert [row["attempt_id"] for row in bench.results()] == [1, 2]


def test_a_retry_takes_back_what_the_failure_did(bench: Any) -> None:
    """Dependents that were canceled or made ready become blocked; those that ran keep their status."""
    jobs = [PlannedJob(name=f"j{n}", command="x", cancel_on_blocking_job_failure=n not in (3, 4)) for n in range(5)]
    bench.plan(jobs, [(1, 0), (2, 1), (3, 0), (4, 0)])
    start(bench, 0)
    complete(bench, 0, "failed", 1)
    start(bench, 4)
    complete(bench, 4)
    assert bench.statuses() == ["failed", "canceled", "canceled", "ready", "completed"]
    assert retry(bench, 0)["attempt_id"] == 2
    assert bench.statuses() == ["ready", "blocked", "blocked", "blocked", "completed"]
    bench.check_counters()
    start(bench, 0)
    complete(bench, 0)
    assert bench.statuses() == ["completed", "ready", "blocked", "ready", "completed"]
    bench.check_counters()


RULES = '[{"exit_codes": [2], "max_retries": 5}, {"match_all_exit_codes": true, "max_retries": 2}]'


@pytest.mark.parametrize(
    ("rules", "code", "attempts"),
    [(RULES, 2, 5), (RULES, 1, 2), ('[{"exit_codes": [2]}]', 2, 3), ('[{"exit_codes": [2], "max_retries": 2}]', 1, 9)],
)
def test_the_handlers_rule_limits_retries(bench: Any, rules: str, code: int, attempts: int) -> None:
    """The first rule that lists the code counts, then the first that matches all; without a rule there is no limit."""
    handler = FailureHandlerRecord(workflow_id=0, name="h", rules=rules)
    bench.plan([PlannedJob(name="j", command="x", failure_handler=0)], failure_handlers=[handler])
    for _ in range(attempts - 1):
        complete(bench, 0, "failed", code)
        retry(bench, 0)
    complete(bench, 0, "failed", code)
    if attempts == 9:
        assert retry(bench, 0)["attempt_id"] == 10
    else:
        with pytest.raises(RuleError, match=f"has had {attempts} attempts of at most {attempts}"):
            retry(bench, 0)
    assert len(bench.results()) == attempts


def test_a_retry_draws_on_the_budget_of_its_ending(bench: Any) -> None:
    """As in the exchange, separate classes have budgets of their own and do not count for others."""
    bench.plan(1)

    def ended(exit_class: str, limit: int) -> str:
        start(bench, 0)
        complete(bench, 0, "failed", 1, exit_class=exit_class)
        try:
            return str(retry(bench, 0, limit)["status"])
        except RuleError as error:
            return str(error).partition(": ")[2]

    assert [ended("preempted", 3) for _ in range(2)] == ["ready", "ready"]
    assert ended("user_error", 2) == "ready"
    assert ended("node_failure", 2) == "ready"
    assert ended("preempted", 3) == "it has had 3 preempted attempts of at most 3"
    assert retry(bench, 0, 4)["attempt_id"] == 6
    assert ended("oom", 2) == "it has had 2 attempts of at most 2"


def test_a_rule_by_class_limits_retries(bench: Any) -> None:
    """The class of the result chooses it; endings of other classes use the rules after it."""
    rules = [
        {"exit_classes": ["preempted"], "max_retries": 2},
        {"exit_classes": ["oom"], "exit_codes": [9], "max_retries": 9},
        {"match_all_exit_codes": True, "max_retries": 3},
    ]
    handlers = [FailureHandlerRecord(workflow_id=0, name="h", rules=json.dumps(rules))]
    bench.plan([PlannedJob(name="a", command="x", failure_handler=0)], failure_handlers=handlers)
    for exit_class, is_retried in [("preempted", True), ("oom", True), ("preempted", False)]:
        start(bench, 0)
        complete(bench, 0, "failed", 1, exit_class=exit_class)
        if is_retried:
            retry(bench, 0)
    with pytest.raises(RuleError, match="2 preempted attempts of at most 2"):
        retry(bench, 0)


@pytest.mark.parametrize("limit", [0, 1])
def test_a_named_limit_counts_all_attempts(bench: Any, limit: int) -> None:
    """A limit of one allows no retry."""
    bench.plan(1)
    start(bench, 0)
    with pytest.raises(RuleError, match=f"of at most {limit}"):
        retry(bench, 0, limit)


@pytest.mark.parametrize("status", sorted(set(S) - single_steps.RETRYABLE))
def test_only_attempts_that_failed_are_retried(bench: Any, status: S) -> None:
    """In other statuses a retry is refused."""
    bench.plan(1)
    bench.set_status(0, status)
    with pytest.raises(RuleError, match=f"Job cannot be retried: status is {status.label}"):
        retry(bench, 0)


BY_HAND: dict[str, set[str]] = {
    "uninitialized": {"ready", "pending", "running", "disabled"},
    "blocked": {"uninitialized", "disabled"},
    "ready": {"uninitialized", "pending", "running", "pending_failed", "disabled"},
    "pending": {"uninitialized", "ready", "running", "pending_failed"},
    "running": {"uninitialized", "ready", "pending_failed"},
    "completed": {"uninitialized"},
    "failed": {"uninitialized"},
    "canceled": {"uninitialized"},
    "terminated": {"uninitialized"},
    "disabled": {"uninitialized"},
    "pending_failed": {"uninitialized", "ready"},
}


@pytest.mark.parametrize("source", S, ids=lambda status: status.label)
def test_a_status_is_set_by_hand_where_there_is_a_way(bench: Any, source: S) -> None:
    """The job and its dependents change as by a runner's call, or nothing changes and the message has the reason."""
    jobs = 2 if source is S.BLOCKED else 1
    for target in S:
        bench.plan(jobs, [(0, 1)] if source is S.BLOCKED else [])
        if source is not S.BLOCKED:
            bench.set_status(0, source)
        if target in UNBLOCKING:
            with pytest.raises(RuleError, match="Use complete_job API instead"):
                step(bench, "change_status", 0, target.label, 1)
        elif target is source or target.label in BY_HAND[source.label]:
            assert step(bench, "change_status", 0, target.label, 1)["status"] == target.label
        else:
            with pytest.raises(RuleError, match=r"Job \d+ "):
                step(bench, "change_status", 0, target.label, 1)
        bench.check_counters()


def test_what_was_done_is_undone_by_hand(bench: Any) -> None:
    """Direct dependents that ran are reset, too; ready ones become blocked; later ones keep their status."""
    bench.plan(5, [(1, 0), (2, 1), (3, 0), (4, 2)])
    for job in (0, 1, 2):
        bench.claim()
        bench.finish(job)
    assert bench.statuses()[:3] == ["completed"] * 3
    step(bench, "change_status", 0, "uninitialized", 1)
    assert bench.statuses()[:3] == ["uninitialized", "uninitialized", "completed"]
    bench.check_counters()


def test_disabling_the_last_job_completes_the_workflow(bench: Any) -> None:
    """A disabled job counts as finished."""
    bench.plan(2)
    complete(bench, 0)
    step(bench, "change_status", 1, "disabled", 1)
    assert len(bench.events("workflow_completed")) == 1


def test_unknown_jobs_and_nodes_are_not_found(bench: Any) -> None:
    """The messages have their ids."""
    bench.plan(1)
    with pytest.raises(NotFoundError, match="Job not found with ID: 999"), bench.database.write() as tx:
        single_steps.retry_job(tx, 999, 1)
    with pytest.raises(NotFoundError, match="Compute node not found with ID: 77"):
        step(bench, "start_job", 0, 1, 77)


def test_claims_go_by_resources_and_scheduler(bench: Any) -> None:
    """Largest first by the sort method; jobs of the runner's scheduler first, others only if none is left."""
    needs = [
        ResourceRequirementsRecord(workflow_id=0, name="small", num_cpus=1, memory="1g", runtime="PT1H"),
        ResourceRequirementsRecord(workflow_id=0, name="large", num_cpus=4, memory="8g", runtime="PT2H"),
    ]
    schedulers = [SlurmSchedulerRecord(workflow_id=0, name=n, account="a", nodes=1, walltime="1:0:0") for n in "ab"]
    jobs = [
        PlannedJob(name=f"j{n}", command="x", resource_requirements=size, scheduler=scheduler)
        for n, (size, scheduler) in enumerate([(0, None), (1, None), (0, 0), (1, 1)])
    ]
    bench.plan(jobs, resource_requirements=needs, slurm_schedulers=schedulers)
    node = Resources(num_cpus=5, memory_bytes=16 * 2**30, num_nodes=1, runtime_s=7200)
    short = Resources(num_cpus=5, memory_bytes=16 * 2**30, num_nodes=1, runtime_s=3600)
    assert claim(bench, free=short, strict_scheduler_match=True) == [0]
    assert claim(bench, free=node, sort_method="gpus_runtime_memory", strict_scheduler_match=True) == [1]
    assert claim(bench, free=node, strict_scheduler_match=True) == []
    assert claim(bench, free=node) == [2, 3]
    with pytest.raises(RuleError, match="unknown sort method 'best'"):
        claim(bench, sort_method="best")


def test_the_next_jobs_come_in_order_of_their_ids(bench: Any) -> None:
    """Without regard to their requirements, and up to the limit."""
    needs = [ResourceRequirementsRecord(workflow_id=0, name=n) for n in "ab"]
    jobs = [PlannedJob(name=f"j{n}", command="x", resource_requirements=n % 2) for n in range(6)]
    bench.plan(jobs, resource_requirements=needs)
    claimed = []
    for limit in (0, 1, 2, 5):
        with bench.database.write() as tx:
            claimed.append([(job.id or 0) - bench.first_job for job in claim_next(tx, bench.workflow_id, limit).jobs])
    assert claimed == [[], [0], [1, 2], [3, 4, 5]]
    assert bench.column("active_compute_node_id") == [None] * 6


def test_unknown_workflows_hand_out_nothing(bench: Any) -> None:
    """They are not found."""
    wrong: Callable[[Any], Any]
    for wrong in (lambda tx: claim_next(tx, 5, 1), lambda tx: claim_by_resources(tx, 5, Offer(slots=1))):
        with (
            pytest.raises(NotFoundError, match="Workflow not found with ID: 5"),
            bench.database.write() as tx,
        ):
            wrong(tx)
