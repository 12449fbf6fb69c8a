"""Reports of ends on disk until the server has stored them, for launchers that do not keep ends themselves."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from torc_framework.models.exchange import EndedReport
from torc_framework.runner.process.runner_log import RunnerLog
from torc_framework.system.private_files import create_private

_decoder = msgspec.json.Decoder(EndedReport)


class ReportSpool:
    """The file of one runner's unacknowledged reports: a JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._unacknowledged: set[tuple[int, int]] = set()

    def add(self, report: EndedReport) -> None:
        """Write a report to the file, as a whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        if self._fd is None:
            self._fd = create_private(self.path, os.O_WRONLY | os.O_APPEND)
        self._append(self._fd, msgspec.json.encode(report) + b"\n")
        self._unacknowledged.add((report.job_id, report.attempt_id))

    def keep(self, report: EndedReport, log: RunnerLog) -> None:
        """Write a report to the file; a failure is logged, and the report is sent to the server all the same."""
        try:
            self.add(report)
        except OSError as error:
            log.warning("end_not_kept", job_id=report.job_id, reason=str(error))

    @staticmethod
    def _append(fd: int, line: bytes) -> None:
        size = os.fstat(fd).st_size
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(fd, rest) :]
        except OSError:
            os.ftruncate(fd, size)
            raise

    def acknowledge(self, reports: list[EndedReport]) -> None:
        """Note that the server has stored these reports; the file is emptied when it has stored all."""
        if self._fd is not None and self._unacknowledged:
            self._unacknowledged.difference_update((report.job_id, report.attempt_id) for report in reports)
            if not self._unacknowledged:
                os.ftruncate(self._fd, 0)

    def close(self) -> None:
        """Remove the file, unless it holds a report that was never acknowledged."""
        if self._fd is not None:
            os.close(self._fd)
            if not self._unacknowledged:
                self.path.unlink(missing_ok=True)


def read_spool(path: Path, unreadable: Callable[[bytes], None]) -> list[EndedReport]:
    """Return the reports of a dead runner's file.

    Args:
        unreadable: Called with each line that is no report, such as one that was cut off when the disk was full. What
            follows the last line break is ignored: the runner was killed before it reported it.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    reports = []
    for line in lines[:-1]:
        try:
            reports.append(_decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            unreadable(line)
    return reports
