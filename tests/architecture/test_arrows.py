"""Who may import whom. The table below is the architecture; a new arrow is a change of this table."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "torc_framework"

# What a room may import of ours. A room is a folder or a module directly under torc_framework/.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "models": set(),
    "exits": {"models"},
    "redaction": set(),
    "options": set(),
    "executors": {"errors", "models", "options"},
    "htpasswd": {"errors"},
    "processes": {"errors"},
    "shells": {"errors", "models"},
    "user": {"errors"},
    "hookspecs": {"executors", "models"},
    "api": {"cli", "client", "errors", "executors", "exits", "graph", "hookspecs", "hpc", "logs", "models", "options"}
    | {"patterns", "processes", "redaction", "reports", "runner", "shells", "spec", "user"},
    "patterns": set(),
    "ownership": set(),
    "private_files": set(),
    "terminal": set(),
    "trust": {"errors", "ownership", "private_files", "user"},
    "project_plugins": {"errors", "ownership", "terminal", "trust"},
    "plugins": {"errors", "executors", "hookspecs", "models", "builtin", "project_plugins"},
    "builtin": {"api"},
    "graph": {"models", "terminal"},
    "spec": {"errors", "exits", "models", "graph", "patterns", "terminal", "user"},
    "config": {"errors", "models", "ownership", "server", "user"},
    "client": {"errors", "models", "user"},
    "store": {"errors", "models", "private_files"},
    "server": {"errors", "htpasswd", "models", "store", "private_files", "processes", "terminal"},
    "metrics": set(),
    "plots": {"errors", "metrics"},
    "logs": {"errors", "models"},
    "next_step": {"client", "executors", "models"},
    "explain": {"client", "errors", "models", "next_step"},
    "reports": {"client", "errors", "models"},
    "hpc": {"client", "config", "errors", "executors", "graph", "models", "patterns", "plugins"},
    "runner": {"client", "errors", "executors", "exits", "metrics", "models", "plugins", "private_files"}
    | {"processes", "options", "project_plugins", "shells", "trust"},
    "recovery": {"client", "errors", "executors", "hpc", "models", "next_step", "pending", "plugins", "runner"}
    | {"processes"},
    "pending": {"client", "models", "plugins"},
    "mcp": {"client", "errors", "logs", "models", "next_step", "pending", "plugins", "recovery", "redaction", "reports"}
    | {"spec"},
    "forensics": {"client", "errors", "logs", "models", "next_step", "plugins"},
    "embedded": {"client", "errors", "server", "private_files", "processes", "user"},
    "testing": {"api", "embedded"},
    "cli": {
        "client",
        "config",
        "embedded",
        "errors",
        "executors",
        "exits",
        "forensics",
        "graph",
        "hookspecs",
        "hpc",
        "htpasswd",
        "explain",
        "logs",
        "mcp",
        "models",
        "next_step",
        "options",
        "pending",
        "recovery",
        "plots",
        "plugins",
        "private_files",
        "project_plugins",
        "reports",
        "runner",
        "server",
        "spec",
        "terminal",
        "trust",
        "user",
    },
}

# Arrows that a room has only in the modules whose path begins so.
DOORS: dict[str, str] = {
    "api -> spec": "api/planning.py",
    "api -> runner": "api/commands.py",
    "api -> reports": "api/commands.py",
    "api -> logs": "api/commands.py",
    "api -> hpc": "api/planning.py",
    "api -> graph": "api/commands.py",
    "api -> cli": "api/",
    "cli -> server": "cli/server_",
    "config -> server": "config/sections.py",
}

# The store, and the files of samples that people query with sqlite3.
SQL_ROOMS = {"store", "metrics"}

# The built-in plugins are named in a table; the manager imports that table, not the plugins.
PLUGIN_FACES = {"torc_framework.api", "torc_framework.api.commands", "torc_framework.api.planning"}
PLUGIN_TEST_FACES = PLUGIN_FACES | {"torc_framework.testing"}


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and full name of everything of ours that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: import by the full name"
            module = node.module or ""
            if module == "torc_framework":
                yield from ((node.lineno, f"torc_framework.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module


def room_of(path: Path) -> str:
    relative = path.relative_to(CORE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


@pytest.mark.parametrize("path", modules(CORE), ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_between_rooms(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    assert room in ROOMS, f"{room} is a new room: say in this table what it may import"
    where = str(path.relative_to(CORE))
    for line, name in imports(path):
        if not name.startswith("torc_framework."):
            assert not name.startswith("torc_"), f"{where}:{line}: the core imports a plugin: {name}"
            continue
        target = name.split(".")[1]
        if target in {room, "__version__"}:
            continue
        assert target in ROOMS[room], f"{where}:{line}: {room} may not import {target}"
        door = DOORS.get(f"{room} -> {target}")
        assert where.startswith(door or ""), f"{where}:{line}: only {door} may import {target}"


@pytest.mark.parametrize("path", modules(ROOT / "plugins"), ids=lambda path: str(path.relative_to(ROOT)))
def test_plugins_know_only_the_public_face(path: Path) -> None:
    for line, name in imports(path):
        if name.startswith("torc_framework"):
            allowed = PLUGIN_TEST_FACES if "tests" in path.parts else PLUGIN_FACES
            assert name in allowed, f"{path.name}:{line}: a plugin imports {name}"


def test_no_two_rooms_import_each_other() -> None:
    for room, targets in ROOMS.items():
        for target in targets:
            assert room not in ROOMS[target], f"{room} and {target} import each other"


def test_only_the_store_speaks_sql() -> None:
    for path in modules(CORE):
        if room_of(path) in SQL_ROOMS:
            continue
        for line, name in imports(path):
            top = name.split(".")[0]
            assert top not in {"sqlalchemy", "sqlmodel", "sqlite3", "alembic"}, f"{path}:{line}: SQL outside the store"
