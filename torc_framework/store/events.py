"""Rows that tell what happened, written in the transaction in which it happened.

``data`` always has ``event_type``; the other keys are those of Torc's event stream.
"""

import time
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from torc_framework.models.statuses import JobStatus
from torc_framework.store.sql import Tx, insertion
from torc_framework.store.tables import EVENT

_INSERT: Final = insertion(EVENT, "workflow_id", "timestamp", "data")
_encode: Final = msgspec.json.Encoder().encode


def now_ms() -> int:
    """Return the time as events have it: milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def utc_text(seconds: float | None = None) -> str:
    """Return a time (now by default) as records have it: UTC, ISO 8601 with milliseconds.

    Raises:
        OverflowError: the time is in no year that can be written.
    """
    try:
        moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OSError) as error:
        raise OverflowError(f"{seconds} seconds since the epoch is no time: {error}") from error
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


class EventLog:
    """The events of one transaction on one workflow, written at once at its end."""

    def __init__(self, workflow_id: int) -> None:
        self.workflow_id = workflow_id
        self._timestamp = now_ms()
        self._rows: list[tuple[int, int, str]] = []

    def add(self, event_type: str, **data: Any) -> None:
        """Note an event."""
        text = _encode({"event_type": event_type, **data}).decode()
        self._rows.append((self.workflow_id, self._timestamp, text))

    def job_ended(self, job_id: int, name: str, status: JobStatus, return_code: int | None, **data: Any) -> None:
        """Note how a job ended: ``job_completed``, ``job_failed``, ..."""
        label = status.label
        self.add(f"job_{label}", job_id=job_id, job_name=name, status=label, return_code=return_code, **data)

    def write(self, tx: Tx) -> None:
        """Store what was noted."""
        tx.run_each(_INSERT, self._rows)
        self._rows = []


def user_action(tx: Tx, workflow_id: int, action: str, user: str | None = None, **data: Any) -> None:
    """Tell that a person did something."""
    events = EventLog(workflow_id)
    events.add("user_action", action=action, user=user or "unknown", **data)
    events.write(tx)
