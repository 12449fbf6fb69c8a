"""What was seen of a step's end: srun's own words for the wait status, accounting's for all the rest."""

from typing import Any

from attrs import define, evolve

from torc_framework.api import ExitObservation
from torc_slurm.accounting.step_accounting import StepRow
from torc_slurm.processes.instants import Instant
from torc_slurm.steps.srun_messages import OOM_SIGNAL, SrunMessages


@define
class StepEnd:
    """All that is known of a step that has ended, before accounting is asked.

    Attributes:
        name: Name of the step.
        words: What its srun said.
        srun_code: Exit code of its srun; None if a signal ended it.
        srun_signal: Signal that ended its srun.
        ended: When its srun ended.
    """

    name: str
    words: SrunMessages
    srun_code: int | None
    srun_signal: int | None
    ended: Instant


def observe_step(executor: str, end: StepEnd, row: StepRow | None, why_none: str = "") -> ExitObservation:
    """Return the observation of a step's end.

    How long it ran is measured here, from what its srun told of the start to the end of srun. Accounting's ``Elapsed``
    has whole seconds, and is the difference of two times of the controller's clock, which may be set meanwhile; it
    counts only where srun told of no start.

    Args:
        row: Accounting's row; None if there is none.
        why_none: Why there is none.
    """
    words = end.words
    code, number = _code_and_signal(end, row)
    raw: dict[str, Any] = {
        "step": words.step_id,
        "step_name": end.name,
        "tasks": [{"status": f"0x{status:04x}", "tasks": tasks} for status, tasks in words.statuses],
        "srun_exit_code": end.srun_code,
        "srun_signal": end.srun_signal,
        "srun_said": list(words.last),
        "accounting": {"missing": why_none} if row is None else {k: v for k, v in row.fields.items() if v},
    }
    seen = ExitObservation(
        executor,
        exit_code=code,
        signal=number,
        core_dumped=words.core_dumped,
        started_at=words.started.at if words.started else None,
        ended_at=end.ended.at,
        duration_s=end.ended.since(words.started) if words.started else None,
        scheduler_reason=words.node_failure or ("Out Of Memory" if words.out_of_memory else None),
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
    """Return the observation of a step that ended because its allocation did, in this state."""
    return evolve(seen, scheduler_state=state, raw={**seen.raw, "allocation_state": state})


def _code_and_signal(end: StepEnd, row: StepRow | None) -> tuple[int | None, int | None]:
    """Return the exit code or the signal that ended a step.

    What srun told of the tasks is exact. Otherwise accounting tells code from signal, though it takes 128
    off large codes, which srun's own code does not. Srun's own code alone is a last resort, and says nothing
    where a node was lost or memory ran out: it is 0 and 1 then.
    """
    words = end.words
    if words.statuses and not words.node_failure:
        return words.code, words.signal
    pair = row.code_and_signal if row is not None else None
    if pair is not None and pair != (0, 0):
        code, number = pair
        if number:
            return None, None if number == OOM_SIGNAL else number
        return (end.srun_code if end.srun_code == code + 128 else code), None
    if words.node_failure or words.out_of_memory or (row is not None and pair is None):
        return None, None
    return end.srun_code, None
