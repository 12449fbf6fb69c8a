"""The report on one failed job: verdict, evidence, attempts, next step."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from attrs import asdict, frozen

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError
from torc_framework.forensics.failure_causes import FAILED, failed_upstream_jobs
from torc_framework.forensics.line_ranking import RankedLine, lines_to_show
from torc_framework.forensics.log_excerpts import Excerpt, LogExcerptReader
from torc_framework.forensics.log_tails import NEVER_BEGAN, NO_OUTPUT
from torc_framework.forensics.past_attempts import COMPLETED, PastAttempt, is_lost_work, past_attempts
from torc_framework.forensics.verdicts import evidence_of, verdict_of
from torc_framework.models.exits import ExitClass, ExitVerdict
from torc_framework.models.records import ComputeNodeRecord, JobRecord, ResourceRequirementsRecord, ResultRecord
from torc_framework.models.result_observations import observation_of
from torc_framework.models.statuses import UNSUCCESSFUL, JobStatus
from torc_framework.models.verdicts import VerdictRecord
from torc_framework.next_step import NextStep, next_step
from torc_framework.plugins.manager import PluginManager

_T = TypeVar("_T")
NOT_FOUND = (404, 405, 501)
"""HTTP statuses of a server that lacks an endpoint."""
_FEW_CAUSES = 20
"""Most jobs that are requested one by one instead of in a list of all that failed."""
TROUBLED = frozenset(status.label for status in UNSUCCESSFUL)
"""Statuses of jobs that did not succeed."""


@frozen
class LocatedLine:
    """A line and the log that holds it."""

    path: Path
    line: RankedLine

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        line = self.line
        return {
            "path": str(self.path),
            "line": line.number,
            "text": line.text,
            "pattern": line.pattern,
            "hint": line.hint or None,
        }


@frozen
class JobReport:
    """The report on one job.

    Attributes:
        verdict: The verdict on its last failed attempt; None if no attempt failed.
        failed: The result of that attempt.
        decisive_line: The line of the highest rank; None if no log could be read or has a line.
        log_lines: The lines that are shown.
        unreadable: Logs that could not be read, and why.
        causes: Failed jobs because of which it was canceled.
        verdicts: Verdicts that people, plugins and assistants gave on its attempts, oldest first.
    """

    job: JobRecord
    attempts: tuple[PastAttempt, ...] = ()
    verdict: ExitVerdict | None = None
    failed: ResultRecord | None = None
    evidence: tuple[dict[str, Any], ...] = ()
    decisive_line: LocatedLine | None = None
    log_lines: tuple[LocatedLine, ...] = ()
    unreadable: tuple[tuple[Path, str], ...] = ()
    causes: tuple[JobRecord, ...] = ()
    next: NextStep | None = None
    verdicts: tuple[VerdictRecord, ...] = ()

    @property
    def is_failed(self) -> bool:
        """Whether the job's present status is one of `TROUBLED`."""
        return self.job.status in TROUBLED

    @property
    def lost_cpu_hours(self) -> float:
        """CPU-hours of attempts whose work was lost."""
        return sum(each.cpu_hours for each in self.attempts if is_lost_work(each.result))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        verdict, failed = self.verdict, self.failed
        return {
            "kind": "job",
            "workflow_id": self.job.workflow_id,
            "job_id": self.job.id,
            "job_name": self.job.name,
            "command": self.job.command,
            "status": self.job.status,
            "is_failed": self.is_failed,
            "run_id": failed and failed.run_id,
            "attempt_id": failed and failed.attempt_id,
            "verdict": verdict and verdict.exit_class.value,
            "reason": verdict and verdict.reason,
            "confidence": verdict and verdict.confidence,
            "return_code": failed and failed.return_code,
            "exit_code": failed and failed.exit_code,
            "signal": failed and failed.signal,
            "telling_line": self.decisive_line and self.decisive_line.as_dict(),
            "evidence": [
                *self.evidence,
                *({"kind": "log", **line.as_dict()} for line in self.log_lines),
            ],
            "unreadable_logs": [{"path": str(path), "reason": reason} for path, reason in self.unreadable],
            "caused_by": [{"job_id": job.id, "job_name": job.name, "status": job.status} for job in self.causes],
            "tried": [each.as_dict() for each in self.attempts],
            "judged": [asdict(each) for each in self.verdicts],
            "lost_cpu_hours": self.lost_cpu_hours,
            "next": self.next and self.next.as_dict(),
            "next_command": self.next and self.next.command,
        }


def explain_job(
    client: TorcClient, plugins: PluginManager, job_id: int, *, output_dir: Path | None = None
) -> JobReport:
    """Return the report on a job.

    Args:
        client: The server.
        plugins: Classifiers, which give the confidence of a verdict, and log patterns.
        job_id: The job.
        output_dir: Folder of its logs; by default the one that its runner wrote to.
    """
    job = client.get(JobRecord, job_id)
    workflow_id = job.workflow_id
    results = client.find(ResultRecord, workflow_id=workflow_id, job_id=job_id, all_runs=True)
    wanted = None
    if job.resource_requirements_id is not None:
        wanted = client.get(ResourceRequirementsRecord, job.resource_requirements_id)
    recoveries = [entry for entry in _if_supported(lambda: client.recoveries(workflow_id)) if entry.job_id == job_id]
    attempts = tuple(past_attempts(results, wanted, recoveries))
    failed = next((each.result for each in reversed(attempts) if each.result.status != COMPLETED), None)
    if job.status == JobStatus.CANCELED.label and (causes := _causes(client, job)):
        names = ", ".join(f"{root.name} ({root.status})" for root in causes[:3]) + (", ..." if len(causes) > 3 else "")
        verdict = ExitVerdict(ExitClass.UPSTREAM_FAILED, f"not run, because of {names}", 1.0)
        return JobReport(job, attempts, verdict, causes=tuple(causes), next=_advice(client, plugins, job))
    if failed is None:
        if job.status == JobStatus.CANCELED.label:
            verdict = ExitVerdict(ExitClass.CANCELED, "a person canceled it before it ran", 1.0)
            return JobReport(job, attempts, verdict, next=_advice(client, plugins, job))
        return JobReport(job, attempts)
    observation = observation_of(failed)
    verdict = verdict_of(failed, plugins, observation)
    nodes = {node.id or 0: node for node in client.find(ComputeNodeRecord, workflow_id=workflow_id)}
    reader = LogExcerptReader(plugins.log_patterns(), nodes, output_dir)
    excerpts = [reader.read_log(path) for path in reader.paths(failed)]
    evidence = evidence_of(observation, verdict)
    if failed.exit_class in NEVER_BEGAN and not any(each.path.exists() for each in excerpts):
        excerpts = []
        evidence.append({"kind": "observed", "field": "output", "value": None, "text": NO_OUTPUT})
    return JobReport(
        job,
        attempts,
        verdict,
        failed,
        tuple(evidence),
        _decisive_line(excerpts),
        tuple(_lines(excerpts)),
        tuple((each.path, each.trouble) for each in excerpts if each.trouble is not None),
        next=_advice(client, plugins, job),
        verdicts=tuple(_if_supported(lambda: client.verdicts(workflow_id, job_id=job_id))),
    )


def _advice(client: TorcClient, plugins: PluginManager, job: JobRecord) -> NextStep | None:
    """Return the next step of a job's workflow once its cause has been shown; None if the job needs none."""
    if not job.is_interrupted and job.status not in TROUBLED:
        return None
    return next_step(client, job.workflow_id, plugins.executors, causes_shown=True)


def _lines(excerpts: Iterable[Excerpt]) -> Iterable[LocatedLine]:
    for excerpt in excerpts:
        yield from (LocatedLine(excerpt.path, line) for line in lines_to_show(excerpt.lines))


def _decisive_line(excerpts: Sequence[Excerpt]) -> LocatedLine | None:
    """Return the line of the highest rank; of equal lines that of standard error, which comes first."""
    found = [LocatedLine(excerpt.path, excerpt.best) for excerpt in excerpts if excerpt.best is not None]
    return max(found, key=lambda each: each.line.rank, default=None)


def _causes(client: TorcClient, job: JobRecord) -> list[JobRecord]:
    """Return the failed jobs because of which a job was canceled."""
    id_ = job.workflow_id
    canceled, members = client.waiting_jobs(id_, only_canceled=True), client.group_members(id_)
    wanted = set(failed_upstream_jobs(job.id or 0, canceled, members))
    if len(wanted) <= _FEW_CAUSES:
        return [client.get(JobRecord, job_id) for job_id in sorted(wanted)]
    failed = (each for status in sorted(FAILED) for each in client.iterate(JobRecord, workflow_id=id_, status=status))
    return sorted((each for each in failed if each.id in wanted), key=lambda each: each.id or 0)


def _if_supported(ask: Callable[[], Iterable[_T]]) -> list[_T]:
    """Return the records of a request; an empty list if the server lacks the endpoint."""
    try:
        return list(ask())
    except ApiError as error:
        if error.status in NOT_FOUND:
            return []
        raise
