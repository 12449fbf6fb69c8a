"""The runner's log: lines about attempts are written together, between the lines of others."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from torc_framework.models.exchange import EndedReport
from torc_framework.runner.process.runner_log import RunnerLog

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} level=(\w+) (.*)")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runner.log"


@pytest.fixture
def log(path: Path) -> Iterator[RunnerLog]:
    log = RunnerLog(path, "info")
    log.about(workflow_id=7, run_id=None)
    yield log
    log.close()


def lines(path: Path) -> list[str]:
    """Return the lines without their times, which are checked for their form."""
    if not path.exists():
        return []
    found = [LINE.fullmatch(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [match[2] for match in found if match is not None and match[1] in ("INFO", "WARNING")]


def ended(reason: str | None) -> EndedReport:
    return EndedReport(3, 1, "completed", 0, 0.12345, 1.0, exit_class="success", reason=reason)


def test_lines_about_attempts_are_written_by_flush(log: RunnerLog, path: Path) -> None:
    log.started(3, 1)
    log.ended(ended("exit code 0"), is_start_told=True)
    assert lines(path) == []
    log.flush()
    assert lines(path) == [
        "Job started workflow_id=7 job_id=3 attempt_id=1",
        "Job process completed workflow_id=7 job_id=3 attempt_id=1 return_code=0 exec_time_s=0.123",
        "Job completed workflow_id=7 job_id=3 attempt_id=1 status=completed exit_class=success reason='exit code 0'",
    ]


def test_a_start_that_was_not_told_comes_with_the_end(log: RunnerLog, path: Path) -> None:
    log.ended(ended(None), is_start_told=False)
    log.flush()
    assert [line.partition(" workflow_id")[0] for line in lines(path)] == [
        "Job started",
        "Job process completed",
        "Job completed",
    ]
    assert lines(path)[-1].endswith("exit_class=success")


def test_lines_of_others_keep_their_place(log: RunnerLog, path: Path) -> None:
    log.started(3, 1)
    log.warning("giving_up", reason="the server is gone")
    log.started(4, 1)
    logging.getLogger("torc_framework.plugin").warning("of a plugin")
    log.started(5, 1)
    log.close()
    assert [line.split(" workflow_id")[0] for line in lines(path)] == [
        "Job started",
        "event=giving_up",
        "Job started",
        "of a plugin",
        "Job started",
    ]


def test_a_higher_level_drops_the_lines(tmp_path: Path) -> None:
    log = RunnerLog(tmp_path / "quiet.log", "warning")
    log.started(3, 1)
    log.ended(ended(None), is_start_told=False)
    log.close()
    assert lines(tmp_path / "quiet.log") == []


def test_a_full_disk_drops_the_lines() -> None:
    log = RunnerLog(Path("/dev/full"), "info")
    log.started(3, 1)
    log.flush()
    log.close()
