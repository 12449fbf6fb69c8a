"""The failures of a run in short: some jobs with their last lines, at least one of each cause, and counts.

The numbers of requests and of logs that are read do not depend on the number of failed jobs.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError
from torc_framework.forensics.line_ranking import normalized_line
from torc_framework.forensics.log_excerpts import LogExcerptReader
from torc_framework.forensics.log_tails import LogTail, read_stderr_tail
from torc_framework.models.exits import ExitClass
from torc_framework.models.records import ComputeNodeRecord, JobRecord, ResultRecord
from torc_framework.models.result_observations import stdio_of_result
from torc_framework.models.runner_location import machine_of
from torc_framework.models.statuses import FAILURES, JobStatus
from torc_framework.text.quantities import duration_text

SHOWN_JOBS: Final = 5
"""Most failed jobs that are shown with their last lines."""
_LOOKED_AT: Final = 20
"""Failed jobs of each status whose results and logs are read."""
_CLAUSES: Final[Mapping[str, str]] = {
    ExitClass.USER_ERROR: "failed with {reason}{took}",
    ExitClass.SIGNALED: "was {reason}{took}",
    ExitClass.OOM: "ran out of memory{took}: {reason}",
    ExitClass.TIMEOUT: "ran out of time{took}: {reason}",
    ExitClass.LAUNCH_FAILURE: "{reason}",
}
"""What a job did, by the class of its ending."""


def ending_clause(exit_class: str | None, reason: str | None, duration_s: float | None = None) -> str:
    """Return how an attempt failed, as a clause such as ``failed with exit code 3 after 0.2 s``."""
    took = "" if duration_s is None else f" after {duration_text(duration_s)}"
    if not reason:
        return f"failed{took}"
    return _CLAUSES.get(exit_class or "", "failed{took}: {reason}").format(reason=reason, took=took)


@frozen
class FailureExample:
    """One job that failed, with the end of its standard error.

    Attributes:
        status: Status of the job: failed, terminated or pending_failed.
        duration_s: Run time of the attempt in seconds; None if it has no result.
        tail: The last lines of its standard error; None if it has no result.
    """

    job_id: int
    name: str
    status: str
    attempt_id: int
    exit_class: str | None = None
    reason: str | None = None
    return_code: int | None = None
    duration_s: float | None = None
    tail: LogTail | None = None

    @property
    def clause(self) -> str:
        """How it failed, as `ending_clause` says it."""
        return ending_clause(self.exit_class, self.reason, self.duration_s)

    @property
    def cause(self) -> tuple[Any, ...]:
        """What failures of one cause have in common: class, return code, and last line without names and numbers."""
        line = self.tail.last if self.tail else None
        return self.exit_class, self.return_code, normalized_line(line or self.reason or "", self.name)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "job_id": self.job_id,
            "job_name": self.name,
            "status": self.status,
            "attempt_id": self.attempt_id,
            "exit_class": self.exit_class,
            "reason": self.reason,
            "return_code": self.return_code,
            "exec_time_s": self.duration_s,
            "stderr_path": str(self.tail.path) if self.tail and self.tail.path else None,
            "stderr_lines": list(self.tail.lines) if self.tail else [],
            "stderr_trouble": self.tail.trouble if self.tail else None,
        }


@frozen
class FailureCause:
    """Failures with one cause: the first of them in full, and the other jobs that were looked at."""

    example: FailureExample
    others: tuple[FailureExample, ...] = ()


@frozen
class FailureSummary:
    """The failures of a workflow in short.

    Attributes:
        causes: At most `SHOWN_JOBS` causes.
        uncounted: Number of failed jobs that stand in none of them.
        canceled_names: Names of the first canceled jobs.
        canceled: Number of all canceled jobs.
    """

    causes: tuple[FailureCause, ...] = ()
    uncounted: int = 0
    canceled_names: tuple[str, ...] = ()
    canceled: int = 0


def group_by_cause(examples: Iterable[FailureExample]) -> list[FailureCause]:
    """Return failures in groups of one cause each, in the order of their first jobs."""
    groups: dict[tuple[Any, ...], list[FailureExample]] = {}
    for each in examples:
        groups.setdefault(each.cause, []).append(each)
    return [FailureCause(first, tuple(others)) for first, *others in groups.values()]


def summarize_failures(
    client: TorcClient, workflow_id: int, counts: Mapping[str, int], *, interrupted: int = 0
) -> FailureSummary:
    """Return the failures of a workflow in short.

    Args:
        client: The server.
        workflow_id: The workflow.
        counts: Numbers of its jobs by status label.
        interrupted: How many of the terminated jobs were interrupted; these have not failed.
    """
    examples: list[FailureExample] = []
    total = 0
    reader = FailureReader(client, workflow_id)
    for status in FAILURES:
        number = counts.get(status.label, 0) - (interrupted if status is JobStatus.TERMINATED else 0)
        if number > 0:
            total += number
            examples += reader.read(status.label)
    causes = group_by_cause(examples)[:SHOWN_JOBS]
    shown = sum(1 + len(cause.others) for cause in causes)
    canceled = counts.get(JobStatus.CANCELED.label, 0)
    jobs: Sequence[JobRecord] = ()
    if canceled:
        jobs = client.find(JobRecord, workflow_id=workflow_id, status=JobStatus.CANCELED.label, limit=SHOWN_JOBS)
    return FailureSummary(tuple(causes), max(0, total - shown), tuple(job.name for job in jobs), canceled)


class FailureReader:
    """Reads failed jobs with their results and the ends of their logs."""

    def __init__(self, client: TorcClient, workflow_id: int) -> None:
        self._client, self._workflow_id = client, workflow_id
        self._node = cache(self._read_node)

    def read(self, status: str) -> list[FailureExample]:
        """Return the first failed jobs of a status, without those that were interrupted."""
        client, id_ = self._client, self._workflow_id
        jobs = client.find(JobRecord, workflow_id=id_, status=status, limit=2 * _LOOKED_AT)
        jobs = [job for job in jobs if not job.is_interrupted][:_LOOKED_AT]
        first = client.find(ResultRecord, workflow_id=id_, status=status, limit=10 * _LOOKED_AT)
        results = {result.job_id: result for result in first}
        return [self._example(job, results.get(job.id or 0) or self._result(job)) for job in jobs]

    def _result(self, job: JobRecord) -> ResultRecord | None:
        found = self._client.find(ResultRecord, workflow_id=self._workflow_id, job_id=job.id, limit=1)
        return found[0] if found else None

    def _example(self, job: JobRecord, result: ResultRecord | None) -> FailureExample:
        known = job.id or 0, job.name, job.status or ""
        if result is None:
            return FailureExample(*known, job.attempt_id, reason="it has no result")
        return FailureExample(
            *known,
            result.attempt_id,
            result.exit_class,
            result.reason,
            result.return_code,
            result.exec_time_minutes * 60,
            self.tail(result),
        )

    def tail(self, result: ResultRecord) -> LogTail:
        """Return the last lines of the standard error of an attempt."""
        node = self._node(result.compute_node_id)
        nodes = {} if node is None else {result.compute_node_id: node}
        path = LogExcerptReader([], nodes).logs(result).stderr
        hostname = None if node is None else machine_of(node)
        return read_stderr_tail(
            path and short_path(path), stdio_of_result(result), hostname=hostname, exit_class=result.exit_class
        )

    def _read_node(self, node_id: int) -> ComputeNodeRecord | None:
        try:
            return self._client.get(ComputeNodeRecord, node_id)
        except ApiError:
            return None  # it was deleted


def short_path(path: Path) -> Path:
    """Return a path relative to the current folder, if it lies within it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_absolute() and path.is_relative_to(here) else path
