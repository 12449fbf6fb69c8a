"""What the pods of a job that has not ended say about its tasks."""

from typing import Any, Final

import pytest
from pod_statuses import pod
from torc_k8s.container.program import GO
from torc_k8s.executor.group_pods import group_notes
from torc_k8s.executor.live_members import tasks_of
from torc_k8s.groups import GroupMember, GroupPlan, GroupState

RUNNING: Final = "node_silent"
"""A captured pod whose container runs."""
PLAN: Final = GroupPlan(
    members=(GroupMember(rank=0, name="l", actions={"RESCHEDULE": "13"}), GroupMember(rank=1, name="w")),
    ignore_nonlead_status=True,
    max_retries=1,
)


def member(captured: str, rank: int, *, retry: int = 0, go: bool = True) -> dict[str, Any]:
    """Return a captured pod as one of a group."""
    found = pod(captured)
    metadata = found["metadata"]
    metadata["name"] = f"pod-{rank}-{retry}"
    metadata["labels"] = {**metadata.get("labels", {}), "torc-member": str(rank), "torc-retry": str(retry)}
    notes = group_notes(GroupState(PLAN), rank) | ({GO: "10.0.0.1,10.0.0.2"} if go else {})
    metadata["annotations"] = {**metadata.get("annotations", {}), **notes}
    return found


def essence(*pods: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(task["name"], task["status"], task["code"], task["pod"]) for task in tasks_of(pods)]


@pytest.mark.parametrize(
    ("captured", "go", "status"),
    [
        ("unschedulable", False, "SCHEDULING"),
        ("image_being_pulled", False, "INITIALIZING"),
        (RUNNING, False, "INITIALIZING"),
        (RUNNING, True, "RUNNING"),
    ],
)
def test_a_task_has_the_status_of_its_pod(captured: str, go: bool, status: str) -> None:
    """Behind the barrier a command has not begun, although its container runs."""
    found = essence(member(RUNNING, 0, go=go), member(captured, 1, go=go))
    assert found == [("l", "RUNNING" if go else "INITIALIZING", None, "pod-0-0"), ("w", status, None, "pod-1-0")]


def test_a_task_that_ended_has_what_the_rules_make_of_it() -> None:
    """One whose end is rescheduled goes on with its next pod; one without a pod is about to get it."""
    assert essence(member(RUNNING, 0), member("exit_13", 1)) == [
        ("l", "RUNNING", None, "pod-0-0"),
        ("w", "FAILED", 13, "pod-1-0"),
    ]
    assert essence(member("exit_13", 0), member(RUNNING, 1))[0] == ("l", "PROCESSING", None, None)
    assert essence(member("exit_13", 0), member("unschedulable", 0, retry=1), member(RUNNING, 1)) == [
        ("l", "SCHEDULING", None, "pod-0-1"),
        ("w", "RUNNING", None, "pod-1-0"),
    ]
    assert essence(member(RUNNING, 0, go=False)) == [
        ("l", "INITIALIZING", None, "pod-0-0"),
        ("w", "PROCESSING", None, None),
    ]


def test_what_a_pod_waits_for_is_told() -> None:
    (task,) = tasks_of([pod("unschedulable")])
    assert (task["name"], task["status"]) == ("", "SCHEDULING")
    assert "nodes are available" in task["message"]
    assert [(task["status"], task["code"]) for task in tasks_of([pod("exit_13")])] == [("FAILED", 13)]
