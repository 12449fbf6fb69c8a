"""Events: rows about what happened in a workflow, written in the transaction in which it happened.

``data`` always has ``event_type``; the other keys are those of Torc's event stream. Only one change of a workflow is
under way at a time, so an event's id is larger than the ids of the workflow's events before it: a client that has read
all events of a workflow up to an id needs to remember that id only. Events of several workflows may be committed in
another order than that of their ids.
"""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.events import EVENT_FACTS
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Tx, insertion
from torc_framework.store.errors import LargeReadError
from torc_framework.store.tables.core import EVENT, WORKFLOW_STATUS

_INSERT: Final = insertion(EVENT, "workflow_id", "timestamp", "data")
JOBS_A_ROW: Final = 1000
"""Largest number of job ids in one event."""
_NUL: Final = "\\u0000"
_encode: Final = msgspec.json.Encoder().encode


def now_ms() -> int:
    """Return the present time as in events: milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def utc_text(seconds: float | None = None) -> str:
    """Return a time (now by default) as in records: UTC, ISO 8601 with milliseconds.

    Raises:
        OverflowError: the time is outside the years 1 to 9999.
    """
    try:
        moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OSError) as error:
        raise OverflowError(f"{seconds} seconds since the epoch is no time: {error}") from error
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


class TransactionEvents:
    """The events of one workflow in one transaction; `write` stores them together."""

    def __init__(self, workflow_id: int) -> None:
        self.workflow_id = workflow_id
        self._timestamp = now_ms()
        self._rows: list[tuple[int, int, str]] = []

    def add(self, event_type: str, **data: Any) -> None:
        """Add an event; a value that its type has and that is not given is null."""
        facts = EVENT_FACTS.get(event_type)
        if facts is not None and len(data) < len(facts.keys):
            data = {**dict.fromkeys(facts.keys), **data}
        text = _encode({"event_type": event_type, **data}).decode()
        if _NUL in text:  # PostgreSQL would store it, and then could not read keys of it
            plain = {
                name: value.replace("\0", "\ufffd") if isinstance(value, str) else value for name, value in data.items()
            }
            text = _encode({"event_type": event_type, **plain}).decode()
        self._rows.append((self.workflow_id, self._timestamp, text))

    def job_ended(self, job_id: int, name: str, status: JobStatus, return_code: int | None, **data: Any) -> None:
        """Add the event of a job's end: ``job_completed``, ``job_failed``, ..."""
        label = status.label
        self.add(f"job_{label}", job_id=job_id, job_name=name, status=label, return_code=return_code, **data)

    def jobs_ready(self, job_ids: Sequence[int]) -> None:
        """Add the events of jobs that became ready."""
        for start in range(0, len(job_ids), JOBS_A_ROW):
            self.add("jobs_ready", job_ids=job_ids[start : start + JOBS_A_ROW])

    def write(self, tx: Tx) -> None:
        """Store the events that were added."""
        if self._rows:
            tx.run_each(_INSERT, self._rows)
            tx.workflows_with_events.add(self.workflow_id)
            tx.events += self._rows
        self._rows = []


def record_user_action(tx: Tx, workflow_id: int, action: str, user: str | None = None, **data: Any) -> None:
    """Store the event of an action that a user took."""
    events = TransactionEvents(workflow_id)
    events.add("user_action", action=action, user=user or "unknown", **data)
    events.write(tx)


@frozen
class StoredEvent:
    """One event with its id; ``timestamp`` is in milliseconds since the epoch."""

    id: int
    timestamp: int
    data: Any


def events_after(
    tx: Tx, workflow_id: int, last_id: int, limit: int, allowed_bytes: int = sys.maxsize
) -> list[StoredEvent] | None:
    """Return the events of a workflow after an id, oldest first; None if there is no such workflow.

    Args:
        tx: The transaction.
        workflow_id: The workflow.
        last_id: The id.
        limit: Most events.
        allowed_bytes: Largest size of the events together.

    Raises:
        LargeReadError: the first of them is larger.
    """
    following = [EVENT.c.workflow_id == workflow_id, EVENT.c.id > last_id]
    following.append(sa.exists().where(WORKFLOW_STATUS.c.id == workflow_id))
    sizes = sa.select(EVENT.c.id, sa.func.length(sa.cast(EVENT.c.data, sa.Text)))
    last, total = None, 0
    for id_, size in tx.connection.execute(sizes.where(*following).order_by(EVENT.c.id).limit(limit)):
        total += size
        if total > allowed_bytes:
            break
        last = id_
    if last is None and total:
        raise LargeReadError(total)
    if last is None:
        return [] if _workflow_exists(tx, workflow_id) else None
    query = sa.select(EVENT.c.id, EVENT.c.timestamp, EVENT.c.data).where(*following, EVENT.c.id <= last)
    found = tx.connection.execute(query.order_by(EVENT.c.id))
    return [StoredEvent(id_, timestamp or 0, data) for id_, timestamp, data in found]


def last_event_id(tx: Tx, workflow_id: int) -> int | None:
    """Return the id of the newest event, 0 without any; None if there is no such workflow."""
    newest = sa.select(sa.func.coalesce(sa.func.max(EVENT.c.id), 0)).where(EVENT.c.workflow_id == workflow_id)
    return int(tx.connection.execute(newest).scalar_one()) if _workflow_exists(tx, workflow_id) else None


def _workflow_exists(tx: Tx, workflow_id: int) -> bool:
    query = sa.select(WORKFLOW_STATUS.c.id).where(WORKFLOW_STATUS.c.id == workflow_id)
    return tx.connection.execute(query).first() is not None
