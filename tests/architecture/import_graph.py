"""The imports of the source tree as a graph: who imports whom, and where that is circular."""

import ast
from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[2]
CORE = ROOT / "torc_framework"
Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True)
class Import:
    """One import of a module: the line, and the full name of the module, or of the name in it."""

    line: int
    name: str


def modules(folder: Path) -> list[Path]:
    """Return the Python files in a folder and its subfolders."""
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def packages() -> list[Path]:
    """Return the folders of the packages that the project ships: the core, and one of each plugin."""
    found = (path.parent for path in ROOT.glob("plugins/*/torc_*/__init__.py"))
    return [CORE, *sorted(found)]


def imports(path: Path) -> Iterator[Import]:
    """Yield what a module imports, wherever in it: also within functions, and for the type checker alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: import by the full name"
            yield from (Import(node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@cache
def module_names() -> Mapping[str, Path]:
    """Return the file of each module of the packages by the module's full name."""
    found = {}
    for package in packages():
        for path in modules(package):
            parts = path.relative_to(package.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def module_graph() -> Mapping[str, Set[str]]:
    """Return the modules of ours that each module imports."""
    known = module_names()
    graph = {}
    for module, path in known.items():
        found = {name if (name := each.name) in known else name.rpartition(".")[0] for each in imports(path)}
        graph[module] = (found & known.keys()) - {module}
    return graph


def folder_of(module: str) -> str:
    """Return the package that a module lies in; a package lies in itself."""
    return module if module_names()[module].name == "__init__.py" else module.rpartition(".")[0]


def folder_graph(apart: Set[str] = frozenset()) -> Mapping[str, Set[str]]:
    """Return the folders that the files of each folder import.

    Args:
        apart: Modules that count as folders of their own, as those directly in the core do.
    """

    def name(module: str) -> str:
        return module if module in apart or folder_of(module) == CORE.name else folder_of(module)

    graph: dict[str, set[str]] = {}
    for module, targets in module_graph().items():
        graph.setdefault(name(module), set()).update(map(name, targets))
    return {folder: targets - {folder} for folder, targets in graph.items()}


def circles(graph: Mapping[Node, Set[Node]]) -> list[list[Node]]:
    """Return the groups of nodes that reach one another (strongly connected components of two nodes or more)."""
    reached = {node: _reached(graph, node) for node in graph}
    found: list[list[Node]] = []
    for node in graph:
        if any(node in circle for circle in found):
            continue
        circle = [other for other in reached[node] if node in reached.get(other, ())]
        if circle and (len(circle) > 1 or node in graph[node]):
            found.append(sorted(circle, key=str))
    return found


def _reached(graph: Mapping[Node, Set[Node]], start: Node) -> set[Node]:
    seen: set[Node] = set()
    left = list(graph[start])
    while left:
        if (node := left.pop()) not in seen:
            seen.add(node)
            left += graph.get(node, ())
    return seen
