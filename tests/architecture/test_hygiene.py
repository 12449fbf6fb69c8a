"""What no file of the project may hold."""

import re
import subprocess
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
