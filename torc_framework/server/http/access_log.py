"""The server's log lines: one for each answered request and one for each committed event.

Lines of requests go to the logger ``torc.server.access``, those of events to ``torc.server.events``. A request that
changes something is logged at level info; a read, and an exchange that carried neither reports nor jobs, at debug; a
refused log-in or permission at warning; an internal error at error. A line below the logger's level costs only the
comparison of the levels.
"""

import logging
from collections.abc import MutableMapping
from typing import Any, Final

import msgspec
from starlette.requests import Request

from torc_framework.models.events import EventSeverity, severity_of
from torc_framework.server.logs import LogLine, log_fields, log_lines
from torc_framework.server.settings import API_PREFIX
from torc_framework.store.database.base import Database

_ACCESS: Final = logging.getLogger("torc.server.access")
_EVENTS: Final = logging.getLogger("torc.server.events")
_FIELDS: Final = "torc.extra_fields"
_ROUTINE: Final = "torc.is_routine"
_READ_ONLY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REFUSALS: Final = frozenset({401, 403, 429})
_LEVELS: Final = {
    EventSeverity.DEBUG: logging.DEBUG,
    EventSeverity.INFO: logging.INFO,
    EventSeverity.WARNING: logging.WARNING,
    EventSeverity.ERROR: logging.WARNING,  # a failed job is not an error of the server
}
_decode: Final = msgspec.json.Decoder().decode
_OWN_ID: Final = {"workflows": "workflow_id", "jobs": "job_id", "compute_nodes": "compute_node_id"}
"""Name of the log field for the id in a path, by the collection in the path."""


def add_log_fields(request: Request, *, is_routine: bool = False, **extra_fields: Any) -> None:
    """Add fields to the log line of a request; the line of a routine request has level debug."""
    request.scope[_FIELDS] = extra_fields
    request.scope[_ROUTINE] = is_routine


def log_fields_of(scope: MutableMapping[str, Any]) -> dict[str, Any]:
    """Return the fields that `add_log_fields` stored for a request, ``is_routine`` among them."""
    return {"is_routine": bool(scope.get(_ROUTINE)), **scope.get(_FIELDS, {})}


def log_request(scope: MutableMapping[str, Any], span: bytes, status: int, seconds: float) -> None:
    """Write the log line of an answered request."""
    level = _level(scope, status)
    if not _ACCESS.isEnabledFor(level):
        return
    caller = scope.get("torc.caller")
    parts = scope["path"].removeprefix(API_PREFIX).split("/")
    own = _OWN_ID.get(parts[1]) if len(parts) > 2 and parts[2].isdecimal() else None
    extra_fields = {own: parts[2]} if own else {}
    line = log_fields(
        span=span.decode(),
        method=scope["method"],
        path=scope["path"],
        status=status,
        duration_ms=round(seconds * 1000, 1),
        user=None if caller is None or caller.is_anonymous else caller.name,
        **{**extra_fields, **scope.get(_FIELDS, {})},
    )
    _ACCESS.log(level, "request", extra=line)


def _level(scope: MutableMapping[str, Any], status: int) -> int:
    if status >= 500:
        return logging.ERROR
    if status in _REFUSALS:
        return logging.WARNING
    return logging.DEBUG if scope["method"] in _READ_ONLY or scope.get(_ROUTINE) else logging.INFO


def log_events(database: Database) -> None:
    """Log every event that this server commits from now on; do nothing if the logger's level hides all of them."""
    if _EVENTS.isEnabledFor(logging.WARNING):
        database.on_stored_events(_log_stored_events)


def _log_stored_events(events: list[tuple[int, int, str]]) -> None:
    lines = []
    for workflow_id, _, text in events:
        data = _decode(text)
        level = _LEVELS[severity_of(data)]
        if _EVENTS.isEnabledFor(level):
            message = data.pop("event_type")
            fields = {name: value for name, value in data.items() if value is not None}
            lines.append(LogLine(level, message, {"workflow_id": workflow_id, **fields}))
    if lines:
        log_lines(_EVENTS, lines)
