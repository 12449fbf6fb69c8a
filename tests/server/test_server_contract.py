"""Our OpenAPI document against the contract's own: all that it has, ours has, with types that fit.

The contract's document is no part of this project. It is read from where ``TORC_CONTRACT`` says, or
from a folder beside the checkout.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

BESIDE = Path(__file__).parents[3] / "shared" / "api" / "openapi.yaml"
CONTRACT = Path(os.environ.get("TORC_CONTRACT", BESIDE))
METHODS = ("get", "put", "post", "delete", "patch")
BODIES_WITHOUT_MEANING = {"type": "object"}

pytestmark = pytest.mark.skipif(
    not CONTRACT.is_file(),
    reason="the contract's document is not here: set TORC_CONTRACT to its path to compare with it",
)

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

    def parameters(self, operation: Any) -> dict[tuple[str, str], Any]:
        """Return an operation's parameters by place and name."""
        return {(p["in"], p["name"]): p for p in [*operation.get("parameters", []), *operation["shared"]]}


@pytest.fixture(scope="module")
def contract() -> Document:
    """The contract's document."""
    return Document(yaml.safe_load(CONTRACT.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def ours(api: Any) -> Document:
    """The document that the server publishes."""
    return Document(api.ok("GET", "/openapi.json"), "/torc-service/v1")


def content(part: Any) -> Schema | None:
    """Return the JSON schema of a body or answer, None if it says nothing."""
    schema = (part or {}).get("content", {}).get("application/json", {}).get("schema")
    return None if schema is None or schema == BODIES_WITHOUT_MEANING else schema


def misfits(contract: Document, wanted: Schema, ours: Document, given: Schema, where: str) -> Iterator[str]:
    """Yield what the contract's schema has and ours lacks, or has as another type."""
    theirs, mine = contract.types(wanted), ours.types(given)
    if theirs and mine and not theirs & mine and not (theirs == {"number"} and mine & {"integer"}):
        yield f"{where}: {theirs} became {mine}"
    wanted, given = contract.resolved(wanted), ours.resolved(given)
    if not wanted.get("properties") and "items" not in wanted:
        return
    for several in ("anyOf", "oneOf"):
        given = next((ours.resolved(one) for one in given.get(several, ()) if ours.types(one) != {"null"}), given)
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
            theirs, own = contract.types(parameter["schema"]), ours.types(mine[name]["schema"])
            if theirs and not theirs & own and own != {"string"}:  # in a URL everything is text
                found.append(f"{key} {name}: {theirs} became {own}")
        required = {name for name, parameter in mine.items() if parameter["required"]}
        theirs_required = {n for n, p in contract.parameters(operation).items() if p.get("required")}
        found += [f"{key} {name} became required" for name in required - theirs_required]
    assert found == []


def test_every_field_of_a_body_is_there(contract: Document, ours: Document) -> None:
    """Whatever a client may send has a field of its type."""
    found: list[str] = []
    for key, operation in contract.operations.items():
        wanted, given = (content(part.get("requestBody")) for part in (operation, ours.operations[key]))
        if wanted is not None:
            found += misfits(contract, wanted, ours, given or {"type": "null"}, f"{key}")
    assert found == []


def test_every_field_of_an_answer_is_there(contract: Document, ours: Document) -> None:
    """Whatever a client reads is answered with a type that it understands."""
    found: list[str] = []
    for key, operation in contract.operations.items():
        wanted, given = (content(part["responses"]["200"]) for part in (operation, ours.operations[key]))
        if wanted is not None:
            found += misfits(contract, wanted, ours, given or {"type": "null"}, f"{key}")
    assert found == []


def test_operations_have_a_summary_and_an_id_of_their_own(ours: Document) -> None:
    """For people who read the document, and programs that make clients from it."""
    ids = [operation["operationId"] for operation in ours.operations.values()]
    assert len(set(ids)) == len(ids)
    for key, operation in ours.operations.items():
        assert re.fullmatch(r"[A-Z][^\n]{8,110}[.?]", operation["summary"]), key
