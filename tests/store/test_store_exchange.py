"""The exchange: every report counts once, and every job has one holder."""

from typing import Any

import pytest

from torc_framework.models.exchange import RetryRequest, StartedReport
from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import FailureHandlerRecord, FileRecord, ResourceRequirementsRecord
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.record_kinds.files import FILES
from torc_framework.store.records import crud
from torc_framework.store.runs import lifecycle
from torc_framework.store.runs.workflow_status import unfinished_counts


def test_a_job_goes_from_claim_to_result(bench: Any) -> None:
    """Claim, start and end change the status, and store a result and events."""
    bench.plan(1)
    (job,) = bench.claim()
    assert (job.name, job.command, job.attempt_id, bench.statuses()) == ("job0", "run 0", 1, ["pending"])
    bench.exchange(started=[bench.started(0)])
    assert bench.statuses() == ["running"]
    observation = {"executor": "local", "exit_code": 0}
    reply = bench.end(
        0,
        exit_code=0,
        exit_class="success",
        reason="exit code 0",
        peak_memory_bytes=5_000_000_000,
        cpu_time_s=0.25,
        observation=observation,
    )
    assert (reply.is_complete, bench.statuses()) == (True, ["completed"])
    (result,) = bench.results()
    assert result["return_code"] == 0
    assert result["exec_time_minutes"] == pytest.approx(1.5 / 60)
    assert result["peak_memory_bytes"] == 5_000_000_000
    assert result["observation"] == observation
    assert (result["status"], result["run_id"], result["attempt_id"]) == ("completed", 1, 1)
    assert result["compute_node_id"] == bench.nodes[0]
    assert result["completion_time"].endswith("Z")
    assert bench.column("result_id") == [result["id"]]
    kinds = [event["event_type"] for event in bench.events()]
    assert kinds == ["compute_node_started", "workflow_started", "job_started", "job_completed", "workflow_completed"]
    started, completed = bench.events("job_started", "job_completed")
    assert (started["job_name"], started["compute_node_id"], started["run_id"]) == ("job0", bench.nodes[0], 1)
    assert (completed["status"], completed["return_code"]) == ("completed", 0)


def test_start_and_end_may_come_together(bench: Any) -> None:
    """Start and end of a short job are reported in one exchange, which also claims its dependent."""
    bench.plan(2, [(1, 0)])
    bench.claim()
    reply = bench.exchange(started=[bench.started(0)], ended=[bench.ended(0)], slots=1)
    assert [job.name for job in reply.jobs] == ["job1"]


def test_reports_may_be_sent_again(bench: Any) -> None:
    """A repeated report stores no second result and no second event, and causes no second retry."""
    bench.plan(2, [(1, 0)])
    bench.claim()
    started, ended = bench.started(0), bench.ended(0, "failed", 3, retry=RetryRequest(2))
    for _ in range(3):
        bench.exchange(started=[started], ended=[ended, ended])
    assert (bench.statuses()[0], bench.attempt(0)) == ("ready", 2)
    assert len(bench.results()) == len(bench.events("job_started")) == len(bench.events("job_retried")) == 1
    bench.claim()
    bench.exchange(started=[started], ended=[ended])
    assert bench.statuses()[0] == "pending"
    bench.exchange(started=[bench.started(0)])
    last = bench.ended(0, "completed", attempt=2)
    for _ in range(3):
        bench.exchange(ended=[last])
    assert bench.statuses() == ["completed", "ready"]
    assert [(result["attempt_id"], result["status"]) for result in bench.results()] == [(1, "failed"), (2, "completed")]
    assert len(bench.events("job_completed")) == 1
    bench.check_counters()


def test_an_end_without_a_start_counts(bench: Any) -> None:
    """The end of an attempt is stored also if the report of its start was lost."""
    bench.plan(1)
    bench.claim()
    bench.end(0)
    assert bench.statuses() == ["completed"]


def test_an_end_of_a_released_job_counts(bench: Any) -> None:
    """A job that was released in the name of its runner, and ran all the same, does not run again."""
    bench.plan(1)
    bench.claim()
    bench.exchange(released=[bench.job_id(0)])
    bench.end(0, attempt=1)
    assert bench.statuses() == ["completed"]


def test_every_attempt_has_its_result(bench: Any) -> None:
    """A retry keeps the result of the failed attempt; the last result is the current one."""
    bench.plan(1)
    for attempt in (1, 2):
        bench.start(0)
        bench.retry(0, 3)
        assert (bench.statuses(), bench.attempt(0)) == (["ready"], attempt + 1)
        assert bench.column("result_id") == [None]
    bench.start(0)
    bench.retry(0, 3)
    assert bench.statuses() == ["failed"]
    assert [result["attempt_id"] for result in bench.results()] == [1, 2, 3]
    assert bench.column("result_id") == [bench.results()[-1]["id"]]
    (first, _) = bench.events("job_retried")
    assert (first["previous_attempt"], first["new_attempt"], first["reason"]) == (1, 2, "rule 1")


def test_a_retry_that_is_held_comes_back_at_once(bench: Any) -> None:
    """The runner that asked claims the next attempt in the same exchange, before other ready jobs."""
    bench.plan(3)
    bench.claim(1)
    bench.exchange(started=[bench.started(0)])
    reply = bench.retry(0, 2, hold=True)
    assert (reply.held, [job.attempt_id for job in reply.jobs]) == ([bench.job_id(0)], [2])
    assert bench.statuses() == ["pending", "ready", "ready"]
    assert bench.column("active_compute_node_id")[0] == bench.nodes[0]


def test_dependents_wait_for_the_retry(bench: Any) -> None:
    """A failure that is retried does not cancel dependents."""
    bench.plan(2, [(1, 0)])
    bench.start(0)
    bench.retry(0, 2)
    assert bench.statuses() == ["ready", "blocked"]
    bench.finish(0)
    assert bench.statuses() == ["completed", "ready"]


def test_a_lost_attempt_runs_again_three_times_at_most(bench: Any) -> None:
    """The result of a lost attempt has the class of lost ones; the job runs again, but not without limit."""
    bench.plan(1)
    for _ in range(2):
        bench.start(0)
        bench.end(0, "failed", 1, lost=True, retry=RetryRequest(3))
        assert bench.statuses() == ["ready"]
    bench.start(0)
    bench.end(0, "failed", 1, lost=True, retry=RetryRequest(3))
    assert bench.statuses() == ["failed"]
    assert [result["return_code"] for result in bench.results()] == [-128] * 3
    assert {result["exit_class"] for result in bench.results()} == {"orphaned"}
    assert len(bench.events("job_lost")) == 2


def test_lost_attempts_are_counted_apart_from_failed_ones(bench: Any) -> None:
    """A job that has been retried by a rule still runs again after the loss of its runner."""
    bench.plan(1)
    for _ in range(4):
        bench.start(0)
        bench.retry(0, 10)
    bench.start(0)
    bench.end(0, "failed", 1, lost=True)
    assert (bench.statuses(), bench.attempt(0)) == (["ready"], 6)


def test_a_late_end_of_a_lost_attempt_is_ignored(bench: Any) -> None:
    """The end of a lost attempt changes nothing when the next one is under way."""
    bench.plan(1)
    bench.start(0)
    late = bench.ended(0)
    bench.end(0, lost=True)
    bench.exchange(ended=[late])
    assert (bench.statuses(), len(bench.results())) == (["ready"], 1)


def test_a_canceled_job_keeps_its_result(bench: Any) -> None:
    """The result of an attempt that its runner stopped after a cancellation is stored; the job stays canceled."""
    bench.plan(2, [(1, 0)])
    bench.start(0)
    with bench.database.write() as tx:
        lifecycle.cancel_workflow(tx, bench.workflow_id)
    assert bench.statuses() == ["canceled", "blocked"]
    reply = bench.exchange(
        ended=[bench.ended(0, "canceled", 143, signal=15, retry=RetryRequest(5))] * 2, slots=5, want_counts=True
    )
    assert reply.is_canceled
    assert reply.jobs == []
    assert reply.counts == {"canceled": 1, "blocked": 1}
    assert bench.statuses() == ["canceled", "blocked"]
    assert [(result["status"], result["signal"]) for result in bench.results()] == [("canceled", 15)]


def test_a_canceled_workflow_hands_out_nothing(bench: Any) -> None:
    """Ready jobs stay ready."""
    bench.plan(2)
    with bench.database.write() as tx:
        lifecycle.cancel_workflow(tx, bench.workflow_id)
    reply = bench.exchange(slots=2)
    assert (reply.jobs, reply.is_canceled, bench.statuses()) == ([], True, ["ready", "ready"])


def test_a_released_job_is_ready_for_all(bench: Any) -> None:
    """Another runner can claim a released job."""
    bench.plan(1)
    other = bench.node()
    bench.claim()
    bench.exchange(released=[bench.job_id(0), 999])
    assert [job.id for job in bench.claim(node=other)] == [bench.job_id(0)]


def test_a_late_release_takes_nothing_from_another_runner(bench: Any) -> None:
    """A repeated release or start of a job that another runner holds changes nothing."""
    bench.plan(1)
    other = bench.node()
    bench.claim()
    bench.exchange(released=[bench.job_id(0)])
    bench.claim(node=other)
    bench.exchange(released=[bench.job_id(0)], started=[StartedReport(bench.job_id(0), 1, 0.0)])
    assert (bench.statuses(), bench.column("active_compute_node_id")) == (["pending"], [other])


def test_jobs_of_a_lost_answer_are_handed_out_again(bench: Any) -> None:
    """A runner sends the jobs that it holds; claimed jobs that it does not hold are in the reply again."""
    bench.plan(4)
    first, second, third = bench.claim(3)
    reply = bench.exchange(holding=[first.id])
    assert [(job.id, job.command) for job in reply.jobs] == [(second.id, "run 1"), (third.id, "run 2")]
    again = bench.exchange(holding=[first.id, second.id, third.id], slots=1)
    assert [job.name for job in again.jobs] == ["job3"]


def test_another_run_is_refused(bench: Any) -> None:
    """A runner of an earlier run is refused and changes nothing."""
    bench.plan(1)
    bench.claim()
    with pytest.raises(RuleError, match="Run ID mismatch: provided 7 but workflow status has 1"):
        bench.exchange(run_id=7, ended=[bench.ended(0)])
    assert bench.statuses() == ["pending"]


def test_unknown_workflows_and_runners_are_refused(bench: Any) -> None:
    """The workflow and the runner must exist, and belong together."""
    bench.plan(1)
    strange = bench.nodes[0]
    with pytest.raises(NotFoundError, match="Compute node not found with ID: 999"):
        bench.exchange(999)
    bench.plan(1)
    with pytest.raises(NotFoundError, match="Compute node not found"):
        bench.exchange(strange)
    bench.workflow_id = 999
    with pytest.raises(NotFoundError, match="Workflow not found with ID: 999"):
        bench.exchange(run_id=1)


@pytest.mark.parametrize("status", ["ready", "running", "blocked", "nonsense"])
def test_an_attempt_ends_in_an_end(bench: Any, status: str) -> None:
    """A status in which no attempt ends is refused, and the whole exchange is rolled back."""
    bench.plan(2)
    bench.claim()
    with pytest.raises(RuleError, match=status):
        bench.exchange(ended=[bench.ended(0), bench.ended(1, status)])
    assert (bench.statuses(), bench.results()) == (["pending", "pending"], [])


@pytest.mark.parametrize(
    "fields", [{"ended_at": 1e300}, {"peak_memory_bytes": 2**63}, {"code": 2**64}, {"file_mtimes": {2**70: 1.0}}]
)
def test_numbers_that_are_too_large_are_refused(bench: Any, fields: dict[str, Any]) -> None:
    """A number that a column cannot hold is refused, and the whole exchange is rolled back."""
    bench.plan(1)
    bench.claim()
    with pytest.raises(RuleError, match="a number is too large"):
        bench.end(0, **fields)
    assert (bench.statuses(), bench.results()) == (["pending"], [])


def test_jobs_of_other_workflows_are_not_touched(bench: Any) -> None:
    """A report changes only jobs of its own workflow."""
    bench.plan(1)
    bench.claim()
    ended, first = bench.ended(0), bench.workflow_id
    bench.plan(1)
    bench.exchange(ended=[ended])
    bench.workflow_id = first
    assert bench.statuses() == ["pending"]


def test_output_files_get_their_times(bench: Any) -> None:
    """The modification times that a runner reports are stored."""
    bench.plan(
        [PlannedJob("a", "x", output_files=[0, 1])],
        files=[FileRecord(workflow_id=0, name=name, path=f"/{name}") for name in ("f", "g")],
    )
    (job,) = bench.claim()
    assert [file.path for file in job.output_files] == ["/f", "/g"]
    bench.end(0, file_mtimes={job.output_files[0].id: 12.5})
    with bench.database.read() as tx:
        times = [crud.get(tx, FILES, file.id).get("st_mtime") for file in job.output_files]
    assert times == [12.5, None]


def test_a_claimed_job_brings_all_it_needs(bench: Any) -> None:
    """A claimed job has its resources, rules and script; default requirements set no time limit."""
    bench.plan(
        [
            PlannedJob(
                "a",
                "x",
                invocation_script="wrap.sh",
                executor="special",
                resource_requirements=0,
                failure_handler=0,
                supports_termination=True,
            ),
            PlannedJob("b", "y"),
        ],
        resource_requirements=[
            ResourceRequirementsRecord(
                workflow_id=0, name="big", num_cpus=3, num_gpus=1, num_nodes=2, memory="2g", runtime="PT2H"
            )
        ],
        failure_handlers=[FailureHandlerRecord(workflow_id=0, name="h", rules='[{"exit_codes": [1]}]')],
    )
    big, small = sorted(bench.claim(), key=lambda job: job.name)
    assert (big.invocation_script, big.executor, big.supports_termination) == ("wrap.sh", "special", True)
    assert big.failure_rules == '[{"exit_codes": [1]}]'
    asked = big.resources
    assert (asked.num_cpus, asked.memory_bytes, asked.num_gpus, asked.num_nodes) == (3, 2 * 1024**3, 1, 2)
    assert (asked.runtime_s, small.resources.runtime_s) == (7200, None)
    assert (small.resources.num_cpus, small.resources.memory_bytes, small.failure_rules) == (1, 1024**2, None)


def test_counts_are_given_when_wanted(bench: Any) -> None:
    """On request, the reply has the number of jobs by status after the exchange."""
    bench.plan(3, [(2, 0)])
    assert bench.exchange().counts is None
    assert bench.exchange(slots=1, want_counts=True).counts == {"pending": 1, "ready": 1, "blocked": 1}


def test_unfinished_jobs_are_counted_up_to_a_limit(bench: Any) -> None:
    """Statuses without jobs are left out, and those of ended jobs."""
    bench.plan(1_003, [(2, 0)])
    bench.exchange(slots=1)
    with bench.database.read() as tx:
        assert unfinished_counts(tx, bench.workflow_id) == {"ready": 1_000, "pending": 1, "blocked": 1}
    bench.end(0)
    with bench.database.read() as tx:
        assert unfinished_counts(tx, bench.workflow_id) == {"ready": 1_000}
