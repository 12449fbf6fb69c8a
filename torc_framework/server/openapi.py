"""The OpenAPI document, made from the endpoints' declarations when somebody asks for it."""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from attrs import fields

from torc_framework import __version__
from torc_framework.models.exchange import ExchangeReply, ExchangeRequest
from torc_framework.models.plan import Plan
from torc_framework.models.records import WorkflowStatusRecord, describe
from torc_framework.server.endpoints import Endpoint, Parameter, is_number
from torc_framework.server.scopes import OPEN, OWN_NAME, WORKFLOW
from torc_framework.server.settings import API_PREFIX

_TYPES: Final = {int: "integer", str: "string", bool: "boolean"}
_REFERENCE: Final = "#/components/schemas/{name}"


def _nothing(*_: Any) -> None:
    return None


_OTHERS: Final = (
    Endpoint("GET", "/ping", _nothing, tags=["server"], scope=OPEN),
    Endpoint("GET", "/version", _nothing, answers=str, tags=["server"], scope=OPEN),
    Endpoint("POST", "/workflows/{id}/exchange", _nothing, body=ExchangeRequest, answers=ExchangeReply, scope=WORKFLOW),
    Endpoint(
        "POST",
        "/workflows/from_plan",
        _nothing,
        body=Plan,
        query={"initialize": Parameter(bool, default=False)},
        scope=OWN_NAME,
    ),
)
"""Endpoints that are mounted by hand."""


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the document for these endpoints and the ones mounted by hand."""
    everything = [*_OTHERS, *endpoints]
    kinds = [kind for e in everything for kind in (e.body, e.answers) if kind is not None]
    schemas, components = msgspec.json.schema_components([*kinds, WorkflowStatusRecord], ref_template=_REFERENCE)
    schema_of = dict(zip(map(str, kinds), schemas, strict=False))
    for kind in kinds:
        _describe_fields(kind, components)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in everything:
        paths.setdefault(API_PREFIX + endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "torc", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _describe_fields(kind: Any, components: dict[str, Any]) -> None:
    """Put the records' own sentences beside their fields."""
    properties = components.get(getattr(kind, "__name__", ""), {}).get("properties", {})
    for attribute in fields(kind) if properties else ():
        if attribute.metadata and attribute.name in properties:
            properties[attribute.name]["description"] = describe(attribute)[0]


def _operation(endpoint: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer" if is_number(name) else "string"},
        }
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    for name, parameter in endpoint.query.items():
        schema: dict[str, Any] = {"type": _TYPES[parameter.kind]}
        if parameter.repeated:
            schema = {"type": "array", "items": schema}
        elif parameter.default is not None:
            schema["default"] = parameter.default
        parameters.append({"name": name, "in": "query", "required": parameter.required, "schema": schema})
    operation: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{endpoint.method.lower()}{endpoint.path}"),
        "tags": list(endpoint.tags),
        "parameters": parameters,
        "responses": {"200": {"description": "Done", **_content(_answer_schema(endpoint, schema_of))}},
    }
    if endpoint.body is not None:
        operation["requestBody"] = {"required": True, **_content(schema_of[str(endpoint.body)])}
    return operation


def _answer_schema(endpoint: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    if endpoint.answers is None:
        return {"type": "object"}
    one: dict[str, Any] = schema_of[str(endpoint.answers)]
    if "sort_by" not in endpoint.query:
        return one
    counts = {name: {"type": "integer"} for name in ("offset", "max_limit", "count", "total_count")}
    properties = {"items": {"type": "array", "items": one}, **counts, "has_more": {"type": "boolean"}}
    return {"type": "object", "required": list(properties), "properties": properties}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
