"""The observation of a group's end."""

import os
from typing import Any

import pytest
from torc_k8s.executor.group_pods import observe_group
from torc_k8s.executor.member_pod import LogPaths
from torc_k8s.groups import EndGroup, GroupMember, GroupPlan, GroupState

from torc_framework.api import ExitClass, ExitObservation, classify_exit


@pytest.mark.parametrize(
    ("status", "seen", "exit_code", "exit_class"),
    [
        ("COMPLETED", {"exit_code": 0}, 0, ExitClass.SUCCESS),
        ("COMPLETED", {"exit_code": 16}, 0, ExitClass.SUCCESS),
        ("COMPLETED", {"signal": 9, "scheduler_state": "OOMKilled"}, 0, ExitClass.SUCCESS),
        ("COMPLETED", {"exit_code": 0, "missing_outputs": ("x",)}, 0, ExitClass.OUTPUT_MISSING),
        ("FAILED", {"exit_code": 0}, None, ExitClass.UNKNOWN),
        ("FAILED", {"exit_code": 3}, 3, ExitClass.USER_ERROR),
        ("FAILED", {"exit_code": 0, "missing_outputs": ("x",)}, None, ExitClass.UNKNOWN),
        ("FAILED_PREEMPTED", {"scheduler_state": "Preempted"}, None, ExitClass.PREEMPTED),
    ],
)
def test_the_end_of_the_deciding_member_is_that_of_the_group(
    status: str, seen: dict[str, Any], exit_code: int | None, exit_class: ExitClass
) -> None:
    """Unless an exit action changed it; the statuses of all tasks are in the observation."""
    state = GroupState(GroupPlan(members=(GroupMember(rank=0, name="a"),)))
    found = observe_group(state, EndGroup(status, 0), ExitObservation("k8s", **seen, raw={"node": "n"}))
    assert found.exit_code == exit_code
    assert classify_exit(found).exit_class is exit_class
    assert (found.raw["node"], found.raw["group"]["tasks"][0]["name"]) == ("n", "a")


def test_each_pod_has_files_of_its_own() -> None:
    """The first pod of the lead has those of the job."""
    logs = LogPaths("/o.ut/j1.o", "/o.ut/j1.e")
    assert logs.of_member(0, 0) == logs
    assert logs.of_member(2, 1) == LogPaths("/o.ut/j1_m2_p1.o", "/o.ut/j1_m2_p1.e")
    assert LogPaths("/o/j1.o", "/o/j1.o").of_member(1, 0).different == ("/o/j1_m1.o",)
    assert LogPaths(os.devnull, os.devnull).of_member(1, 0).different == ()
