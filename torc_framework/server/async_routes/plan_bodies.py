"""Creation of a workflow from the body of a request: one JSON document, or a plan in parts with one line for each.

Both bodies are stored by the same functions, in one transaction. The parts of a plan are read while they are stored, so
that the memory that it takes does not grow with the number of jobs.
"""

from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from torc_framework.models.plan import Plan
from torc_framework.models.plan_parts import PLAN_LINES, PLAN_PATH, PlanParts, parts_of, read_plan_lines
from torc_framework.server.dispatch.parameters import parse_query, sent_parameters
from torc_framework.server.http.access_log import add_log_fields
from torc_framework.server.http.endpoint_calls import Parameter, caller_of
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.server.http.request_bodies import refuse_nul
from torc_framework.server.http.responses import json_response
from torc_framework.server.http.spooled_bodies import SpooledBody
from torc_framework.store.access.checks import check_own_name
from torc_framework.store.database.base import NEW_WORKFLOW, Database
from torc_framework.store.database.sql import Tx
from torc_framework.store.runs import lifecycle
from torc_framework.store.workflows.plans import create_plan

_T = TypeVar("_T")
_PARAMETERS: Final = {"initialize": Parameter(bool, default=False)}
_PLAN: Final = msgspec.json.Decoder(Plan)
_NOT_DECODED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_body(decoder: msgspec.json.Decoder[_T], body: bytes) -> _T:
    """Return a decoded body.

    Raises:
        RequestError: the body is not JSON (400), or does not fit the class (422).
    """
    try:
        return decoder.decode(body)
    except _NOT_DECODED as error:
        raise _refusal("body", error) from error


def holds_plan_lines(request: Request) -> bool:
    """Return whether the body of a request is a plan in parts."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == PLAN_LINES


def create_from_document(database: Database, request: Request, body: bytes) -> Response:
    """Create a workflow from a body that is one JSON document."""
    initialized = _is_initialized(request)
    refuse_nul(body)
    return _create(database, request, parts_of(decode_body(_PLAN, body)), initialized=initialized)


def create_from_lines(database: Database, request: Request, body: SpooledBody) -> Response:
    """Create a workflow from a body whose lines are the parts of a plan."""
    initialized, lines = _is_initialized(request), _BodyLines(body)
    try:
        parts = read_plan_lines(lines)
        if parts.head.job_count > len(body):
            raise RequestError(f"body: {len(body)} bytes cannot hold {parts.head.job_count} jobs", 422)
        return _create(database, request, parts, initialized=initialized)
    except _NOT_DECODED as error:
        raise _refusal(f"body: line {lines.number}", error) from error


class _BodyLines:
    """The lines of a body; `number` is the number of the last one, from 1."""

    def __init__(self, body: SpooledBody) -> None:
        self._lines = body.lines()
        self.number = 0

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self.number += 1
            refuse_nul(line)
            yield line


def _refusal(place: str, error: Exception) -> RequestError:
    return RequestError(f"{place}: {error}", 422 if isinstance(error, msgspec.ValidationError) else 400)


def _is_initialized(request: Request) -> bool:
    """Return whether the request asks for the first run."""
    return bool(parse_query(f"POST {PLAN_PATH}", _PARAMETERS, sent_parameters(request.scope))["initialize"])


def _create(database: Database, request: Request, parts: PlanParts, *, initialized: bool) -> Response:
    check_own_name(caller_of(request), parts.head.workflow.user)
    with database.write_bulk(NEW_WORKFLOW) as tx:
        stored = create_plan(tx, parts, initialized=initialized)
        run_id = _first_run(tx, stored.id) if initialized else 0
    add_log_fields(request, workflow_id=stored.id, job_count=stored.counts["job_count"])
    return json_response({"id": stored.id, "run_id": run_id, **stored.counts})


def _first_run(tx: Tx, workflow_id: int) -> int:
    lifecycle.begin_planned_run(tx, workflow_id)
    lifecycle.announce_run(tx, workflow_id, run_id=1)
    return 1
