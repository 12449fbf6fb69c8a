"""Observations of ended steps: the wait status from srun's messages, everything else from accounting."""

from typing import Any

from attrs import define, evolve

from torc_framework.api import ExitObservation
from torc_slurm.accounting.step_rows import StepRow
from torc_slurm.processes.instants import Instant
from torc_slurm.steps.srun_messages import OOM_SIGNAL, SrunMessages


@define
class StepEnd:
    """The end of a step as its srun showed it, without accounting.

    Attributes:
        name: Name of the step.
        messages: Messages of its srun.
        srun_code: Exit code of its srun; None if a signal ended it.
        srun_signal: Signal that ended its srun; None if it exited.
        ended: When its srun ended.
    """

    name: str
    messages: SrunMessages
    srun_code: int | None
    srun_signal: int | None
    ended: Instant


def observe_step(executor: str, end: StepEnd, row: StepRow | None, why_none: str = "") -> ExitObservation:
    """Return the observation of a step's end.

    The duration is measured by this process, from srun's message about the start to the end of srun. Accounting's
    ``Elapsed`` only counts if srun reported no start. It has whole seconds and is the difference of two times of the
    controller's clock, which may be set meanwhile.

    Args:
        row: Accounting's row; None if there is none.
        why_none: Why there is none.
    """
    messages = end.messages
    code, number = _code_and_signal(end, row)
    raw: dict[str, Any] = {
        "step": messages.step_id,
        "step_name": end.name,
        "tasks": [{"status": f"0x{status:04x}", "tasks": tasks} for status, tasks in messages.statuses],
        "srun_exit_code": end.srun_code,
        "srun_signal": end.srun_signal,
        "srun_said": list(messages.last_lines),
        "accounting": {"missing": why_none} if row is None else {k: v for k, v in row.fields.items() if v},
    }
    seen = ExitObservation(
        executor,
        exit_code=code,
        signal=number,
        core_dumped=messages.core_dumped,
        started_at=messages.started.at if messages.started else None,
        ended_at=end.ended.at,
        duration_s=end.ended.since(messages.started) if messages.started else None,
        scheduler_reason=messages.node_failure or ("Out Of Memory" if messages.out_of_memory else None),
        raw={key: value for key, value in raw.items() if value not in (None, [])},
    )
    if row is None:
        return seen
    return evolve(
        seen,
        scheduler_state=row.text("State"),
        scheduler_reason=seen.scheduler_reason or row.text("Reason"),
        started_at=seen.started_at or row.time("Start"),
        duration_s=row.elapsed_s if seen.duration_s is None else seen.duration_s,
        peak_memory_bytes=row.peak_memory_bytes,
        cpu_time_s=row.cpu_time_s,
    )


def with_allocation_state(seen: ExitObservation, state: str) -> ExitObservation:
    """Return the observation of a step that ended because its allocation ended in this state."""
    return evolve(seen, scheduler_state=state, raw={**seen.raw, "allocation_state": state})


def _code_and_signal(end: StepEnd, row: StepRow | None) -> tuple[int | None, int | None]:
    """Return the exit code or the signal that ended a step; None for both if they are unknown.

    The wait statuses in srun's messages are exact. Without them accounting distinguishes code and signal. sacct prints
    exit codes from 128 on less 128, which srun's own exit code corrects. Srun's exit code alone is the last resort, but
    not if a node was lost or memory ran out: then it is 0 or 1 for any end of the task. (Measured with Slurm 22.05.8.)
    """
    messages = end.messages
    if messages.statuses and not messages.node_failure:
        return messages.code, messages.signal
    pair = row.code_and_signal if row is not None else None
    if pair is not None and pair != (0, 0):
        code, number = pair
        if number:
            return None, None if number == OOM_SIGNAL else number
        return (end.srun_code if end.srun_code == code + 128 else code), None
    if messages.node_failure or messages.out_of_memory or (row is not None and pair is None):
        return None, None
    return end.srun_code, None
