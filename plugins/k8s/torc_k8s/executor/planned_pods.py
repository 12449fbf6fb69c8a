"""What an attempt consists of: one pod, or the pods of a group."""

from collections.abc import Callable
from typing import Any

from attrs import frozen

from torc_k8s.groups import GroupPlan

BodyOf = Callable[[int, int], dict[str, Any]]
"""Returns a new pod of a member: by its rank, and the number of the pod among those of this member, from 0."""


@frozen
class PlannedPods:
    """The pods of an attempt that is to begin.

    Attributes:
        body: Returns the pods.
        group: The group that they are; None for a single pod, whose rank is 0.
    """

    body: BodyOf
    group: GroupPlan | None = None
