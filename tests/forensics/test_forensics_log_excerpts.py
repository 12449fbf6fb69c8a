"""Logs of any size and encoding."""

import os
import re
from pathlib import Path

import pytest

from torc_framework.forensics.line_ranking import LineRank
from torc_framework.forensics.log_excerpts import END_BYTES, LogExcerptReader
from torc_framework.models.log_patterns import LogPattern
from torc_framework.models.records import ComputeNodeRecord, ResultRecord

PATTERNS = [LogPattern("Full", re.compile("No space left"), hint="make room")]


@pytest.fixture
def reader() -> LogExcerptReader:
    """A reader that knows one pattern."""
    return LogExcerptReader(PATTERNS, {})


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_lines_have_their_numbers_in_the_file(reader: LogExcerptReader, tmp_path: Path) -> None:
    """Also in a log of which only the end is read closely."""
    filler = b"all is well here, line after line\n" * 20_000
    log = write(tmp_path / "log", filler + b"No space left\n" + filler + b"RuntimeError: no\n")
    found = reader.read_log(log)
    assert found.best is not None
    assert (found.best.number, found.best.text) == (40_002, "RuntimeError: no")
    assert [(line.number, line.pattern) for line in found.lines if line.rank is LineRank.KNOWN] == [(20_001, "Full")]
    end = reader.read_end(log)
    assert end.first_byte > len(log.read_bytes()) - END_BYTES
    assert reader.with_line_number(end) == found.best


def test_what_is_no_text_is_read_all_the_same(reader: LogExcerptReader, tmp_path: Path) -> None:
    """Bytes that are no UTF-8, null bytes, progress bars, lines without an end."""
    log = write(tmp_path / "log", b"\xff\xfe\0 \x80\n 10%\r 50%\r100%\r\n\x1b[31mFatal: n\xf6\x1b[0m")
    texts = [line.text for line in reader.read_log(log).lines]
    assert texts[1:] == ["100%", "Fatal: n�"]
    one_line = write(tmp_path / "long", b"x" * (END_BYTES * 2))
    best = reader.read_log(one_line).best
    assert best is not None
    assert best.text.startswith("xxx")
    assert reader.read_log(write(tmp_path / "empty", b"")).lines == ()


def test_what_is_no_log_is_not_waited_for(reader: LogExcerptReader, tmp_path: Path) -> None:
    """Pipes and folders are named as trouble; so is what is not there."""
    os.mkfifo(tmp_path / "pipe")
    assert reader.read_log(tmp_path / "pipe").trouble == "not a regular file"
    assert reader.read_log(tmp_path).trouble == "not a regular file"
    assert reader.read_log(tmp_path / "gone").trouble == "No such file or directory"


def node(spool: Path) -> ComputeNodeRecord:
    return ComputeNodeRecord(
        workflow_id=1, hostname="h", pid=1, start_time="", num_cpus=1, memory_gb=1, num_gpus=0, num_nodes=1,
        compute_node_type="local", scheduler={"spool": str(spool)},
    )  # fmt: skip


def result(node_id: int = 7) -> ResultRecord:
    return ResultRecord(
        job_id=2, workflow_id=1, run_id=3, attempt_id=4, compute_node_id=node_id, return_code=1,
        exec_time_minutes=1.0, completion_time="", status="failed",
    )  # fmt: skip


def test_logs_are_where_the_runner_said(tmp_path: Path) -> None:
    """Unless another folder is named; a folder that is not reachable gives way to the usual one."""
    spool = tmp_path / "out" / ".torc_runner" / "x.ends"
    spool.parent.mkdir(parents=True)
    expected = Path("job_stdio", "job_wf1_j2_r3_a4.e")
    assert LogExcerptReader([], {7: node(spool)}).paths(result())[0] == tmp_path / "out" / expected
    assert LogExcerptReader([], {7: node(spool)}, tmp_path).paths(result())[0] == tmp_path / expected
    assert LogExcerptReader([], {7: node(Path("/gone/x/y"))}).paths(result())[0] == "output" / expected
    assert LogExcerptReader([], {}).paths(result())[0] == "output" / expected


@pytest.mark.parametrize(
    ("errors", "output", "told"),
    [
        ("warning\n", "ValueError: x\n", "ValueError: x"),
        ("RuntimeError: e\n", "ValueError: x\n", "RuntimeError: e"),
        ("", "it failed\n", "it failed"),
        ("it failed\n", "plain\n", "it failed"),
        ("", "", None),
    ],
)
def test_standard_output_counts_where_standard_error_tells_little(
    tmp_path: Path, errors: str, output: str, told: str | None
) -> None:
    """Some programs print their errors there."""
    reader = LogExcerptReader(PATTERNS, {}, tmp_path)
    (tmp_path / "job_stdio").mkdir()
    for path, text in zip(reader.paths(result()), (errors, output), strict=True):
        path.write_text(text)
    decisive = reader.read_decisive_end(result())
    assert (decisive.best and decisive.best.text) == told
