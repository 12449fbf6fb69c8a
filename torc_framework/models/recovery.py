"""Recovery of failed jobs: input and decision of recovery policies, order to the server, and stored entries.

A recovery policy receives a `FailedJob` and returns a `RecoveryDecision`. The client sends the decisions on a workflow
as one `RecoveryOrder`. The server carries it out in one transaction and stores one `RecoveryEntry` for each job.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import Factory, define, field, frozen

from torc_framework.models.failures import Failure
from torc_framework.text.quantities import compared_sizes, exact_duration_text


class RecoveryAction(StrEnum):
    """What to do about a failed job."""

    RETRY = "retry"
    """Run it again, with adjusted requests or as it is."""
    FAIL = "fail"
    """Leave it failed: another attempt would end the same way."""
    CANNOT_GROW = "cannot_grow"
    """Leave it failed: it lacks a resource of which it already requests the largest possible amount."""
    DEFER = "defer"
    """Leave the decision to a person."""


@frozen
class Ceiling:
    """The largest requests that a job may have where it will run.

    Attributes:
        memory_bytes: Memory of a node; None if it is not known.
        runtime_s: Longest run time, seconds; None if it is not limited.
        origin: The machine or partition that sets the limits, for people: ``this machine``, ``partition short of
            kestrel``.
        num_cpus: CPU cores of a node; None if the number is not known.
    """

    memory_bytes: int | None = None
    runtime_s: int | None = None
    origin: str = "this machine"
    num_cpus: int | None = None

    def excess(
        self, *, memory_bytes: int | None = None, runtime_s: int | None = None, num_cpus: int | None = None
    ) -> str | None:
        """Return a clause on the amounts of a request that exceed these limits; None if it fits."""
        amounts = (
            ("memory", memory_bytes, self.memory_bytes, compared_sizes),
            ("run time", runtime_s, self.runtime_s, lambda *both: map(exact_duration_text, both)),
            ("CPU cores", num_cpus, self.num_cpus, lambda *both: map(str, both)),
        )
        found = []
        for what, wanted, most, shown in amounts:
            if wanted is not None and most is not None and wanted > most:
                wanted_text, most_text = shown(wanted, most)
                found.append(f"{what} {wanted_text}, where {self.origin} gives {most_text}")
        return "; ".join(found) or None


@frozen
class FailedJob:
    """One failed job, as recovery policies receive it.

    Attributes:
        failure: The last failed attempt.
        memory_bytes: Present memory request.
        runtime_s: Present run time request, seconds.
        num_cpus: Present CPU request.
        has_own_request: The spec gives these amounts for the job; False if they are the workflow's default ones.
        ceiling: The largest requests that it may have.
        recoveries: Number of its earlier recoveries, in all runs.
        history: Return codes of all earlier attempts, oldest first.
        settings: Options of the recover or watch command, by name.
    """

    failure: Failure
    memory_bytes: int
    runtime_s: int
    num_cpus: int
    has_own_request: bool = True
    ceiling: Ceiling = Ceiling()
    recoveries: int = 0
    history: tuple[int, ...] = ()
    settings: Mapping[str, Any] = field(factory=dict)


@frozen
class RecoveryDecision:
    """A recovery policy's decision on one failed job.

    Attributes:
        action: What to do.
        reason: One sentence for people.
        memory_bytes: New memory request; None keeps the old.
        runtime_s: New run time request in seconds; None keeps the old.
        num_cpus: New CPU request; None keeps the old.
        causes: Causes of the failure, in one word each, such as ``oom`` and ``timeout``.
        confidence: 0 to 1; 1 is proof.
        evidence: Grounds of the decision: names of fields with their values, lines of logs.
        decided_by: The plugin that decided; set by the plugin manager.
    """

    action: RecoveryAction
    reason: str
    memory_bytes: int | None = None
    runtime_s: int | None = None
    num_cpus: int | None = None
    causes: tuple[str, ...] = ()
    confidence: float = 1.0
    evidence: tuple[str, ...] = ()
    decided_by: str = ""


@frozen
class PendingContext:
    """Workflow whose jobs wait for a verdict, and settings for the judges.

    Attributes:
        output_dir: Folder of the jobs' logs.
        settings: Options of the command, by name: ``ai_agent`` (agent to ask, None for none), ``dry_run``,
            ``min_confidence`` and those of the section ``[client.ai]``.
        environment: Environment variables with which another process can use the server as the same user; secret.
    """

    workflow_id: int
    output_dir: str = "output"
    settings: Mapping[str, Any] = field(factory=dict)
    environment: Mapping[str, str] = field(factory=dict, repr=False)


@frozen
class PendingVerdict:
    """A verdict on a job that waits in ``pending_failed``.

    Attributes:
        action: Retry or fail; with any other action the job still waits.
        reason: One sentence for people.
        confidence: 0 to 1; a verdict below the command's threshold is not applied, and a person has to decide.
        evidence: Grounds of the verdict: lines of logs, fields of results.
        memory_bytes: With retry: new memory request; None keeps the old.
        runtime_s: With retry: new run time request in seconds; None keeps the old.
        num_cpus: With retry: new CPU request; None keeps the old.
        judge: Name of the judge; by default that of the plugin.
        judge_kind: ``plugin``, or ``agent`` if the plugin asked an agent.
    """

    action: RecoveryAction
    reason: str
    confidence: float
    evidence: tuple[str, ...] = ()
    memory_bytes: int | None = None
    runtime_s: int | None = None
    num_cpus: int | None = None
    judge: str = ""
    judge_kind: str = "plugin"


# --- request to the server and its records -----------------------------------------------------------


@define
class Repair:
    """One job that is to run again, within a `RecoveryOrder`.

    Attributes:
        attempt_id: The failed attempt; the server refuses the order if the job has had another attempt since.
        memory_bytes: New request; None keeps the old. The server never makes a request smaller.
        runtime_s: New request in seconds, likewise.
        num_cpus: New request, likewise.
        causes: As in `RecoveryDecision`, like the fields after it.
    """

    job_id: int
    attempt_id: int
    reason: str
    decided_by: str = ""
    memory_bytes: int | None = None
    runtime_s: int | None = None
    num_cpus: int | None = None
    causes: list[str] = Factory(list)
    confidence: float = 1.0
    evidence: list[str] = Factory(list)


@define
class RecoveryOrder:
    """Order to the server to recover jobs of one workflow; the server carries out all of it or nothing.

    Attributes:
        run_id: The run of the failures; the server refuses the order if another run is present.
        dry_run: Report what the order would do and change nothing; without repairs, report whether a recovery is
            possible at all.
    """

    run_id: int
    repairs: list[Repair]
    dry_run: bool = False


@define
class RecoveryEntry:
    """Stored record of the recovery of one job.

    Attributes:
        id: Later entries have larger ids.
        recovered_at: Time of the recovery, UTC, ISO 8601 with milliseconds.
        run_id: Run of the failed attempt.
        attempt_id: The failed attempt.
        new_run_id: Run in which the job runs again.
        old_memory: Request before the recovery, such as ``8g``; likewise the other ``old_`` fields.
    """

    id: int
    workflow_id: int
    job_id: int
    job_name: str
    recovered_at: str
    run_id: int
    attempt_id: int
    new_run_id: int
    decided_by: str
    reason: str
    causes: list[str]
    confidence: float
    evidence: list[str]
    old_requirements_id: int
    new_requirements_id: int
    old_memory: str
    new_memory: str
    old_runtime: str
    new_runtime: str
    old_num_cpus: int
    new_num_cpus: int


@define
class RecoveryReceipt:
    """The server's reply to a `RecoveryOrder`.

    Attributes:
        run_id: The run that the recovery began.
        reset_count: Number of jobs that run again: the repaired ones and their dependents.
    """

    run_id: int
    reset_count: int
    entries: list[RecoveryEntry]
