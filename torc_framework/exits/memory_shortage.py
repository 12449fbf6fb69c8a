"""Diagnosis of failed attempts that probably ran out of memory.

Sources: Torc documentation, "Automatic Recovery" and "Check Resource Utilization". The recovery policy, the report on
resource use and the cases of ``torc classify`` use this one function with those facts that they have.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from torc_framework.models.exits import OOM_RETURN_CODE, ExitClass

if TYPE_CHECKING:
    from fractions import Fraction

EARLY_PERCENT: Final = 80
"""An attempt killed before this part of its run time limit was not killed for reaching that limit."""


class MemoryEvidence(StrEnum):
    """Evidence that an attempt ran out of memory, strongest first."""

    EXIT_CLASS = "exit_class_oom"
    """The class of its ending, which rests on the runner's memory limit, the kernel or the batch system."""
    OOM_KILLS = "oom_kills"
    """The kernel killed processes of the attempt for lack of memory."""
    MEMORY_EXCEEDED = "memory_exceeded"
    """Its peak memory was above its request."""
    SIGKILL = "sigkill_137"
    """Return code 137 (SIGKILL), which the OOM killer causes, long before the run time limit."""


def diagnose_memory(
    *,
    exit_class: str | None = None,
    oom_kills: int | None = None,
    peak_bytes: int | None = None,
    limit_bytes: int | None = None,
    return_code: int | None = None,
    was_stopped: bool = False,
    runtime_s: "float | Fraction | None" = None,
    runtime_limit_s: int | None = None,
) -> MemoryEvidence | None:
    """Return the strongest evidence that a failed attempt ran out of memory; None if it probably did not.

    Args:
        exit_class: Class of its ending.
        oom_kills: Number of its processes that the kernel killed for lack of memory. The kernel's count has precedence
            over the weaker evidence, also if it is 0. None if the kernel did not count.
        peak_bytes: Its peak memory.
        limit_bytes: Its memory request; None if it has none of its own.
        return_code: Its return code.
        was_stopped: The runner stopped it.
        runtime_s: Its run time.
        runtime_limit_s: Its run time request; None if it has none of its own.
    """
    if exit_class == ExitClass.OOM:
        return MemoryEvidence.EXIT_CLASS
    if oom_kills is not None:
        return MemoryEvidence.OOM_KILLS if oom_kills else None
    if peak_bytes is not None and limit_bytes is not None and peak_bytes > limit_bytes:
        return MemoryEvidence.MEMORY_EXCEEDED
    was_early = runtime_limit_s is None or 100 * (runtime_s or 0) < EARLY_PERCENT * runtime_limit_s
    if return_code == OOM_RETURN_CODE and not was_stopped and was_early:
        return MemoryEvidence.SIGKILL
    return None
