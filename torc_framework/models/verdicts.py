"""Verdicts on jobs that wait in ``pending_failed``: the order to the server, its reply, and the stored records.

A verdict gives the job another attempt, perhaps with other requests, or lets it fail. The server carries out all
verdicts of one order with all their consequences in one transaction, or none of them.
"""

from enum import StrEnum
from typing import Literal

from attrs import Factory, define


class JudgeKind(StrEnum):
    """Kinds of judges."""

    PERSON = "person"
    """A person, at the command line or with another client."""
    PLUGIN = "plugin"
    """A plugin, by its own rules alone."""
    AGENT = "agent"
    """An AI agent, through the tools of ``torc-mcp-server`` or by its reply to a plugin."""


@define
class Verdict:
    """A verdict on one job.

    Attributes:
        reason: One sentence for people.
        attempt_id: The failed attempt; the server refuses the verdict if the job has had another attempt since. None
            is the present attempt.
        confidence: 0 to 1; None if the judge gives none.
        evidence: Grounds of the verdict: lines of logs, fields of results.
        memory: With retry: new memory request of this job alone, such as ``16g``; other jobs with the same
            requirements keep theirs.
        runtime: New run time request, likewise, ISO 8601 duration.
        num_cpus: New request of CPU cores, likewise.
        num_gpus: New request of GPUs, likewise.
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
    """Order to the server to carry out verdicts, all of them or none.

    Attributes:
        judge: Name of the person, plugin or agent that judged.
        run_id: The run of the failures; the server refuses the order if another run is present. None is the present
            run.
        dry_run: Report the consequences and change nothing.
    """

    verdicts: list[Verdict]
    judge: str
    judge_kind: JudgeKind = JudgeKind.PERSON
    run_id: int | None = None
    dry_run: bool = False


@define
class VerdictRecord:
    """Stored record of one verdict.

    Attributes:
        id: Later verdicts have larger ids; None in a dry run.
        run_id: Run of the failed attempt.
        user: User who was logged in to the server; None without a login.
        judged_at: Time of the verdict, UTC, ISO 8601 with milliseconds.
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
    """The server's reply to a `VerdictOrder`: what it did, or would do.

    Attributes:
        canceled_job_ids: Jobs that are canceled because a dependency has now failed.
        ready_job_ids: Jobs that are ready now.
    """

    dry_run: bool
    verdicts: list[VerdictRecord]
    ready_job_ids: list[int]
    canceled_job_ids: list[int]
