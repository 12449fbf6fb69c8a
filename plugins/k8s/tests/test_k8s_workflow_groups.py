"""The jobs of a workflow in the words of OSMO."""

from typing import Any

import pytest
from torc_k8s.groups.workflow_groups import groups_of, workflow_status

from torc_framework.api import JobRecord, ResultRecord


def job(number: int, status: str, **values: Any) -> JobRecord:
    """Return a job."""
    return JobRecord(id=number, workflow_id=1, name=f"j{number}", command="true", status=status, **values)


def result(number: int, status: str, code: int, exit_class: str | None, **values: Any) -> ResultRecord:
    """Return a job's result."""
    facts: dict[str, Any] = {"run_id": 1, "attempt_id": 1, "exec_time_minutes": 0.1, "completion_time": "", **values}
    return ResultRecord(
        job_id=number, workflow_id=1, compute_node_id=1, return_code=code, status=status, exit_class=exit_class, **facts
    )


@pytest.mark.parametrize(
    ("status", "ending", "expected"),
    [
        ("uninitialized", None, ("SUBMITTING", None)),
        ("blocked", None, ("WAITING", None)),
        ("ready", ("failed", 3, "user_error"), ("PROCESSING", None)),
        ("pending", None, ("SCHEDULING", None)),
        ("running", None, ("RUNNING", None)),
        ("completed", ("completed", 0, "success"), ("COMPLETED", 0)),
        ("failed", ("failed", 3, "user_error"), ("FAILED", 3)),
        ("failed", ("failed", 137, "oom"), ("FAILED_EVICTED", 3004)),
        ("terminated", ("terminated", 152, "timeout"), ("FAILED_EXEC_TIMEOUT", None)),
        ("terminated", ("terminated", 1, "preempted"), ("FAILED_PREEMPTED", 3006)),
        ("failed", ("failed", 1, "of the future"), ("FAILED", 1)),
        ("failed", None, ("FAILED", None)),
        ("canceled", None, ("FAILED_UPSTREAM", 3000)),
    ],
)
def test_a_single_job(status: str, ending: tuple[str, int, str] | None, expected: tuple[str, int | None]) -> None:
    """It is a group of one task, named as the job."""
    results = [] if ending is None else [result(1, *ending)]
    (group,) = groups_of([job(1, status)], results, is_canceled=False)
    assert (group["status"], group["code"]) == expected
    (task,) = group["tasks"]
    assert (task["name"], task["status"], task["code"], task["lead"]) == ("j1", *expected, True)


def test_a_group_has_what_its_executor_saw() -> None:
    """Of its newest result; before it runs, and after a failure upstream, its tasks are those that the job declares."""
    declared = {"k8s": {"group": {"tasks": [{"name": "l", "lead": True}, {"name": "w"}]}}}
    seen = {"status": "FAILED", "tasks": [{"name": "l", "status": "FAILED", "code": 3, "lead": True, "retries": 1}]}
    old = result(1, "completed", 0, "success", observation={"raw": {}})
    new = result(1, "failed", 3, "user_error", attempt_id=2, observation={"raw": {"group": seen}})
    jobs = [job(1, "failed", executor_options=declared), job(2, "canceled", executor_options=declared)]
    first, second = groups_of(jobs, [new, old], is_canceled=False)
    assert (first["status"], first["tasks"]) == ("FAILED", seen["tasks"])
    assert [(task["name"], task["status"], task["code"]) for task in second["tasks"]] == [
        ("l", "FAILED_UPSTREAM", 3000),
        ("w", "FAILED_UPSTREAM", 3000),
    ]
    assert [group["status"] for group in groups_of(jobs[1:], [], is_canceled=True)] == ["FAILED_CANCELED"]
    assert groups_of([job(1, "disabled")], [], is_canceled=False) == []


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], "COMPLETED"),
        (["COMPLETED", "COMPLETED"], "COMPLETED"),
        (["WAITING", "PROCESSING"], "PENDING"),
        (["COMPLETED", "WAITING"], "RUNNING"),
        (["FAILED_PREEMPTED", "FAILED_UPSTREAM", "COMPLETED"], "FAILED_PREEMPTED"),
        (["FAILED_PREEMPTED", "FAILED"], "FAILED"),
        (["FAILED", "FAILED_SERVER_ERROR", "FAILED_CANCELED"], "FAILED_CANCELED"),
    ],
)
def test_the_status_of_a_workflow(statuses: list[str], expected: str) -> None:
    assert workflow_status(statuses) == expected
