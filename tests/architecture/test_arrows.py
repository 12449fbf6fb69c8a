"""Who may import whom: `rooms.toml` is the architecture, and a new arrow is a change of that table."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from import_graph import CORE, ROOT, circles, folder_graph, imports, module_graph, module_names, modules

TABLE: dict[str, Any] = tomllib.loads((Path(__file__).parent / "rooms.toml").read_text(encoding="utf-8"))
ROOMS: dict[str, dict[str, Any]] = {
    name: {**room, "layer": rank}
    for rank, layer in enumerate(reversed(TABLE["layers"]))
    for name, room in layer["rooms"].items()
}

# The store, and the files of samples that people query with sqlite3.
SQL_ROOMS = {"store", "resource_samples"}
SQL_LIBRARIES = {"sqlalchemy", "sqlmodel", "sqlite3", "alembic"}

PLUGIN_FACES = {
    "torc_framework.api",
    *(f"torc_framework.api.{name}" for name in ("commands", "planning", "supervision")),
}
PLUGIN_TEST_FACES = PLUGIN_FACES | {"torc_framework.testing"}


def room_of(module: str) -> str | None:
    """Return the room of a module of the core: a folder or a module directly under ``torc_framework``.

    A module of a room may be a room of its own, as `api.commands` is. The core's own ``__init__`` is no room.
    """
    parts = module.split(".")[1:]
    return next((name for end in (2, 1) if (name := ".".join(parts[:end])) in ROOMS), parts[0] if parts else None)


def arrows() -> dict[str, set[str]]:
    """Return the rooms that the modules of each room import."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module, targets in module_graph().items():
        if module.split(".")[0] == CORE.name and (room := room_of(module)):
            found.setdefault(room, set()).update(other for each in targets if (other := room_of(each)))
    return {room: targets - {room} for room, targets in found.items()}


def test_modules_import_what_their_rooms_may() -> None:
    for module in sorted(name for name in module_names() if name.split(".")[0] == CORE.name):
        if room := room_of(module):
            check_imports(module, room)


def check_imports(module: str, room: str) -> None:
    """Fail if the table does not allow a module of this room what it imports."""
    assert room in ROOMS, f"{room} is a new room: rooms.toml says what it is and what it may import"
    allowed = ROOMS[room]["imports"]
    for target in module_graph()[module]:
        assert target.split(".")[0] == CORE.name, f"{module} imports a plugin: {target}"
        other = room_of(target)
        assert other in {None, room, *allowed}, f"{module} imports {target}, which rooms.toml does not allow {room}"
        only = ROOMS[room].get("only", {}).get(other or "")
        assert only is None or module.startswith(f"{CORE.name}.{only}"), f"of {room}, only {only} may import {other}"


def test_every_arrow_of_the_table_is_used() -> None:
    used = arrows()
    assert {room: sorted({*entry["imports"]} - used[room]) for room, entry in ROOMS.items()} == {
        room: [] for room in ROOMS
    }


def test_no_arrow_points_upward() -> None:
    upward = [
        f"{room} -> {target}"
        for room, entry in ROOMS.items()
        for target in entry["imports"]
        if ROOMS[target]["layer"] > entry["layer"]
    ]
    assert upward == []


def test_rooms_form_no_circle() -> None:
    assert circles({room: set(entry["imports"]) for room, entry in ROOMS.items()}) == []


def test_folders_form_no_circle() -> None:
    """Also those within a room: the arrows between its folders, and between these and its own files."""
    rooms_of_one_module = {f"{CORE.name}.{room}" for room in ROOMS if "." in room}
    assert circles(folder_graph(rooms_of_one_module)) == []


def test_files_form_no_circle() -> None:
    assert circles(module_graph()) == []


@pytest.mark.parametrize("path", modules(ROOT / "plugins"), ids=lambda path: str(path.relative_to(ROOT)))
def test_plugins_know_only_the_public_face(path: Path) -> None:
    allowed = PLUGIN_TEST_FACES if "tests" in path.parts else PLUGIN_FACES
    for each in imports(path):
        if each.name.startswith("torc_framework"):
            module = each.name if each.name in module_names() else each.name.rpartition(".")[0]
            assert module in allowed, f"{path.name}:{each.line}: a plugin imports {each.name}"


def test_only_the_store_speaks_sql() -> None:
    for module, path in module_names().items():
        if module.split(".")[0] == CORE.name and room_of(module) not in SQL_ROOMS:
            for each in imports(path):
                assert each.name.split(".")[0] not in SQL_LIBRARIES, f"{path}:{each.line}: SQL outside the store"
