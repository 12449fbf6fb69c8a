"""The sources that are sent to other machines: what they import, and what they are written in."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from torc_framework.api.supervision import package_sources
from torc_framework.supervision import supervisor

SOURCES = package_sources()
PACKAGE = "torc_framework.supervision"


def imported(tree: ast.Module) -> set[str]:
    """Return the modules that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", SOURCES)
def test_a_source_needs_nothing_but_python_3_8(path: str) -> None:
    """Its syntax, and the modules of the standard library and of the package itself."""
    tree = ast.parse(SOURCES[path], feature_version=(3, 8))
    others = {name for name in imported(tree) if name.split(".")[0] not in sys.stdlib_module_names}
    assert {name for name in others if name != PACKAGE and not name.startswith(f"{PACKAGE}.")} == set()


def test_all_sources_are_sent() -> None:
    """Those of the package, and an empty module above it."""
    files = Path(supervisor.__file__).parents[1].rglob("*.py")
    assert len(SOURCES) == len([*files]) + 1
    assert SOURCES["torc_framework/__init__.py"] == ""


def test_the_supervisor_loads_few_modules() -> None:
    """Its memory is the least peak of an attempt that can be measured."""
    folder = str(Path(supervisor.__file__).parents[2])
    stop = "import sys; print(*sorted({'typing', 're', 'pathlib', 'logging', 'subprocess'} & {*sys.modules}))"
    program = supervisor.PROGRAM.replace("main(*sys.argv[2:])", stop)
    assert program != supervisor.PROGRAM
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, folder], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"
