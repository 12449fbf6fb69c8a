"""A failed attempt, and the rules that may answer it."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

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


FailureRule = Mapping[str, Any]
"""One rule of a failure handler: the keys of its owner plus ``recovery_script`` and ``max_retries``."""

RuleSchema = Mapping[str, Mapping[str, Any]]
"""JSON-schema fragments by rule key."""

DEFAULT_MAX_RETRIES = 3
"""``max_retries`` of a rule that names none (Torc, "FailureHandlerRuleSpec"): attempts in all."""
