"""Failures of a run as they happen: printed above its line of progress on a terminal."""

from pathlib import Path
from typing import Final

from torc_framework.cli.commands.running.failure_lines import clause_line, failure_lines
from torc_framework.cli.commands.running.progress_line import ProgressLine
from torc_framework.forensics.log_tails import read_stderr_tail
from torc_framework.forensics.run_failures import SHOWN_JOBS, FailureExample, short_path
from torc_framework.models.statuses import JobStatus
from torc_framework.runner import FailureNotice

_MOST_LIKE: Final = 5
"""Most failures of a known cause, and most attempts that are repeated, that get a line."""


class LiveFailures:
    """Prints failed attempts of this runner: one of each cause in full, some others in one line, the rest not.

    Attributes:
        shown: The failed jobs that were printed.
    """

    def __init__(self, progress: ProgressLine) -> None:
        self._progress = progress
        self._first_by_cause: dict[object, str] = {}
        self._repeated = 0
        self.shown: list[FailureExample] = []

    def __call__(self, notice: FailureNotice) -> None:
        """Print an attempt that has failed, unless enough were printed."""
        report, retry = notice.report, notice.report.retry
        if retry is not None and report.attempt_id < retry.max_attempts:
            self._show_repeated(notice)
        elif len(self.shown) < SHOWN_JOBS + _MOST_LIKE:
            self._show_failed(_example(notice))

    def _show_repeated(self, notice: FailureNotice) -> None:
        self._repeated += 1
        if self._repeated <= _MOST_LIKE:
            more = f"; attempt {notice.report.attempt_id + 1} follows"
            line = clause_line(
                _example(notice, read=False), more, glyph=JobStatus.READY.label, stream=self._progress.stream
            )
            self._progress.print_above([line])

    def _show_failed(self, example: FailureExample) -> None:
        stream = self._progress.stream
        first = self._first_by_cause.setdefault(example.cause, example.name)
        if first != example.name:
            self._progress.print_above([clause_line(example, f", as {first} did", stream=stream)])
        elif len(self._first_by_cause) > SHOWN_JOBS:
            self._progress.print_above([clause_line(example, stream=stream)])
        else:
            self._progress.print_above([*failure_lines(example, stream=stream)])
        self.shown.append(example)


def _example(notice: FailureNotice, *, read: bool = True) -> FailureExample:
    report = notice.report
    path = None if notice.stderr_path is None else short_path(Path(notice.stderr_path))
    return FailureExample(
        report.job_id,
        notice.job_name,
        report.status,
        report.attempt_id,
        report.exit_class,
        report.reason,
        report.return_code,
        report.exec_time_s,
        read_stderr_tail(path, notice.stdio, exit_class=report.exit_class) if read else None,
    )
