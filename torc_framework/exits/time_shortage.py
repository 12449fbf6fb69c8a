"""Diagnosis of failed attempts that probably ran out of run time.

Sources: Torc documentation, "Automatic Recovery" and "Check Resource Utilization". The recovery policy, the report on
resource use and the cases of ``torc classify`` use this one function with those facts that they have.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from torc_framework.models.exits import TIMEOUT_RETURN_CODE, ExitClass, StopReason

if TYPE_CHECKING:
    from fractions import Fraction

NEAR_PERCENT: Final = 90
"""An attempt that failed after more than this part of its run time limit ran out of time, whatever its code."""


class TimeEvidence(StrEnum):
    """Evidence that an attempt ran out of run time, strongest first."""

    STOPPED = "stopped_at_runtime_limit"
    """The runner stopped it at its run time limit."""
    EXIT_CLASS = "exit_class_timeout"
    """The class of its ending, which rests on the batch system's limit."""
    RETURN_CODE = "sigxcpu_152"
    """Return code 152 (SIGXCPU), which stands for a time limit by Torc's convention."""
    NEAR_RUNTIME = "near_runtime"
    """It failed near its run time limit."""


def diagnose_time(
    *,
    exit_class: str | None = None,
    return_code: int | None = None,
    stop_reason: StopReason | str | None = None,
    runtime_s: "float | Fraction | None" = None,
    runtime_limit_s: int | None = None,
) -> TimeEvidence | None:
    """Return the strongest evidence that a failed attempt ran out of run time; None if it probably did not.

    Args:
        exit_class: Class of its ending.
        return_code: Its return code.
        stop_reason: Why the runner stopped it; None if it did not. After a stop for another reason than the run time
            limit, class and return code are those of that stop and prove nothing.
        runtime_s: Its run time.
        runtime_limit_s: Its run time request; None if it has none of its own.
    """
    if stop_reason == StopReason.RUNTIME_LIMIT:
        return TimeEvidence.STOPPED
    if stop_reason is None and exit_class == ExitClass.TIMEOUT:
        return TimeEvidence.EXIT_CLASS
    if stop_reason is None and return_code == TIMEOUT_RETURN_CODE:
        return TimeEvidence.RETURN_CODE
    if runtime_s is not None and runtime_limit_s and 100 * runtime_s > NEAR_PERCENT * runtime_limit_s:
        return TimeEvidence.NEAR_RUNTIME
    return None
