"""The page of the operations of the HTTP API, from its OpenAPI document."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from torc_framework.models import torc_contract
from torc_framework.server.dispatch.openapi import openapi_document
from torc_framework.server.routes.table import all_endpoints


def page(
    table: Callable[[list[str], list[list[str]]], str],
    contract_table: Callable[[str, Mapping[str, torc_contract.ContractItem]], str],
) -> str:
    """Every operation of the HTTP API, by its subject."""
    published = openapi_document(all_endpoints())
    tables: dict[str, list[list[str]]] = {}
    for path, methods in published["paths"].items():
        for method, operation in methods.items():
            query = [
                f"`{p['name']}`{'' if p['required'] else '?'}" for p in operation["parameters"] if p["in"] == "query"
            ]
            tables.setdefault(operation["tags"][0], []).append(
                [
                    f"`{method.upper()} {path.removeprefix('/torc-service/v1')}`",
                    operation["summary"],
                    ", ".join(query),
                    schema_name(operation.get("requestBody")),
                    schema_name(operation["responses"]["200"]),
                ]
            )
    parts = [
        "# Operations of the HTTP API\n",
        "Paths begin with `/torc-service/v1`. Query parameters with a question mark are optional.",
        "[Records](records.md) lists the fields of most bodies and answers; the server's OpenAPI",
        "document, `/torc-service/v1/openapi.json`, lists all.",
        "[HTTP API](http.md) describes what all operations have in common.\n",
    ]
    for tag in sorted(tables):
        head = ["request", "does", "query", "body", "answer"]
        parts += [f"## {tag.replace('_', ' ').capitalize()}\n", table(head, sorted(tables[tag], key=path_first))]
    parts += [
        "## Parameters that are not carried out\n",
        "These query parameters of Torc's contracts are *refused* with 422, unless they have a value without effect,",
        "or have none here (*read-only*).\n",
    ]
    for name, items in torc_contract.CONTRACT_PARAMETERS.items():
        parts += [f"`{name}`:\n", contract_table("parameter", items)]
    return "\n".join(parts)


def path_first(row: list[str]) -> tuple[str, str]:
    """The order of operations: by path, then by method."""
    method, _, path = row[0].strip("`").partition(" ")
    return path, method


def schema_name(part: Any) -> str:
    """The name of the schema of a body or an answer."""
    schema: Any = next(iter(part["content"].values()), {}).get("schema", {}) if part else {}
    several = "items" in schema
    name = (schema["items"] if several else schema).get("$ref", "").rpartition("/")[2].removesuffix("Record")
    inner = re.fullmatch(r"(?:Short)?Page_(\w+?)(?:Record)?_", name)
    if inner:
        return f"page of {inner[1]}"
    return f"list of {name or 'text'}" if several else name or {"string": "text"}.get(schema.get("type", ""), "")
