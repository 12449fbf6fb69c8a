"""What no file of the project may hold."""

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).parents[2]
MACHINE_PATHS = re.compile(r"/(?:ho" r"me|roo" r"t|wo" r"rk)/[a-z]")
SUPPRESSION = re.compile(r"#\s*(?:noqa|type:\s*ignore|pragma:)")
REASONED = re.compile(r"#\s*(?:noqa: [A-Z0-9, ]+? - |type: ignore\[[^]]+\]\s*#\s*(?!noqa)|pragma: [a-z ]+? - )\S")
"""A suppression that names what it suppresses, and then why: ``noqa: X1 - why``, ``type: ignore[x]  # why``."""
LONG: dict[str, str] = {
    "torc_framework/store/migrations/versions/0001_first.py upgrade": "generated: one statement for each table",
}
"""Functions of more than 60 lines, each with the reason."""
SHARED_NAMES: dict[str, str] = {}
"""Names of several classes, each with the reason."""
ROOT_ENTRIES: Final = frozenset(
    [
        ".ci",
        ".gitignore",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "benchmarks",
        "changes",
        "docs",
        "examples",
        "plugins",
        "pyproject.toml",
        "tests",
        "torc_framework",
        "web",
    ]
)
MAX_FILE_BYTES: Final = 500_000
BUILT: Final = re.compile(r"\.(?:whl|egg|pyc|so|a|o|exe|dll|jar|zip|gz|xz|bz2|zst|tar|db|sqlite3?)$", re.IGNORECASE)
"""Names of files that a program builds from others."""
SECRETS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.decode().split("\0") if name]


def test_only_sources_are_tracked() -> None:
    """A new entry of the root is added to the list on purpose; what is built or large is no part of the project."""
    files = [path for path in tracked() if path.is_file()]
    assert {path.relative_to(ROOT).parts[0] for path in files} - ROOT_ENTRIES == set()
    assert [path for path in files if BUILT.search(path.name)] == []
    assert [path for path in files if path.stat().st_size > MAX_FILE_BYTES] == []
    assert [path for path in files if path.parent == ROOT and b"\0" in path.read_bytes()] == []


def test_no_paths_of_a_machine_and_no_secrets() -> None:
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        for pattern in (MACHINE_PATHS, SECRETS):
            found = pattern.search(text)
            assert found is None, f"{path.relative_to(ROOT)} holds {found.group()!r}"


def test_modules_stay_small_enough_to_hold_in_the_head() -> None:
    for path in tracked():
        if path.suffix == ".py" and path.is_file():
            lines = path.read_text(encoding="utf-8").count("\n")
            assert lines <= 500, f"{path.relative_to(ROOT)} has {lines} lines: it holds two ideas"


def test_helpers_of_tests_have_names_of_their_own() -> None:
    """pytest's and mypy's paths have them all, so that of two with one name only the first would be imported."""
    folders = [ROOT / "tests", *(ROOT / "tests").glob("*/"), *(ROOT / "plugins").glob("*/tests/")]
    names = [path.stem for path in tracked() if path.suffix == ".py" and path.parent in folders]
    helpers = Counter(name for name in names if name not in {"conftest", "__init__"})
    assert [name for name, times in helpers.items() if times > 1 or name in sys.stdlib_module_names] == []


def test_nothing_outside_the_checkout_is_needed() -> None:
    """Each file finds its way from where it is, and none leaves the checkout."""
    up = re.compile(r"__file__\)(?:\.resolve\(\))?\.parents\[(\d+)\]")
    for path in tracked():
        if path.suffix == ".py" and path.exists():
            depth = len(path.relative_to(ROOT).parents)
            for match in up.finditer(path.read_text(encoding="utf-8")):
                assert int(match[1]) < depth, f"{path.relative_to(ROOT)} reaches above the checkout: {match[0]}"


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules of the framework and of its plugins, without tests."""
    for path in tracked():
        where = path.relative_to(ROOT)
        if (
            path.suffix == ".py"
            and any(part.startswith("torc_") for part in where.parts)
            and "tests" not in where.parts
        ):
            yield str(where), ast.parse(path.read_text(encoding="utf-8"))


def test_a_suppression_has_a_reason() -> None:
    """Of ruff, of mypy and of coverage, each on its own line; two on one line share the last one's reason."""
    bare = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked()
        if path.suffix == ".py" and path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if SUPPRESSION.search(line) and not REASONED.search(line)
    ]
    assert bare == []


def test_functions_stay_short_enough_to_see_whole() -> None:
    """At most 60 lines, signature and docstring included."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {
        f"{where} {node.name}"
        for where, module in sources()
        for node in ast.walk(module)
        if isinstance(node, functions) and (node.end_lineno or 0) - node.lineno >= 60
    }
    assert found == set(LONG)


def test_a_class_name_means_one_thing() -> None:
    """In the whole of framework and plugins; an underscore does not make another name of it."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for where, module in sources():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(where)
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in shared.items() if name not in SHARED_NAMES} == {}
    assert set(SHARED_NAMES) <= set(shared)
