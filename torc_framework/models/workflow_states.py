"""The state of a workflow in one word, derived from the numbers of its jobs."""

from collections.abc import Mapping
from typing import Final

from torc_framework.models.statuses import DONE, LIVE, UNSUCCESSFUL, JobStatus

CANCELED: Final = "canceled"
SILENT: Final = "silent"
RUNNING: Final = "running"
PENDING_FAILED: Final = "pending_failed"
INTERRUPTED: Final = "interrupted"
UNINITIALIZED: Final = "uninitialized"
READY: Final = "ready"
FAILED: Final = "failed"
COMPLETED: Final = "completed"

_NOT_BEGUN: Final = frozenset({JobStatus.UNINITIALIZED.label, JobStatus.DISABLED.label})
_LIVE: Final = frozenset(status.label for status in LIVE)
_DONE: Final = frozenset(status.label for status in DONE)
_UNSUCCESSFUL: Final = frozenset(status.label for status in UNSUCCESSFUL)


def workflow_state(
    counts: Mapping[str, int], *, interrupted: int = 0, is_canceled: bool = False, is_silent: bool = False
) -> str:
    """Return the state of a workflow; the first that applies.

    Args:
        counts: Numbers of jobs by status label.
        interrupted: How many of the terminated jobs were interrupted and run again.
        is_canceled: A person canceled the workflow.
        is_silent: It has runners, and none of them has been heard of lately (`models.runner_states`).
    """
    present = {label for label, count in counts.items() if count}
    states = (
        (CANCELED, is_canceled),
        (SILENT, is_silent and bool(present & _LIVE)),
        (RUNNING, bool(present & _LIVE)),
        (PENDING_FAILED, JobStatus.PENDING_FAILED.label in present),
        (INTERRUPTED, interrupted > 0),
        (UNINITIALIZED, present <= _NOT_BEGUN),
        (READY, not present <= _DONE),
        (FAILED, bool(present & _UNSUCCESSFUL)),
    )
    return next((state for state, applies in states if applies), COMPLETED)
