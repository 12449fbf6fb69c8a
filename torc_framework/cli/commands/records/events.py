"""``torc events``: the events of a workflow, stored ones and new ones as they happen."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import Limit, RecordId, WorkflowId, pick_workflow
from torc_framework.cli.shared.output import Column, json_line
from torc_framework.cli.shared.record_output import show_created, show_deleted, show_many, show_one
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.errors import ExitStatus, OperatorError, UserError
from torc_framework.models.events import LEVELS, EventSeverity
from torc_framework.models.records import EventRecord
from torc_framework.models.statuses import JobStatus

if TYPE_CHECKING:
    from torc_framework.client.http.event_stream import EventStream, StreamedEvent

app = CommandGroup("Events of a workflow: list them, or follow new ones.")

Category = Annotated[
    str | None, typer.Option("--category", "-c", help="Only this type, such as job_failed, or category.")
]
_ENDS = ("workflow_completed", "workflow_canceled")


def _timestamp_text(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _when(event: EventRecord) -> str | None:
    return None if event.timestamp is None else _timestamp_text(event.timestamp)


COLUMNS: list[Column] = [("ID", "id"), ("Timestamp", _when), ("Data", lambda event: json.dumps(event.data))]


@app.command()
def create(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    data: Annotated[str, typer.Option("--data", "-d", metavar="JSON", help="What to store.")],
) -> None:
    """Store an event of your own; monitors show its "event_type" and "severity".

    Examples:
        torc events create 12 --data '{"event_type": "saved", "severity": "info"}'
    """
    session = session_of(ctx)
    try:
        content = json.loads(data)
    except ValueError as error:
        raise UserError(f"--data is no JSON: {error}") from error
    chosen = pick_workflow(session, workflow_id)
    show_created(session, "event", session.client.create(EventRecord(workflow_id=chosen, data=content)))


@app.command("list")
def list_(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    category: Category = None,
    text: Annotated[str | None, typer.Option("--text", "-t", help="Only events whose data contain this text.")] = None,
    limit: Limit = 10_000,
    offset: Annotated[int, typer.Option("--offset", "-o", min=0, help="Records to skip.")] = 0,
    sort_by: Annotated[str | None, typer.Option("--sort-by", "-s", metavar="FIELD", help="Field to sort by.")] = None,
    reverse_sort: Annotated[bool, typer.Option("--reverse-sort", "-r", help="Sort from high to low.")] = False,
) -> None:
    """List events, oldest first.

    Examples:
        torc events list 12
        torc events list 12 --category job --limit 50
        torc events list 12 --text train_17
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    found = session.client.find(
        EventRecord,
        workflow_id=chosen,
        category=category,
        text=text,
        limit=limit,
        offset=offset,
        sort_by=sort_by,
        reverse_sort=reverse_sort or None,
    )
    show_many(session, "events", f"events of workflow {chosen}", COLUMNS, found)


@app.command()
def monitor(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    level: Annotated[
        str, typer.Option("--level", metavar="LEVEL", help="Least severity: debug, info, warning, error.")
    ] = ("info"),
    category: Category = None,
    after: Annotated[
        int | None,
        typer.Option("--after", min=0, metavar="ID", help="Begin after this event; 0 begins with the first."),
    ] = None,
    until_complete: Annotated[
        bool,
        typer.Option("--until-complete", help="End when the workflow is over; exit code 1 if not every job succeeded."),
    ] = False,
    duration: Annotated[
        float | None, typer.Option("--duration", "-d", min=0, metavar="MINUTES", help="End after this many minutes.")
    ] = None,
    poll_interval: Annotated[
        float, typer.Option("--poll-interval", "-p", min=0, help="Accepted; events are pushed, nothing is polled.")
    ] = 60,
) -> int:
    """Show events as they happen, until Ctrl-C.

    After a loss of the connection or the server, the monitor reconnects and continues with the next event.
    With -f json each event is one JSON object on one line.

    Examples:
        torc events monitor 12
        torc events monitor 12 --level error --until-complete
    """
    session = session_of(ctx)
    if level not in LEVELS:
        raise UserError(f"--level is {level!r}; expected one of {', '.join(LEVELS)}")
    chosen = pick_workflow(session, workflow_id)
    asked = EventSeverity.DEBUG if until_complete else LEVELS[level]  # the last event may have any severity
    with session.client.event_stream(chosen, last_event_id=after, level=asked.label) as stream:
        with _closed_after(stream, duration) as time_is_up:
            last = _last_event_id(session, chosen) if until_complete else None
            if last is not None and (after is None or after >= last):
                return _outcome(session, chosen)
            for event in stream:
                if LEVELS[event.severity] >= LEVELS[level] and _is_of(event, category):
                    _show(session, event)
                if last is None and until_complete and event.event_type in _ENDS:
                    last = _last_event_id(session, chosen)
                if last is not None and event.id >= last:
                    return _outcome(session, chosen)
        if not time_is_up.is_set():
            raise OperatorError(f"workflow {chosen} is deleted")
    return ExitStatus.OK


@app.command("get-latest-event")
def get_latest_event(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """Show the last event.

    Examples:
        torc events get-latest-event 12
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    found = session.client.find(EventRecord, workflow_id=chosen, sort_by="id", reverse_sort=True, limit=1)
    if not found:
        raise UserError(f"workflow {chosen} has no events")
    show_one(session, "Latest event", found[0])


@app.command()
def delete(ctx: typer.Context, id_: RecordId) -> None:
    """Delete an event.

    Examples:
        torc events delete 678
    """
    session = session_of(ctx)
    show_deleted(session, "event", session.client.delete(EventRecord, id_))


def _last_event_id(session: Session, workflow_id: int) -> int | None:
    """Return the id of the last event of a workflow that is over, 0 if it has none; None if it is not over."""
    if not session.client.is_complete(workflow_id).is_complete:
        return None
    found = session.client.find(EventRecord, workflow_id=workflow_id, sort_by="id", reverse_sort=True, limit=1)
    return (found[0].id or 0) if found else 0


def _is_of(event: "StreamedEvent", category: str | None) -> bool:
    own = event.data.get("category") if isinstance(event.data, dict) else None
    return category is None or category in (event.event_type, own)


def _show(session: Session, event: "StreamedEvent") -> None:
    if session.wants_json:
        print(json_line(event), flush=True)
        return
    shown: Any = event.data
    if isinstance(shown, dict):
        pairs = {key: value for key, value in shown.items() if value is not None and key != "severity"}
        shown = " ".join(f"{key}={value}" for key, value in pairs.items())
    print(f"{_timestamp_text(event.timestamp)} {event.severity:<7} {event.event_type} {shown}".rstrip(), flush=True)


def _outcome(session: Session, workflow_id: int) -> int:
    """Return the exit code of a workflow that is over."""
    counts = session.client.job_counts(workflow_id).counts
    good = {JobStatus.COMPLETED.label, JobStatus.DISABLED.label}
    return ExitStatus.OK if all(label in good for label, count in counts.items() if count) else ExitStatus.FAILED


@contextmanager
def _closed_after(stream: "EventStream", minutes: float | None) -> Iterator[threading.Event]:
    """Close the stream after some minutes; the event is set when that happens."""
    is_up = threading.Event()

    def close() -> None:
        is_up.set()
        stream.close()

    timer = None if minutes is None else threading.Timer(minutes * 60, close)
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield is_up
    finally:
        if timer is not None:
            timer.cancel()
