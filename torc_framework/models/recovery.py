"""What is decided on a failed job, on what grounds, and what became of it.

A policy sees a `FailedJob` and answers with a `RecoveryDecision`. What is done about a workflow is one
`RecoveryOrder`, carried out in one transaction, and stays on record as one `RecoveryEntry` for each job.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import Factory, define, field, frozen

from torc_framework.models.failures import Failure
from torc_framework.models.resources import format_duration, format_memory


class RecoveryAction(StrEnum):
    """What to do about a failed job."""

    RETRY = "retry"
    """Run it again, with adjusted requests or as it is."""
    FAIL = "fail"
    """Let it stay failed: another run would end the same way."""
    CANNOT_GROW = "cannot_grow"
    """It lacks something of which it has all that it can get already; it stays failed."""
    DEFER = "defer"
    """Leave it to a person."""


@frozen
class Ceiling:
    """The most that a job may ask for where it will run.

    Attributes:
        memory_bytes: Memory of a node; None if that is not known.
        runtime_s: Longest run time, seconds; None if nothing limits it.
        origin: Who says so, for people: ``this machine``, ``partition short of kestrel``.
        num_cpus: CPU cores of a node; None if that is not known.
    """

    memory_bytes: int | None = None
    runtime_s: int | None = None
    origin: str = "this machine"
    num_cpus: int | None = None

    def objection(
        self, *, memory_bytes: int | None = None, runtime_s: int | None = None, num_cpus: int | None = None
    ) -> str | None:
        """Return what of a request is more than there is, as a clause; None if it fits."""
        amounts = (
            ("memory", memory_bytes, self.memory_bytes, format_memory),
            ("run time", runtime_s, self.runtime_s, format_duration),
            ("CPU cores", num_cpus, self.num_cpus, str),
        )
        found = [
            f"{what} {shown(wanted)}, where {self.origin} gives {shown(most)}"
            for what, wanted, most, shown in amounts
            if wanted is not None and most is not None and wanted > most
        ]
        return "; ".join(found) or None


@frozen
class FailedJob:
    """One failed job, as a recovery policy sees it.

    Attributes:
        failure: The last failed attempt.
        memory_bytes: Present memory request.
        runtime_s: Present run time request, seconds.
        num_cpus: Present CPU request.
        has_own_request: The job asked for these amounts; False if it has the workflow's default ones.
        ceiling: The most that it may ask for.
        recoveries: How often it was recovered before, in all runs.
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
    """A policy's answer on one failed job.

    Attributes:
        action: What to do.
        reason: One sentence for people.
        memory_bytes: New memory request; None keeps the old.
        runtime_s: New run time request in seconds; None keeps the old.
        num_cpus: New CPU request; None keeps the old.
        causes: What the job lacked or suffered, in one word each, such as ``oom`` and ``timeout``.
        confidence: 0 to 1; 1 is proof.
        evidence: What it rests on: names of fields with their values, lines of logs.
        decided_by: The plugin that answered; set by the plugin manager.
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
    """Where jobs wait for a verdict, and how they are to be judged.

    Attributes:
        output_dir: Folder of the jobs' logs.
        settings: Options of the command, by name: ``ai_agent`` (agent to ask, None for none), ``dry_run``,
            ``min_confidence`` and those of the section ``[client.ai]``.
        environment: Variables by which another process reaches the server as the same user; secret.
    """

    workflow_id: int
    output_dir: str = "output"
    settings: Mapping[str, Any] = field(factory=dict)
    environment: Mapping[str, str] = field(factory=dict, repr=False)


@frozen
class PendingVerdict:
    """A verdict on a job that waits in ``pending_failed``.

    Attributes:
        action: Retry or fail; any other leaves it waiting.
        reason: One sentence for people.
        confidence: 0 to 1; a verdict below the command's threshold is left to a person.
        evidence: Lines or fields it rests on.
        memory_bytes: With retry: new memory request; None keeps the old.
        runtime_s: With retry: new run time request in seconds; None keeps the old.
        num_cpus: With retry: new CPU request; None keeps the old.
        judge: Who judged; by default the plugin.
        judge_kind: ``plugin``, or ``agent`` if the plugin asked one.
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


# --- what the server is asked, and what it remembers ------------------------------------------------


@define
class Repair:
    """One job that is to run again.

    Attributes:
        attempt_id: The failed attempt; the order is refused if the job has gone on since.
        memory_bytes: New request; None keeps the old. A request never becomes smaller.
        runtime_s: The same, in seconds.
        num_cpus: The same.
        causes: See `RecoveryDecision`; so are the rest.
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
    """A whole recovery: all of it is done, or nothing.

    Attributes:
        run_id: The run whose failures were looked at; another run's order is refused.
        dry_run: Only find out what would be done; without repairs, whether a recovery is possible at all.
    """

    run_id: int
    repairs: list[Repair]
    dry_run: bool = False


@define
class RecoveryEntry:
    """What was done about one job.

    Attributes:
        id: Grows with time.
        recovered_at: When, UTC, ISO 8601 with milliseconds.
        run_id: Run of the failed attempt.
        attempt_id: The failed attempt.
        new_run_id: Run in which it runs again.
        old_memory: Request before, such as ``8g``; the others in the same way.
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
    """What a recovery did.

    Attributes:
        run_id: The run that it began.
        reset_count: Jobs made to run again: the repaired ones and what hangs on them.
    """

    run_id: int
    reset_count: int
    entries: list[RecoveryEntry]
