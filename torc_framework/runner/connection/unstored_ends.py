"""The ends of attempts that the server has not stored yet, and what is dropped when it has."""

from collections.abc import Iterable

from torc_framework.executors import AttemptKey
from torc_framework.models.exchange import EndedReport
from torc_framework.runner.attempts.held_jobs import HeldJob
from torc_framework.runner.attempts.launchers import Launchers
from torc_framework.runner.attempts.log_deletion import LogDeletion
from torc_framework.runner.connection.report_spool import ReportSpool
from torc_framework.runner.connection.takeover import Takeover
from torc_framework.runner.process.runner_log import RunnerLog


class UnstoredEnds:
    """Ends that were reported and not acknowledged.

    A launcher whose attempts survive the runner keeps their ends itself, until `Launcher.ends_stored`; the spool file
    keeps those of the others.

    Args:
        spool: The spool file.
        launchers: Told of the ends that the server has stored.
        takeover: Told likewise.
        logs: Deletes the logs of attempts whose ends the server has stored.
        log: The runner's log.
    """

    def __init__(
        self, spool: ReportSpool, launchers: Launchers, takeover: Takeover, logs: LogDeletion, log: RunnerLog
    ) -> None:
        self._spool, self._launchers, self._takeover, self._logs, self._log = spool, launchers, takeover, logs, log
        self._executors: dict[AttemptKey, str] = {}

    def add(self, item: HeldJob, report: EndedReport) -> None:
        """Keep an end until the server has stored it."""
        self._executors[item.key] = item.executor
        if not self._launchers.survives(item.executor):
            self._spool.keep(report, self._log)

    def stored(self, reports: Iterable[EndedReport]) -> None:
        """Drop what is kept of these ends, which the server has stored, and the logs whose jobs say so."""
        reports = list(reports)
        for report in filter(self._logs.wants, reports):
            key = AttemptKey(report.job_id, report.attempt_id)
            executor = self._executors.get(key)
            self._logs.delete(report, () if executor is None else self._launchers.further_logs(executor, key))
        self.drop(reports)

    def drop(self, reports: Iterable[EndedReport]) -> None:
        """Drop what is kept of these ends: the server has stored them, or does not want them."""
        reports = list(reports)
        if not reports:
            return
        by_executor: dict[str, list[AttemptKey]] = {}
        keys = [AttemptKey(report.job_id, report.attempt_id) for report in reports]
        for key in keys:
            if (executor := self._executors.pop(key, None)) is not None:
                by_executor.setdefault(executor, []).append(key)
        for executor, its_own in by_executor.items():
            self._launchers.ends_stored(executor, its_own)
        self._spool.acknowledge(reports)
        self._takeover.reported(keys)

    def refuse(self, item: HeldJob) -> None:
        """Drop what is kept of the end of an attempt that the server has given up."""
        self._launchers.ends_stored(item.executor, [item.key])

    def close(self) -> None:
        """Remove the spool file, unless it holds an end that was never acknowledged."""
        self._spool.close()
