"""Tests of the program that measures the costs of jobs and runners."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import DOCS
from programs import isolated_environment

FLEET = DOCS.parent / "benchmarks" / "fleet.py"
PAGE = DOCS / "explanation" / "scale.md"
SMALL = {
    "storage": ["--storage-jobs", "200"],
    "files": ["--files-jobs", "3"],
    "waiting": ["--waiting-runners", "1,3", "--waiting-seconds", "0.1"],
    "working": ["--working-runners", "1", "--working-jobs", "100", "--working-seconds", "60"],
}
"""For each section the options that make it small."""
TABLES = {
    "storage": {"storage": 2, "rows": 4},
    "files": {"files": 4},
    "waiting": {"waiting": 2},
    "working": {"working": 3},
}
"""For each section its tables, with their least numbers of rows."""
_MARKER = re.compile(r"<!-- (\w+): begin -->\n(.*?)<!-- \1: end -->", re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("section", SMALL)
def test_a_section_writes_its_tables(section: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- {name}: begin -->\n<!-- {name}: end -->\n" for name in TABLES[section]))
    command: list[str | Path] = [sys.executable, FLEET, section, *SMALL[section], "--write", page]
    done = subprocess.run(
        command, env=isolated_environment(tmp_path / "home"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for name, table in _MARKER.findall(page.read_text()):
        head, rule, *rows = table.splitlines()
        assert len(rows) >= TABLES[section][name]
        assert {line.count("|") for line in (head, rule, *rows)} == {head.count("|")}
        assert table in done.stdout


def test_the_page_has_the_tables() -> None:
    found = dict(_MARKER.findall(PAGE.read_text(encoding="utf-8")))
    of_fleet = {name for tables in TABLES.values() for name in tables}
    assert set(found) == {*of_fleet, "million"}, "the last one is that of benchmarks/million.py"
    assert all(table.startswith("| ") for table in found.values())
