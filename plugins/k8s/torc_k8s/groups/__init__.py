"""Groups: attempts that consist of several pods, as several equal nodes or as a group of OSMO."""

from torc_k8s.groups.options import GroupOptions, GroupTask
from torc_k8s.groups.plan import GroupMember, GroupPlan, plan_group
from torc_k8s.groups.state import CreatePod, DeletePod, EndGroup, FoundPod, GroupAction, GroupState, LetBegin
from torc_k8s.groups.statuses import status_of_end

__all__ = [
    "CreatePod",
    "DeletePod",
    "EndGroup",
    "FoundPod",
    "GroupAction",
    "GroupMember",
    "GroupOptions",
    "GroupPlan",
    "GroupState",
    "GroupTask",
    "LetBegin",
    "plan_group",
    "status_of_end",
]
