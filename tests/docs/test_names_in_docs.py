"""Pages, docstrings and comments mention only modules, names, files and folders that exist."""

import ast
import fnmatch
import importlib
import io
import pkgutil
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from doc_pages import DOCS

ROOT = DOCS.parent
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
PAGES = [path for path in TRACKED if path.endswith(".md") and path != "CHANGELOG.md"]
FILES_AND_FOLDERS = {*TRACKED, *(str(folder) for path in TRACKED for folder in Path(path).parents)}
SOURCES = [path for path in TRACKED if path.endswith(".py")]
PACKAGES = sorted(path.parent.name for path in ROOT.glob("plugins/*/torc_*/__init__.py"))
_NAME = re.compile(rf"(?<![\w./-])(?:torc_framework|{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+(?![\w/-])")
_PATH = re.compile(r"(?<![\w./~$}>-])(?:torc_framework|plugins|tests|docs|examples|benchmarks|changes)/[\w./*-]*[\w/*]")
_REFERENCE = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.\w+)*)`(?!`)")
"""A name in code, as docstrings and comments refer to it; other words of code stand in double backticks."""
_IN_FILE = re.compile(r"`([A-Za-z_]\w*)`\s+(?:in|of)\s+`([\w/]+\.py)`")
NOT_MODULES = {
    "torc_framework.commands": "the name of an entry-point group",
}
NOT_OURS = {
    "tests/test_peak.py": "a file of the site profile in docs/samples",
}
"""Names and paths that look like ours, each with its reason."""


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a module with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def texts(path: str) -> Iterator[tuple[int, str]]:
    """Yield the texts of a page or of a source file with their first lines."""
    content = (ROOT / path).read_text(encoding="utf-8")
    yield from prose(content) if path.endswith(".py") else [(1, content)]


@cache
def is_name(name: str) -> bool:
    """Return whether a dotted name can be imported or is an attribute of something that can be."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        owner, _, field = name.rpartition(".")
        return "." in owner and field in getattr(resolved(owner), "__annotations__", {})
    return True


def resolved(name: str) -> object:
    """Return what a dotted name stands for, None if there is nothing."""
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return None


@cache
def words_of_code() -> set[str]:
    """Return every name in the code, and the parts of the names of files and folders."""
    words = {word for path in TRACKED for word in re.split(r"[/.]", path)}
    for path in SOURCES:
        tokens = tokenize.generate_tokens(io.StringIO((ROOT / path).read_text(encoding="utf-8")).readline)
        words.update(token.string for token in tokens if token.type == tokenize.NAME)
    return words


def is_path(path: str, page: str) -> bool:
    """Return whether a path, which may contain asterisks, exists in the tree, beside the page or in its plugin."""
    if any(part.split(".")[0].isupper() for part in path.split("/")):
        return True  # a placeholder such as plugins/NAME/tests
    bases = ["", str(Path(page).parent), *("/".join(page.split("/")[:depth]) for depth in (2, 3))]
    patterns = [f"{base}/{path}".lstrip("/").removeprefix("./").rstrip("/") for base in bases]
    return any(fnmatch.filter(FILES_AND_FOLDERS, pattern) for pattern in patterns)


def unknown(path: str) -> list[str]:
    """Return what a file mentions and is not there, with the lines: names, paths, and names in files."""
    found = []
    for line, text in texts(path):
        for match in _NAME.finditer(text):
            if match[0] not in NOT_MODULES and not is_name(match[0]):
                found.append(f"{path}:{line + text[: match.start()].count(chr(10))}: {match[0]}")
        for match in _PATH.finditer(text):
            if match[0] not in NOT_OURS and not is_path(match[0], path):
                found.append(f"{path}:{line + text[: match.start()].count(chr(10))}: {match[0]}")
        for match in _REFERENCE.finditer(text) if path.endswith(".py") else ():
            if not words_of_code().issuperset(match[1].split(".")):
                found.append(f"{path}:{line + text[: match.start()].count(chr(10))}: {match[0]}")
        for match in _IN_FILE.finditer(text):
            if (file := ROOT / match[2]).is_file() and not re.search(rf"\b{match[1]}\b", file.read_text("utf-8")):
                found.append(f"{path}:{line + text[: match.start()].count(chr(10))}: {match[0]}")
    return found


@pytest.mark.parametrize("folder", sorted({path.split("/")[0] for path in PAGES + SOURCES}))
def test_what_is_mentioned_exists(folder: str) -> None:
    files = [path for path in PAGES + SOURCES if path.split("/")[0] == folder]
    assert [mention for path in files if (ROOT / path).exists() for mention in unknown(path)] == []


def test_a_missing_name_is_found() -> None:
    assert is_name("torc_framework.api.TorcClient")
    assert not is_name("torc_framework.api.NoSuchName")
    assert not is_name("torc_framework.no_such_module")
    assert is_path("torc_framework/store", "README.md")
    assert not is_path("torc_framework/no_such_room", "README.md")
    assert importlib.import_module("torc_framework.api") is resolved("torc_framework.api")
