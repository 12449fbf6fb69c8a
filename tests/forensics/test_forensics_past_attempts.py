"""Past attempts, their cost, and whether a change helped."""

from typing import Any

from torc_framework.forensics.past_attempts import past_attempts
from torc_framework.models.records import ResourceRequirementsRecord, ResultRecord
from torc_framework.models.recovery import RecoveryEntry

GIB = 1 << 30


def attempt(run: int, number: int, status: str, minutes: float, memory: int | None = None) -> ResultRecord:
    """Return the end of an attempt that asked for this much memory."""
    seen = {"executor": "local"} | ({} if memory is None else {"memory_limit_bytes": memory, "runtime_limit_s": 3600.0})
    return ResultRecord(
        job_id=1, workflow_id=1, run_id=run, attempt_id=number, compute_node_id=1, return_code=0,
        exec_time_minutes=minutes, completion_time="", status=status, observation=seen,
    )  # fmt: skip


def requirements(**fields: Any) -> ResourceRequirementsRecord:
    return ResourceRequirementsRecord(
        workflow_id=1, **{"name": "r", "num_cpus": 4, "memory": "4g", "runtime": "PT1H", **fields}
    )


def entry(run: int, number: int, old: str, new: str) -> RecoveryEntry:
    """Return what a recovery did after an attempt."""
    return RecoveryEntry(
        1, 1, 1, "a", "", run, number, run + 1, "recovery_oom", "oom", ["oom"], 1.0, [], 1, 2, old, new,
        "PT1H", "PT1H", 2, 4,
    )  # fmt: skip


def test_a_change_that_helped_paid() -> None:
    """Attempts are ordered by run and number; costs are run time multiplied by CPUs on all nodes."""
    found = past_attempts(
        [attempt(2, 2, "completed", 30, 4 * GIB), attempt(1, 1, "failed", 60, 2 * GIB)], requirements(num_nodes=2)
    )
    assert [each.cpu_hours for each in found] == [8.0, 4.0]
    assert [each.helped for each in found] == [None, True]
    assert found[1].before is not None
    assert (found[1].before.as_dict()["memory"], found[1].request.as_dict()["memory"]) == ("2g", "4g")


def test_a_change_that_did_not_help_did_not_pay() -> None:
    """Attempts without a change between them have nothing to pay."""
    found = past_attempts(
        [attempt(1, 1, "failed", 6, GIB), attempt(1, 2, "failed", 6, GIB), attempt(2, 3, "failed", 6, 2 * GIB)],
        requirements(),
    )
    assert [each.helped for each in found] == [None, None, False]


def test_recoveries_name_who_decided_and_the_cpus_of_that_time() -> None:
    """A recovery is shown with the attempt that follows it."""
    found = past_attempts(
        [attempt(1, 1, "failed", 60), attempt(2, 2, "completed", 60)], requirements(), [entry(1, 1, "2g", "4g")]
    )
    assert [each.decided_by for each in found] == [None, "recovery_oom"]
    assert [each.cpu_hours for each in found] == [2.0, 4.0]
    assert found[1].as_dict()["request_before"] == {"num_cpus": 2, "memory": "2g", "runtime": "PT1H"}
    assert found[1].helped is True


def test_jobs_that_asked_for_nothing_have_no_requests() -> None:
    """What everybody gets by default is no request."""
    (found,) = past_attempts([attempt(1, 1, "failed", 6)], requirements(name="default"))
    assert found.request.as_dict() == {"num_cpus": 4, "memory": None, "runtime": None}
    assert found.helped is None
