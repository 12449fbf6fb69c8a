"""What is decided on a failed attempt, and on what grounds."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import field, frozen

from torc_framework.models.exits import ExitObservation, ExitVerdict


@frozen
class Failure:
    """One failed attempt, as a matcher or policy sees it.

    Attributes:
        workflow_id: The workflow.
        job_id: The job.
        job_name: Its name.
        attempt_id: Number of the failed attempt, from 1.
        return_code: Rendering of the ending as one number.
        observation: What was seen.
        verdict: What it is called.
        stdout_path: File with the attempt's standard output.
        stderr_path: File with the attempt's standard error.
    """

    workflow_id: int
    job_id: int
    job_name: str
    attempt_id: int
    return_code: int
    observation: ExitObservation
    verdict: ExitVerdict
    stdout_path: str | None = None
    stderr_path: str | None = None


class RecoveryAction(StrEnum):
    """What to do about a failed job."""

    RETRY = "retry"
    FAIL = "fail"
    DEFER = "defer"


@frozen
class RecoveryDecision:
    """A policy's answer on one failed job.

    Attributes:
        action: Retry it, let it stay failed, or leave it to a person.
        reason: One sentence for people.
        memory_bytes: New memory request; None keeps the old.
        runtime_s: New run time request in seconds; None keeps the old.
        num_cpus: New CPU request; None keeps the old.
    """

    action: RecoveryAction
    reason: str
    memory_bytes: int | None = None
    runtime_s: int | None = None
    num_cpus: int | None = None


@frozen
class PendingVerdict:
    """A verdict on a job that waits in ``pending_failed``.

    Attributes:
        action: Retry or fail; defer leaves it waiting.
        reason: One sentence for people.
        confidence: 0 to 1.
        evidence: Lines or fields it rests on.
    """

    action: RecoveryAction
    reason: str
    confidence: float
    evidence: tuple[str, ...] = ()


FailureRule = Mapping[str, Any]
"""One rule of a failure handler: the keys of its owner plus ``recovery_script`` and ``max_retries``."""

RuleSchema = Mapping[str, Mapping[str, Any]]
"""JSON-schema fragments by rule key."""

DEFAULT_MAX_RETRIES = 3
"""``max_retries`` of a rule that names none (Torc, "FailureHandlerRuleSpec"): attempts in all."""


@frozen
class FailedJob:
    """One failed job, as a recovery policy sees it.

    Attributes:
        failure: The last failed attempt.
        memory_bytes: Present memory request.
        runtime_s: Present run time request, seconds.
        num_cpus: Present CPU request.
        history: Return codes of all earlier attempts, oldest first.
        settings: Options of the recover or watch command, by name.
    """

    failure: Failure
    memory_bytes: int
    runtime_s: int
    num_cpus: int
    history: tuple[int, ...] = ()
    settings: Mapping[str, Any] = field(factory=dict)
