"""Tests of records' bodies: error messages and the work for malformed bodies are bounded."""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from torc_framework.models.records import FileRecord, JobRecord
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.server.http.request_bodies import MAX_FINDINGS, joined_findings, parse_body, refuse_nul
from torc_framework.server.routes import records
from torc_framework.store.errors import RuleError

MANY = 200_000
FILE = {"workflow_id": 1, "name": "f", "path": "p"}


def test_any_number_of_unknown_fields_is_looked_at_once() -> None:
    """Work that grows with the square of the number would not end; the first names are told."""
    values, unknown = parse_body(FileRecord, {**FILE, **{f"x{n}": n for n in range(MANY)}}, complete=True)
    assert (values, unknown) == (FILE, [f"x{n}" for n in range(MAX_FINDINGS)])


def test_any_number_of_wrong_items_is_one_finding() -> None:
    """Each wrong field is told, a list by its first wrong item."""
    body = {"workflow_id": "1", "depends_on_job_ids": [1, *["a"] * MANY], "input_file_ids": [None] * MANY}
    with pytest.raises(RequestError) as refused:
        parse_body(JobRecord, body, complete=True)
    assert str(refused.value).count(";") == 2
    assert "depends_on_job_ids.1: Input should be a valid integer" in str(refused.value)


def test_the_first_findings_are_told_and_the_others_counted() -> None:
    assert joined_findings(["a", "b"]) == "a; b"
    assert joined_findings([str(n) for n in range(MAX_FINDINGS + 3)]).endswith("; 19; and 3 more")


def test_too_many_jobs_are_refused_before_any_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_arguments: Any, **_more: Any) -> Any:
        raise AssertionError("a job was parsed")

    monkeypatch.setattr(records, "parse_body", parse)
    with pytest.raises(RuleError, match="a batch holds at most 10000 jobs, this one has 200000"):
        records.JobBatch([{}] * MANY).parse_records()


def test_unknown_fields_of_many_jobs_are_told_in_bounded_number() -> None:
    jobs: list[Mapping[str, Any]] = [
        {"workflow_id": 1, "name": "j", "command": "c", **{f"x{n}_{m}": 1 for m in range(30)}} for n in range(100)
    ]
    assert len(records.JobBatch(list(jobs)).parse_records()) <= 2 * MAX_FINDINGS


@pytest.mark.parametrize("body", [rb"", rb"\\u0000", rb"\\\\u0000", rb"\\u0000" * 50_000, b"\\\\" * 50_000 + b"u0000"])
def test_a_backslash_before_u0000_is_no_nul(body: bytes) -> None:
    refuse_nul(body)


@pytest.mark.parametrize("body", [rb"\u0000", rb"\\\u0000", rb"a\u0000", rb"\\u0000\u0000", b"\\" * 99_999 + b"u0000"])
def test_a_nul_is_found_behind_any_number_of_backslashes(body: bytes) -> None:
    with pytest.raises(RequestError, match="NUL"):
        refuse_nul(body)


def test_a_runner_registers_without_the_import_of_pydantic() -> None:
    """Its import takes as long as the rest of a short run's requests."""
    code = (
        "import sys\n"
        "from torc_framework.models.records import ComputeNodeRecord\n"
        "from torc_framework.server.http.request_bodies import parse_body\n"
        "node = {'hostname': 'n', 'pid': 1, 'memory_gb': 2.5, 'scheduler': {'folder': '/w', 'steps': [1, None]}}\n"
        "assert parse_body(ComputeNodeRecord, node, complete=False) == (node, [])\n"
        "assert 'pydantic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
