"""Tests of the program that measures the commands which read, create and delete a very large workflow."""

import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import DOCS
from programs import isolated_environment

MILLION = DOCS.parent / "benchmarks" / "million.py"
COMMANDS = 16


@pytest.mark.slow
def test_it_writes_its_table(tmp_path: Path) -> None:
    """It measures all commands with a workflow of any size."""
    page = tmp_path / "page.md"
    page.write_text("<!-- million: begin -->\n<!-- million: end -->\n")
    command: list[str | Path] = [sys.executable, MILLION, "--jobs", "1000", "--write", page]
    environment = isolated_environment(tmp_path / "home")
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, head, _, *rows, _ = page.read_text().splitlines()
    assert len(rows) == COMMANDS
    assert {line.count("|") for line in rows} == {head.count("|")}
