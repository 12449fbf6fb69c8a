"""Statuses of tasks and groups in the words of OSMO.

Sources: NVIDIA OSMO, user guide, "Exit Codes" and "Task Lifecycle"; its service's update of a group's status for the
order of the checks.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from torc_framework.api import ExitClass, ExitObservation, classify_exit

COMPLETED: Final = "COMPLETED"
FAILED: Final = "FAILED"
RESCHEDULED: Final = "RESCHEDULED"
PROCESSING: Final = "PROCESSING"
INITIALIZING: Final = "INITIALIZING"
RUNNING: Final = "RUNNING"
UPSTREAM: Final = "FAILED_UPSTREAM"
UPSTREAM_CODE: Final = 3000
STATUS_AFTER: Final[Mapping[str, str]] = {"COMPLETE": COMPLETED, "FAIL": FAILED, "RESCHEDULE": RESCHEDULED}
"""Status of a task after each exit action."""
WITHOUT_ACTION: Final = frozenset(
    {UPSTREAM, "FAILED_SERVER_ERROR", "FAILED_CANCELED", "FAILED_EXEC_TIMEOUT", "FAILED_QUEUE_TIMEOUT"}
)
"""Statuses to which exit actions do not apply."""
_BY_CLASS: Final[Mapping[ExitClass, tuple[str, int | None]]] = {
    ExitClass.OOM: ("FAILED_EVICTED", 3004),
    ExitClass.EVICTED: ("FAILED_EVICTED", 3004),
    ExitClass.PREEMPTED: ("FAILED_PREEMPTED", 3006),
    ExitClass.NODE_FAILURE: ("FAILED_BACKEND_ERROR", 3001),
    ExitClass.ORPHANED: ("FAILED_BACKEND_ERROR", 3001),
    ExitClass.IMAGE_PULL: ("FAILED_IMAGE_PULL", 301),
    ExitClass.LAUNCH_FAILURE: ("FAILED_START_ERROR", 3003),
    ExitClass.INFRA_ERROR: ("FAILED_SERVER_ERROR", 3002),
    ExitClass.UPSTREAM_FAILED: (UPSTREAM, UPSTREAM_CODE),
    ExitClass.CANCELED: ("FAILED_CANCELED", None),
    ExitClass.TIMEOUT: ("FAILED_EXEC_TIMEOUT", None),
    ExitClass.UNKNOWN: (FAILED, 4000),
}
"""Status and code of a task by the class of its end, where its own exit code does not determine them."""


def status_of_end(seen: ExitObservation) -> tuple[str, int | None]:
    """Return status and code of a task whose pod has ended, before its exit actions; a signal n is code 128+n."""
    found = status_of_class(classify_exit(seen).exit_class)
    if found is not None:
        return found
    code = seen.exit_code if seen.signal is None else 128 + seen.signal
    return (COMPLETED if code == 0 else FAILED), code


def status_of_class(exit_class: ExitClass) -> tuple[str, int | None] | None:
    """Return status and code by a class; None where the exit code determines them."""
    return _BY_CLASS.get(exit_class)


def is_finished(status: str) -> bool:
    """Return whether a status is final; a rescheduled task goes on with its next pod."""
    return status == COMPLETED or is_failed(status)


def is_failed(status: str) -> bool:
    """Return whether a status is a failure."""
    return status.startswith(FAILED)


_OF_ANY: Final = (UPSTREAM, "FAILED_SERVER_ERROR", "FAILED_PREEMPTED")
"""Statuses that a group takes from any of its tasks, the first that applies."""


def group_status(statuses: Sequence[str], *, ignore_nonlead_status: bool) -> str:
    """Return the status of a group.

    Args:
        statuses: Those of the newest attempts of its tasks; the first is the lead's.
        ignore_nonlead_status: Only the status of the lead counts.
    """
    if not all(map(is_finished, statuses)):
        has_begun = any(status == RUNNING or is_finished(status) for status in statuses)
        return RUNNING if has_begun else INITIALIZING
    considered = statuses[:1] if ignore_nonlead_status else statuses
    of_any = next((status for status in _OF_ANY if status in statuses), None)
    if of_any is not None:
        return of_any
    if "FAILED_EVICTED" in considered:
        return "FAILED_EVICTED"
    return FAILED if any(map(is_failed, considered)) else COMPLETED
