"""What no file of the project may hold."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MACHINE_PATHS = re.compile(r"/(?:ho" r"me|roo" r"t|wo" r"rk)/[a-z]")
SECRETS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.decode().split("\0") if name]


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
        if path.suffix == ".py" and "torc_framework" in path.parts:
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
