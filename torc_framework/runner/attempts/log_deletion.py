"""Deletes the logs of completed attempts whose jobs say so."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from torc_framework.executors import AttemptKey
from torc_framework.models.exchange import EndedReport
from torc_framework.models.statuses import JobStatus
from torc_framework.models.stdio import Stdio
from torc_framework.runner.attempts.held_jobs import AttemptFactory
from torc_framework.runner.process.runner_log import RunnerLog


class LogDeletion:
    """Deletes logs of attempts whose ends the server has stored.

    A runner that is killed between the server's answer and the deletion leaves the files.

    Args:
        attempts: Knows the paths of the logs.
        log: The runner's log.
    """

    def __init__(self, attempts: AttemptFactory, log: RunnerLog) -> None:
        self._attempts, self._log = attempts, log

    @staticmethod
    def wants(report: EndedReport) -> bool:
        """Return whether the logs of a reported attempt are deleted: it completed, and its job says so."""
        seen = report.observation
        return report.status == JobStatus.COMPLETED.label and bool(seen and seen.get("delete_stdio_on_success"))

    def delete(self, report: EndedReport, further: Sequence[str] = ()) -> None:
        """Delete the logs of an attempt; a file that cannot be deleted is logged, and stays.

        Args:
            report: Its end, of which `wants` is true.
            further: Logs that its launcher has written besides those for its two streams.
        """
        mode = (report.observation or {}).get("stdio", Stdio().mode)
        paths = self._attempts.log_paths(AttemptKey(report.job_id, report.attempt_id), Stdio(mode))
        for path in _distinct(chain(paths, further)):
            try:
                with suppress(FileNotFoundError):
                    Path(path).unlink()
            except OSError as error:
                self._log.warning("log_not_deleted", job_id=report.job_id, path=path, reason=str(error))


def _distinct(paths: Iterable[str | None]) -> Iterable[str]:
    return dict.fromkeys(path for path in paths if path is not None)
