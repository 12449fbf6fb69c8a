"""The ladder that a job climbs when it never gets enough: strictly upward, to what there is, and no further."""

from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from torc_recovery_oom.policy import decide

from torc_framework.api import (
    Ceiling,
    ExitClass,
    ExitObservation,
    ExitVerdict,
    FailedJob,
    Failure,
    RecoveryAction,
    format_duration,
    format_memory,
)

MIB = 1024**2
AMOUNTS: dict[ExitClass, tuple[str, Any]] = {
    ExitClass.OOM: ("memory_bytes", format_memory),
    ExitClass.TIMEOUT: ("runtime_s", format_duration),
}


def failed(named: ExitClass, memory: int, seconds: int, **more: Any) -> FailedJob:
    """Return a job that lacked memory or time."""
    failure = Failure(1, 7, "train", 1, 1, ExitObservation("local"), ExitVerdict(named, "as it was"))
    return FailedJob(failure, memory, seconds, 1, **more)


@settings(deadline=None)
@given(
    named=st.sampled_from(sorted(AMOUNTS)),
    start=st.integers(1, 2**16),
    room=st.integers(0, 2**20),
    multiplier=st.floats(1.01, 10),
    own=st.none() | st.integers(1, 2**20),
    peaks=st.lists(st.none() | st.floats(0, 3), max_size=5),
)
def test_it_climbs_to_the_ceiling_and_stops_there(  # noqa: PLR0917 - hypothesis gives them by name
    named: ExitClass, start: int, room: int, multiplier: float, own: int | None, peaks: list[float | None]
) -> None:
    """Each step asks for more; the last is all there is; the next answer is that it cannot grow further."""
    field, shown = AMOUNTS[named]
    unit = MIB if named is ExitClass.OOM else 60
    ceiling = Ceiling((start + room) * unit, (start + room) * unit, "the machine")
    wanted: dict[str, Any] = {"memory_multiplier": multiplier, "runtime_multiplier": multiplier}
    if own is not None:
        wanted["max_memory" if named is ExitClass.OOM else "max_runtime"] = shown(own * unit)
    most = min(start + room, start + room if own is None else own) * unit
    job = failed(named, start * unit, start * unit, ceiling=ceiling, settings=wanted)
    steps = [getattr(job, field)]
    while True:
        peak = peaks.pop() if peaks and named is ExitClass.OOM else None  # else it would lack memory, too
        seen = evolve(job.failure.observation, peak_memory_bytes=None if peak is None else int(peak * job.memory_bytes))
        decision = decide(evolve(job, failure=evolve(job.failure, observation=seen)))
        assert decision is not None
        if decision.action is not RecoveryAction.RETRY:
            break
        job = evolve(job, **{field: getattr(decision, field)})
        steps.append(getattr(job, field))
        assert steps[-1] > steps[-2], "each step is higher"
        assert len(steps) < 2000, "there is an end of it"
    assert decision.action is RecoveryAction.CANNOT_GROW
    assert (decision.memory_bytes, decision.runtime_s) == (None, None)
    assert "cannot grow further" in decision.reason
    assert steps[-1] == max(most, start * unit)
