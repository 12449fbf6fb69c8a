"""Verdicts on jobs that wait in ``pending_failed``: what is asked of the server, and what it keeps of each.

A verdict says that the job gets another attempt, perhaps with other requests, or that it has failed.
All verdicts of one order are carried out in one transaction with everything that follows, or none is.
"""

from enum import StrEnum
from typing import Literal

from attrs import Factory, define


class JudgeKind(StrEnum):
    """Who may give verdicts."""

    PERSON = "person"
    """Somebody at the command line or another client."""
    PLUGIN = "plugin"
    """A plugin by its own rules, without asking anybody."""
    AGENT = "agent"
    """An assistant, through the tools of ``torc-mcp-server`` or by its answer."""


@define
class Verdict:
    """A verdict on one job.

    Attributes:
        reason: One sentence for people.
        attempt_id: The failed attempt it is about; refused if the job has gone on since. None takes the present one.
        confidence: 0 to 1; None if the judge gives none.
        evidence: What it rests on: lines of logs, fields of results.
        memory: With retry: new request, such as ``16g``. This job's only; others of the same requirements keep theirs.
        runtime: The same, ISO 8601 duration.
        num_cpus: The same, cores.
        num_gpus: The same.
    """

    job_id: int
    action: Literal["retry", "fail"]
    reason: str
    attempt_id: int | None = None
    confidence: float | None = None
    evidence: list[str] = Factory(list)
    memory: str | None = None
    runtime: str | None = None
    num_cpus: int | None = None
    num_gpus: int | None = None


REQUESTS = ("memory", "runtime", "num_cpus", "num_gpus")
"""Fields of a verdict, and of resource requirements, that a retry may change."""


@define
class VerdictOrder:
    """Verdicts that are carried out together, or not at all.

    Attributes:
        judge: Name of who judged: a person's, a plugin's, an agent's.
        run_id: The run that was looked at; another run's order is refused. None takes the present one.
        dry_run: Only find out what would follow.
    """

    verdicts: list[Verdict]
    judge: str
    judge_kind: JudgeKind = JudgeKind.PERSON
    run_id: int | None = None
    dry_run: bool = False


@define
class VerdictRecord:
    """One verdict as it is kept.

    Attributes:
        id: Grows with time; None in a dry run.
        run_id: Run of the failed attempt.
        user: Who was logged in to the server; None if nobody was.
        judged_at: When, UTC, ISO 8601 with milliseconds.
    """

    id: int | None
    workflow_id: int
    job_id: int
    job_name: str
    run_id: int
    attempt_id: int
    action: str
    reason: str
    confidence: float | None
    evidence: list[str]
    judge: str
    judge_kind: str
    user: str | None
    memory: str | None
    runtime: str | None
    num_cpus: int | None
    num_gpus: int | None
    judged_at: str


@define
class VerdictReceipt:
    """What an order did, or would do.

    Attributes:
        canceled_job_ids: Jobs that are canceled because a job that they wait for has failed now.
        ready_job_ids: Jobs that may run now.
    """

    dry_run: bool
    verdicts: list[VerdictRecord]
    ready_job_ids: list[int]
    canceled_job_ids: list[int]
