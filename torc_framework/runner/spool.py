"""Keeps ends on disk until the server has them, for launchers that do not keep them themselves."""

import os
from pathlib import Path

import msgspec

from torc_framework.models.exchange import EndedReport
from torc_framework.private_files import open_private

_decoder = msgspec.json.Decoder(EndedReport)


class Spool:
    """One runner's file of unacknowledged reports, a JSON object a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._unacknowledged: set[tuple[int, int]] = set()

    def add(self, report: EndedReport) -> None:
        """Put a report on disk."""
        if self._fd is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = open_private(self.path, os.O_WRONLY | os.O_APPEND)
        os.write(self._fd, msgspec.json.encode(report) + b"\n")
        self._unacknowledged.add((report.job_id, report.attempt_id))

    def acknowledge(self, reports: list[EndedReport]) -> None:
        """Forget what the server has; the file is emptied when it has all."""
        if self._fd is not None and self._unacknowledged:
            self._unacknowledged.difference_update((report.job_id, report.attempt_id) for report in reports)
            if not self._unacknowledged:
                os.ftruncate(self._fd, 0)

    def close(self) -> None:
        """Remove the file, unless something in it was never acknowledged."""
        if self._fd is not None:
            os.close(self._fd)
            if not self._unacknowledged:
                self.path.unlink(missing_ok=True)


def read_spool(path: Path) -> list[EndedReport]:
    """Return the reports of a dead runner's file; a half-written last line is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    return [_decoder.decode(line) for line in lines[:-1] if line]
