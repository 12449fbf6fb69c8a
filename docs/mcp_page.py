"""The reference page of the MCP server's tools, from their declarations."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from torc_framework.cli.programs.torc_mcp_server import _parser
from torc_framework.client import TorcClient
from torc_framework.mcp.server import make_server
from torc_framework.mcp.tool_context import ToolContext
from torc_framework.plugins.manager import PluginManager

Table = Callable[[list[str], list[list[str]]], str]


def page(table: Table) -> str:
    """Every tool with its parameters, and the options of the program."""
    context = ToolContext(TorcClient("http://localhost"), PluginManager.load)
    tools = asyncio.run(make_server(context).list_tools())
    parts = [
        "# MCP tools\n",
        "The tools of `torc-mcp-server`. Answers are JSON objects, errors are texts. `<redacted>` replaces secrets in",
        "both. [Use an assistant](../how-to/use-an-assistant.md) describes the set-up.\n",
        f"```text\n{_parser().page(98).rstrip()}\n```\n",
    ]
    for title, changes in (("Tools that only read", False), ("Tools that change a workflow", True)):
        parts.append(f"## {title}\n")
        for tool in tools:
            if bool(tool.annotations and tool.annotations.destructive_hint) is changes:
                summary, _, rest = (tool.description or "").partition("\n")
                parts += [f"### `{tool.name}`\n", " ".join([summary, *rest.split()]).strip() + "\n"]
                parts.append(_parameters(tool.input_schema, table))
    return "\n".join(parts)


def _parameters(schema: dict[str, Any], table: Table) -> str:
    rows = _rows(schema, schema, "")
    return table(["parameter", "type", "default", "meaning"], rows) if rows else "No parameters.\n"


def _rows(schema: dict[str, Any], root: dict[str, Any], prefix: str) -> list[list[str]]:
    """One row for each parameter, and for each field of a list of objects."""
    rows = []
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in schema.get("required", ()) else f"`{json.dumps(field.get('default'))}`"
        rows.append([f"`{prefix}{name}`", _type(field), default, field.get("description", "")])
        reference = field.get("items", {}).get("$ref", "").rpartition("/")[2]
        if reference:
            rows += _rows(root["$defs"][reference], root, f"{name}[].")
    return rows


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(map(str, field["enum"]))
    kinds = [kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
    names = {"array": "list", "string": "text"}
    return " or ".join(names.get(kind.get("type", "object"), kind.get("type", "object")) for kind in kinds)
