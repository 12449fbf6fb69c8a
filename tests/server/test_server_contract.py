"""Tests of the OpenAPI document against the contract of Torc's own Python client: it has all of it, with fitting types.

The client was generated from the contract's document: its methods say what is sent where, its models what is in it.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter

if sys.version_info >= (3, 14):
    pytest.skip("torc-client does not install on Python 3.14", allow_module_level=True)

import torc.openapi_client as official

METHODS = ("get", "put", "post", "delete", "patch")

Schema = dict[str, Any]


class Document:
    """An OpenAPI document, its paths without prefix."""

    def __init__(self, content: Any, prefix: str = "") -> None:
        self._content = content
        self.operations: dict[tuple[str, str], Any] = {
            (method, path.removeprefix(prefix)): {**entry[method], "shared": entry.get("parameters", [])}
            for path, entry in content["paths"].items()
            for method in METHODS
            if method in entry
        }

    def resolved(self, schema: Schema) -> Schema:
        """Return a schema, looked up if it is a reference."""
        while "$ref" in schema:
            schema = self._content["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return schema

    def types(self, schema: Schema) -> set[str]:
        """Return the JSON types that a schema lets through; empty for any."""
        schema = self.resolved(schema)
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                return set[str]().union(*(self.types(one) for one in schema[several]))
        if "enum" in schema and "type" not in schema:
            return {"string"}
        kind = schema.get("type", "object" if "properties" in schema else [])
        return {kind} if isinstance(kind, str) else set(kind)

    def substance(self, schema: Schema) -> Schema:
        """Return the schema of what is there when it is not null."""
        schema = self.resolved(schema)
        several = (one for name in ("anyOf", "oneOf") for one in schema.get(name, ()))
        return next((self.resolved(one) for one in several if self.types(one) != {"null"}), schema)

    def content(self, part: Any) -> Schema | None:
        """Return the JSON schema of a body or answer, None if it says nothing."""
        schema = (part or {}).get("content", {}).get("application/json", {}).get("schema")
        known = schema is not None and self.substance(schema)
        return None if not known or (known.get("type") == "object" and not known.get("properties")) else schema

    def parameters(self, operation: Any) -> dict[tuple[str, str], Any]:
        """Return an operation's parameters by place and name."""
        return {(p["in"], p["name"]): p for p in [*operation.get("parameters", []), *operation["shared"]]}


class Argument(str):
    """An argument, recognised in a request by its name; also where a member of an enumeration is due."""

    __slots__ = ()

    @property
    def value(self) -> str:
        """The text that is sent for a member of an enumeration."""
        return self


class Notebook(official.ApiClient):
    """Records requests instead of sending them."""

    def param_serialize(self, *_: Any, **request: Any) -> Any:
        """Return the request as it was composed; its parts are given by their names."""
        return request


class OfficialDocument:
    """The contract's document, put together again from the client."""

    def __init__(self) -> None:
        self.paths: dict[str, Any] = {}
        self.schemas: dict[str, Schema] = {}
        api = official.DefaultApi(Notebook())
        for name, method in inspect.getmembers(official.DefaultApi, inspect.isfunction):
            if not name.startswith("_") and not name.endswith(("_with_http_info", "_without_preload_content")):
                self._add(getattr(api, f"_{name}_serialize"), method)

    def _schema(self, annotation: Any) -> Schema:
        if annotation is object:
            return {}
        schema = TypeAdapter(annotation).json_schema(ref_template="#/components/schemas/{model}")
        self.schemas |= schema.pop("$defs", {})
        return schema

    def _json(self, annotation: Any) -> Schema:
        return {"content": {"application/json": {"schema": self._schema(annotation)}}}

    def _add(self, compose: Any, method: Any) -> None:
        hints = {name: hint for name, hint in get_type_hints(method).items() if not name.startswith("_")}
        answer = hints.pop("return")
        settings = dict.fromkeys(("_request_auth", "_content_type", "_headers"))
        request = compose(**{name: Argument(name) for name in hints}, **settings, _host_index=0)
        needed = {n for n, p in inspect.signature(method).parameters.items() if p.default is p.empty}
        sent = [("path", *pair) for pair in request["path_params"].items()]
        sent += [("query", *pair) for pair in request["query_params"]]
        operation = {
            "parameters": [
                {"in": place, "name": wire, "required": name in needed, "schema": self._schema(hints[name])}
                for place, wire, name in sent
            ],
            "responses": {"200": self._json(answer)},
        }
        if request["body"] is not None:
            operation["requestBody"] = self._json(hints[request["body"]])
        self.paths.setdefault(request["resource_path"], {})[request["method"].lower()] = operation


@pytest.fixture(scope="module")
def contract() -> Document:
    """The contract's document."""
    document = OfficialDocument()
    return Document({"paths": document.paths, "components": {"schemas": document.schemas}})


@pytest.fixture(scope="module")
def ours(api: Any) -> Document:
    """The document that the server publishes."""
    return Document(api.ok("GET", "/openapi.json"), "/torc-service/v1")


def misfits(contract: Document, wanted: Schema, ours: Document, given: Schema, where: str) -> Iterator[str]:
    """Yield what the contract's schema has and ours lacks, or has as another type."""
    theirs, mine = contract.types(wanted) - {"null"}, ours.types(given)
    if theirs and mine and not theirs & mine and not (theirs == {"number"} and mine & {"integer"}):
        yield f"{where}: {theirs} became {mine}"
    wanted, given = contract.substance(wanted), ours.substance(given)
    if not wanted.get("properties") and "items" not in wanted:
        return
    if "items" in wanted:
        yield from misfits(contract, wanted["items"], ours, given.get("items", {}), f"{where}[]")
    for name, field in wanted.get("properties", {}).items():
        if name not in given.get("properties", {}):
            yield f"{where}.{name} is missing"
        else:
            yield from misfits(contract, field, ours, given["properties"][name], f"{where}.{name}")


def test_every_operation_is_there(contract: Document, ours: Document) -> None:
    """Method and path, with the same names in the path."""
    assert len(contract.operations) == 114
    assert set(contract.operations) - set(ours.operations) == set()


def test_every_parameter_is_there(contract: Document, ours: Document) -> None:
    """Each with a type that takes what the contract's takes; nothing that it makes optional is required."""
    found = []
    for key, operation in contract.operations.items():
        mine = ours.parameters(ours.operations[key])
        for name, parameter in contract.parameters(operation).items():
            if name not in mine:
                found.append(f"{key} {name} is missing")
                continue
            theirs, own = contract.types(parameter["schema"]) - {"null"}, ours.types(mine[name]["schema"])
            if theirs and not theirs & own and own != {"string"}:  # in a URL everything is text
                found.append(f"{key} {name}: {theirs} became {own}")
        required = {name for name, parameter in mine.items() if parameter["required"]}
        theirs_required = {n for n, p in contract.parameters(operation).items() if p.get("required")}
        found += [f"{key} {name} became required" for name in required - theirs_required]
    assert found == []


def test_every_field_of_a_body_is_there(contract: Document, ours: Document) -> None:
    """Every field that a client may send has a field of its type."""
    found: list[str] = []
    for key, operation in contract.operations.items():
        wanted = contract.content(operation.get("requestBody"))
        given = ours.content(ours.operations[key].get("requestBody"))
        if wanted is not None:
            found += misfits(contract, wanted, ours, given or {"type": "null"}, f"{key}")
    assert found == []


def test_every_field_of_an_answer_is_there(contract: Document, ours: Document) -> None:
    """Every field that a client reads has a type that the client understands."""
    found: list[str] = []
    for key, operation in contract.operations.items():
        wanted = contract.content(operation["responses"]["200"])
        given = ours.content(ours.operations[key]["responses"]["200"])
        if wanted is not None:
            found += misfits(contract, wanted, ours, given or {"type": "null"}, f"{key}")
    assert found == []


def test_operations_have_a_summary_and_an_id_of_their_own(ours: Document) -> None:
    """For people who read the document, and programs that make clients from it."""
    ids = [operation["operationId"] for operation in ours.operations.values()]
    assert len(set(ids)) == len(ids)
    for key, operation in ours.operations.items():
        assert re.fullmatch(r"[A-Z][^\n]{8,110}[.?]", operation["summary"]), key
