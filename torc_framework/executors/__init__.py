"""The contract of executors: the base classes that executor plugins implement, and the values that they exchange.

An executor has one or both of two capabilities. A `Launcher` runs single attempts and reports how they ended. An
`Allocator` obtains compute nodes, on which a runner is then started. Capabilities are data (`Executor.capabilities`):
the core asks what an executor can do and never which executor it is.
"""

from torc_framework.executors.allocator import (
    ALLOCATION_VARIABLE,
    Allocation,
    AllocationEnding,
    AllocationRequest,
    Allocator,
    RunnerStart,
)
from torc_framework.executors.attempts import (
    Attempt,
    AttemptEnded,
    AttemptFollowed,
    AttemptKey,
    AttemptSlotFreed,
    AttemptStarted,
    AttemptWaiting,
    AttemptWithdrawn,
    LauncherEvent,
)
from torc_framework.executors.base import DEFAULT_EXECUTOR, Capabilities, Executor, RunnerContext
from torc_framework.executors.launcher import Adoption, Launcher, LaunchSite

__all__ = [
    "ALLOCATION_VARIABLE",
    "DEFAULT_EXECUTOR",
    "Adoption",
    "Allocation",
    "AllocationEnding",
    "AllocationRequest",
    "Allocator",
    "Attempt",
    "AttemptEnded",
    "AttemptFollowed",
    "AttemptKey",
    "AttemptSlotFreed",
    "AttemptStarted",
    "AttemptWaiting",
    "AttemptWithdrawn",
    "Capabilities",
    "Executor",
    "LaunchSite",
    "Launcher",
    "LauncherEvent",
    "RunnerContext",
    "RunnerStart",
]
