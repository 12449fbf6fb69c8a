"""The source files of the package, for sending them to another machine."""

from __future__ import annotations

from pathlib import Path


def package_sources() -> dict[str, str]:
    """Return the text of each source file of the package by its path, relative to a folder of Python's search path.

    The package is a part of ``torc_framework``, whose own ``__init__`` is replaced by an empty file.
    """
    package = Path(__file__).parent
    root = package.parents[1]
    found = {f"{package.parent.name}/__init__.py": ""}
    for path in sorted(package.rglob("*.py")):
        found[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
    return found
