"""The drawing of the rooms in the page on the architecture, made from the table that the tests hold imports against."""

import tomllib
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any

ROOMS = Path(__file__).parents[1] / "tests" / "architecture" / "rooms.toml"
PAGE = Path(__file__).parent / "explanation" / "architecture.md"
BEGIN = "<!-- Generated from tests/architecture/rooms.toml by docs/generate.py; edit the table there. -->\n"
END = "<!-- End of the generated part. -->\n"

Table = Callable[[list[str], list[list[str]]], str]


def architecture(table: Table) -> str:
    """Return the whole page, with the drawing and the list of rooms made anew."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    layers = tomllib.loads(ROOMS.read_text(encoding="utf-8"))["layers"]
    return before + BEGIN + "\n" + _picture(layers) + "\n" + _list(layers, table) + "\n" + END + rest.partition(END)[2]


def _picture(layers: list[dict[str, Any]]) -> str:
    """Draw the layers from top to bottom, and the arrows between rooms that no longer way already tells."""
    imports = {name: set(room["imports"]) for layer in layers for name, room in layer["rooms"].items()}
    lines = ["```mermaid", "flowchart TD"]
    for layer in layers:
        lines += [f"  subgraph {layer['name']}", "    direction LR", *(f"    {_node(name)}" for name in layer["rooms"])]
        lines.append("  end")
    lines += [f"  {_key(room)} --> {_key(other)}" for room in imports for other in sorted(_direct(imports, room))]
    return "\n".join([*lines, "```", ""])


def _key(room: str) -> str:
    return "room_" + room.replace(".", "_")  # "graph" and "end" are words of Mermaid


def _node(room: str) -> str:
    return f'{_key(room)}["{room}"]'


def _direct(imports: Mapping[str, Set[str]], room: str) -> set[str]:
    """Return what a room imports and nothing else that it imports does."""

    def below(name: str) -> set[str]:
        return set(imports[name]).union(*map(below, imports[name]))

    return set(imports[room]) - set().union(*map(below, imports[room]))


def _list(layers: list[dict[str, Any]], table: Table) -> str:
    parts = []
    for layer in layers:
        rows = [
            [f"`{name}`", room["is"], ", ".join(f"`{each}`" for each in room["imports"]) or "nothing of ours"]
            for name, room in layer["rooms"].items()
        ]
        head = f"**{layer['name'].capitalize()}**: {layer['meaning']}.\n\n"
        parts.append(head + table(["Room", "What it is", "Imports"], rows))
    return "\n".join(parts)
