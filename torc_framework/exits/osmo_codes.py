"""Exit codes and statuses of OSMO and their exit classes.

Sources: NVIDIA OSMO, user guide, "Exit Codes" and "Task Lifecycle".
"""

from collections.abc import Mapping
from typing import Final

from torc_framework.models.exits import ExitClass

_C = ExitClass
CODES: Final[Mapping[int, tuple[ExitClass, str]]] = {
    0: (_C.SUCCESS, "completed"),
    301: (_C.IMAGE_PULL, "waits after failed attempts to pull an image"),
    302: (_C.IMAGE_PULL, "an image could not be pulled"),
    303: (_C.LAUNCH_FAILURE, "configuration of a container is wrong"),
    304: (_C.LAUNCH_FAILURE, "a container crashes again and again"),
    305: (_C.UNKNOWN, "status of a container is not known"),
    999: (_C.LAUNCH_FAILURE, "a container waits on another error"),
    2002: (_C.SERVICE_ERROR, "control process died"),
    2010: (_C.SERVICE_ERROR, "download failed"),
    2011: (_C.SERVICE_ERROR, "mount failed"),
    2012: (_C.SERVICE_ERROR, "upload failed"),
    2013: (_C.SERVICE_ERROR, "data authorisation could not be checked"),
    2014: (_C.SERVICE_ERROR, "access to data was denied"),
    2020: (_C.SERVICE_ERROR, "token for the service is invalid"),
    2021: (_C.SERVICE_ERROR, "connection to the service timed out"),
    2022: (_C.SERVICE_ERROR, "messages to the service failed"),
    2023: (_C.SERVICE_ERROR, "messages to the user's task failed"),
    2024: (_C.SERVICE_ERROR, "barrier failed"),
    2025: (_C.SERVICE_ERROR, "metrics failed"),
    2030: (_C.SERVICE_ERROR, "invalid input"),
    2031: (_C.SERVICE_ERROR, "a command failed"),
    2032: (_C.SERVICE_ERROR, "a file operation failed"),
    2040: (_C.SERVICE_ERROR, "other failure of the control process"),
    3000: (_C.UPSTREAM_FAILED, "a task before it failed"),
    3001: (_C.NODE_FAILURE, "backend error: node or pod is gone"),
    3002: (_C.INFRA_ERROR, "service error"),
    3003: (_C.LAUNCH_FAILURE, "start error"),
    3004: (_C.EVICTED, "evicted"),
    3005: (_C.LAUNCH_FAILURE, "took too long to start"),
    3006: (_C.PREEMPTED, "preempted"),
    4000: (_C.UNKNOWN, "a failed pod without any code"),
}
"""Class and meaning by code; ranges follow in `RANGES`."""
RANGES: Final[tuple[tuple[int, int, ExitClass, str], ...]] = (
    (1, 255, _C.USER_ERROR, "failure of the user's program"),
    (256, 510, _C.LAUNCH_FAILURE, "initialisation failed: 255 + its code"),
    (1000, 1999, _C.PREFLIGHT, "preflight test failed: 1000 + its code"),
    (2000, 2999, _C.SERVICE_ERROR, "control process failed: 2000 + its code"),
)
STATUSES: Final[Mapping[str, ExitClass | None]] = {
    "SUBMITTING": None,
    "WAITING": None,
    "PENDING": None,
    "PROCESSING": None,
    "SCHEDULING": None,
    "INITIALIZING": None,
    "RUNNING": None,
    "RESCHEDULED": None,
    "COMPLETED": _C.SUCCESS,
    "FAILED": None,
    "FAILED_CANCELED": _C.CANCELED,
    "FAILED_SERVER_ERROR": _C.INFRA_ERROR,
    "FAILED_SUBMISSION": _C.INFRA_ERROR,
    "FAILED_BACKEND_ERROR": _C.NODE_FAILURE,
    "FAILED_EXEC_TIMEOUT": _C.TIMEOUT,
    "FAILED_QUEUE_TIMEOUT": _C.TIMEOUT,
    "FAILED_IMAGE_PULL": _C.IMAGE_PULL,
    "FAILED_UPSTREAM": _C.UPSTREAM_FAILED,
    "FAILED_EVICTED": _C.EVICTED,
    "FAILED_START_ERROR": _C.LAUNCH_FAILURE,
    "FAILED_START_TIMEOUT": _C.LAUNCH_FAILURE,
    "FAILED_PREEMPTED": _C.PREEMPTED,
}
"""Class by status of tasks, groups and workflows; None if the status alone does not determine the class."""
CODE_STATUSES: Final[Mapping[int, str]] = {
    0: "COMPLETED",
    3000: "FAILED_UPSTREAM",
    3001: "FAILED_BACKEND_ERROR",
    3002: "FAILED_SERVER_ERROR",
    3003: "FAILED_START_ERROR",
    3004: "FAILED_EVICTED",
    3005: "FAILED_START_TIMEOUT",
    3006: "FAILED_PREEMPTED",
}
STATUS_CODES: Final[Mapping[str, int]] = {status: code for code, status in CODE_STATUSES.items()}
"""Codes by status."""


def is_finished(status: str) -> bool:
    """Return whether a status is final; a rescheduled task continues with its next attempt."""
    return status == "COMPLETED" or is_failed(status)


def is_failed(status: str) -> bool:
    """Return whether a status is a failure."""
    return status.startswith("FAILED")


_IN_ORDER: Final = ("SUBMITTING", "WAITING", "PROCESSING", "SCHEDULING", "INITIALIZING", "RUNNING")
"""Statuses of a task before its end, in their order."""


def accepts_report(current: str, reported: str) -> bool:
    """Return whether a task in one status takes a reported one: a later one, and a start timeout only before it runs.

    Source: OSMO's update of a task's status. A final status is never changed.
    """
    if current not in _IN_ORDER:
        return False
    if reported in _IN_ORDER:
        return _IN_ORDER.index(current) < _IN_ORDER.index(reported)
    return reported != "FAILED_START_TIMEOUT" or current != "RUNNING"


def osmo_class_of_code(code: int) -> ExitClass:
    """Return the class of a code."""
    if code in CODES:
        return CODES[code][0]
    return next((named for low, high, named, _ in RANGES if low <= code <= high), ExitClass.UNKNOWN)


def class_of(status: str | None, code: int | None) -> ExitClass | None:
    """Return the class of an ending by its status, else by its code; None before the end."""
    named = STATUSES.get(status) if status else None
    if named is not None and (named is not ExitClass.SUCCESS or not code):
        return named
    if code is not None:
        return osmo_class_of_code(code)
    return ExitClass.UNKNOWN if status is None or status == "FAILED" or status not in STATUSES else None


def status_of_code(code: int | None) -> str:
    """Return the status for a code without a reported status."""
    if code is None:
        return "FAILED"
    return CODE_STATUSES.get(code, "FAILED_IMAGE_PULL" if code in {301, 302} else "FAILED")
