"""The OpenAPI document, made from the endpoints' declarations when it is requested."""

import re
from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec
from attrs import fields

from torc_framework import __version__
from torc_framework.models.exchange import ExchangeReply, ExchangeRequest
from torc_framework.models.plan import Plan
from torc_framework.models.plan_parts import PLAN_LINES, PLAN_PATH, PlanHead, PlanSlice
from torc_framework.models.records import Record, describe_field
from torc_framework.models.responses import ErrorBody, Health, Ping, PlanReceipt
from torc_framework.models.statuses import JobStatus
from torc_framework.server.auth.permissions import ADMINS, ANYONE, NEW_WORKFLOW_OF_CALLER, WORKFLOW_IN_PATH
from torc_framework.server.dispatch.endpoint import Endpoint
from torc_framework.server.http.endpoint_calls import Parameter, is_integer_parameter
from torc_framework.server.settings import API_PREFIX

_SCHEMAS: Final[dict[type[Any], dict[str, Any]]] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    JobStatus: {"type": "string", "enum": [status.label for status in JobStatus]},
}
_REFERENCE: Final = "#/components/schemas/{name}"


def _nothing(*_: Any) -> None:
    return None


_UNDECLARED: Final = (
    Endpoint(
        "GET",
        "/ping",
        _nothing,
        response=Ping,
        tags=["server"],
        permission=ANYONE,
        summary="Answer that the server runs.",
    ),
    Endpoint(
        "GET",
        "/version",
        _nothing,
        response=str,
        tags=["server"],
        permission=ANYONE,
        summary="Get the version of Torc's HTTP contract that the server implements, and its own version.",
    ),
    Endpoint(
        "GET",
        "/health",
        _nothing,
        response=Health,
        tags=["server"],
        permission=ANYONE,
        summary="Answer whether the server can use its database: 503 if not. Needs no log-in.",
    ),
    Endpoint(
        "GET",
        "/metrics",
        _nothing,
        tags=["server"],
        permission=ADMINS,
        summary="Get the server's metrics as OpenMetrics or Prometheus text; also at `/metrics` of the server.",
    ),
    Endpoint(
        "POST",
        "/workflows/{id}/exchange",
        _nothing,
        body=ExchangeRequest,
        response=ExchangeReply,
        permission=WORKFLOW_IN_PATH,
        summary="Take a runner's reports and hand out jobs, in one call that may wait for them.",
    ),
    Endpoint(
        "POST",
        PLAN_PATH,
        _nothing,
        body=Plan,
        response=PlanReceipt,
        query={"initialize": Parameter(bool, default=False)},
        permission=NEW_WORKFLOW_OF_CALLER,
        summary="Create a whole workflow in one transaction, and start its first run if asked.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/events/stream",
        _nothing,
        query={"level": Parameter(str, "info")},
        tags=["events"],
        permission=WORKFLOW_IN_PATH,
        summary="Follow a workflow's events as they happen, as server-sent events.",
    ),
)
"""Declarations of the routes in `server.async_routes` and of the two in the application, for this document only."""
_TEXT: Final = {"schema": {"type": "string"}}
_NOT_JSON: Final = {
    "/workflows/{id}/events/stream": {"content": {"text/event-stream": _TEXT}},
    "/metrics": {"content": {"text/plain": _TEXT, "application/openmetrics-text": _TEXT}},
}
"""Content of the responses that are text, by path."""
_PLAN_LINES_SCHEMA: Final = {
    "type": "string",
    "description": "A plan in parts, one line of JSON each: a PlanHead, then each PlanSlice with dependencies, then "
    "each PlanSlice with jobs.",
}
_OTHER_BODIES: Final = {PLAN_PATH: {PLAN_LINES: {"schema": _PLAN_LINES_SCHEMA}}}
"""Content of request bodies besides the JSON document, by path."""
_FURTHER_SCHEMAS: Final = (ErrorBody, PlanHead, PlanSlice)
"""Classes that are no body or response of an endpoint by themselves."""


def openapi_document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the document for these endpoints and the routes that are mounted without a declaration."""
    everything = [*_UNDECLARED, *endpoints]
    kinds = [*_FURTHER_SCHEMAS, *(kind for e in everything for kind in (e.body, e.response) if kind is not None)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    schema_of = dict(zip(map(str, kinds), schemas, strict=True))
    for record in get_args(Record):
        _describe_fields(record, components)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in everything:
        paths.setdefault(API_PREFIX + endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "torc", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _describe_fields(record: Any, components: dict[str, Any]) -> None:
    """Add the descriptions in a record's declaration to the properties of its schema."""
    properties = components.get(record.__name__, {}).get("properties", {})
    for attribute in fields(record):
        if attribute.name in properties:
            properties[attribute.name]["description"] = describe_field(attribute)[0]


def _operation(endpoint: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer" if is_integer_parameter(name) else "string"},
        }
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    for name, parameter in endpoint.query.items():
        schema: dict[str, Any] = dict(_SCHEMAS[parameter.kind])
        if parameter.repeated:
            schema = {"type": "array", "items": schema}
        elif parameter.default is not None:
            schema["default"] = parameter.default
        parameters.append({"name": name, "in": "query", "required": parameter.required, "schema": schema})
    content = {"type": "object"} if endpoint.response is None else schema_of[str(endpoint.response)]
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": re.sub(r"\W+", "_", f"{endpoint.method.lower()}{endpoint.path}"),
        "tags": list(endpoint.tags),
        "parameters": parameters,
        "responses": {
            "200": {"description": "Done", **_NOT_JSON.get(endpoint.path, _content(content))},
            "default": {"description": "Refused", **_content(schema_of[str(ErrorBody)])},
        },
    }
    if endpoint.body is not None:
        content = _content(schema_of[str(endpoint.body)])["content"] | _OTHER_BODIES.get(endpoint.path, {})
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
