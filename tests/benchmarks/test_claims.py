"""Tests of the program that measures claims."""

import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import DOCS
from programs import isolated_environment

CLAIMS = DOCS.parent / "benchmarks" / "claims.py"
OPERATIONS = ["claim_next_jobs", "claim_jobs_based_on_resources", "exchange"]


@pytest.mark.slow
def test_each_operation_claims_every_job_once(tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, CLAIMS, "--jobs", "50", "--clients", "3", "--seconds", "60"]
    done = subprocess.run(
        command, env=isolated_environment(tmp_path / "home"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    found = [dict(zip(head, row, strict=True)) for row in rows]
    assert [row["operation"] for row in found] == OPERATIONS
    assert {(row["claims"], row["doubles"], row["failures"]) for row in found} == {("50", "0", "0")}
