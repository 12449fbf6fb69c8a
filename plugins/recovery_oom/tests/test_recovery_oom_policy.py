"""Decisions on jobs that lacked memory or time: the table of readings, and what holds for any job."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torc_recovery_oom.policy import GrowthOptions, decide

from torc_framework.api import (
    Ceiling,
    ConfigError,
    ExitClass,
    ExitObservation,
    ExitVerdict,
    FailedJob,
    Failure,
    RecoveryAction,
    StopReason,
)

GIB = 1024**3
MINUTE = 60


def failed(
    code: int = 1,
    peak_gib: float | None = None,
    ran_min: float = 10,
    *,
    memory_gib: float = 4,
    runtime_min: float = 60,
    exit_class: ExitClass = ExitClass.USER_ERROR,
    stop: StopReason | None = None,
    oom_kills: int | None = None,
    **more: Any,
) -> FailedJob:
    """Return a failed job; GiB and minutes."""
    peak = None if peak_gib is None else int(peak_gib * GIB)
    seen = ExitObservation(
        "local",
        exit_code=code,
        started_at=1000.0,
        ended_at=1000.0 + ran_min * MINUTE,
        peak_memory_bytes=peak,
        stop_reason=stop,
        oom_kills=oom_kills,
    )
    failure = Failure(1, 107, "train", 1, code, seen, ExitVerdict(exit_class, "as it was"))
    return FailedJob(failure, int(memory_gib * GIB), int(runtime_min * MINUTE), 1, **more)


READINGS: list[tuple[str, FailedJob, tuple[str, ...]]] = [
    ("137 early without figures", failed(137, ran_min=20), ("oom",)),
    ("137 between four fifths and nine tenths", failed(137, 3, 51), ()),
    ("137 near the end of the run time", failed(137, 3, 55), ("timeout",)),
    ("peak above the request, any code", failed(1, 5), ("oom",)),
    ("peak at the request", failed(1, 4), ()),
    ("152 whenever", failed(152, ran_min=30), ("timeout",)),
    ("any code near the end of the run time", failed(1, ran_min=54.1), ("timeout",)),
    ("at nine tenths exactly", failed(1, ran_min=54), ()),
    ("the ending says memory", failed(1, exit_class=ExitClass.OOM), ("oom",)),
    ("the ending says time", failed(1, exit_class=ExitClass.TIMEOUT), ("timeout",)),
    ("memory and time", failed(137, 5, 59), ("oom", "timeout")),
    ("a bug", failed(1), ()),
    (
        "the kernel killed, with any consequence",
        failed(5, 4, exit_class=ExitClass.OUTPUT_MISSING, oom_kills=2),
        ("oom",),
    ),
    (
        "the kernel killed before the time was over",
        failed(stop=StopReason.RUNTIME_LIMIT, oom_kills=1),
        ("oom", "timeout"),
    ),
    ("137 and the kernel knows of no lack", failed(137, 4.1, ran_min=20, oom_kills=0), ()),
    ("stopped for its run time", failed(0, stop=StopReason.RUNTIME_LIMIT), ("timeout",)),
    ("stopped with its runner", failed(152, stop=StopReason.SHUTDOWN, exit_class=ExitClass.TIMEOUT), ()),
    ("canceled", failed(137, 9, 59, stop=StopReason.CANCELED), ()),
    ("asked for nothing, used much", failed(1, 5, 100, memory_gib=0.001, has_own_request=False), ()),
    ("asked for nothing, killed", failed(137, 5, 100, memory_gib=0.001, has_own_request=False), ("oom",)),
]


@pytest.mark.parametrize(("job", "causes"), [pytest.param(job, causes, id=name) for name, job, causes in READINGS])
def test_what_a_job_lacked(job: FailedJob, causes: tuple[str, ...]) -> None:
    """The readings of the table; no opinion on anything else."""
    decision = decide(job)
    assert (() if decision is None else decision.causes) == causes
    assert decision is None or (decision.action is RecoveryAction.RETRY and decision.evidence)


def test_memory_grows_by_the_factor_or_from_the_peak() -> None:
    """The larger of both, rounded up, in words that a person reads."""
    plain = decide(failed(137, memory_gib=8, exit_class=ExitClass.OOM))
    assert plain is not None
    assert (plain.memory_bytes, plain.runtime_s) == (12 * GIB, None)
    assert plain.reason == "OOM detected, increasing memory 8g -> 12g"
    measured = decide(failed(1, 8))
    assert measured is not None
    assert measured.memory_bytes == 12 * GIB
    margin = decide(failed(1, 8, settings={"memory_multiplier": 1.5, "memory_margin": 1.1}))
    assert margin is not None
    assert margin.memory_bytes == 9 * GIB  # 8.8 rounded up


def test_run_time_grows_to_whole_minutes() -> None:
    """Rounded up, by the factor of the command."""
    decision = decide(failed(152, runtime_min=61, settings={"runtime_multiplier": 1.4}))
    assert decision is not None
    assert decision.runtime_s == 86 * MINUTE
    assert decision.reason == "timeout detected, increasing runtime PT1H1M -> PT1H26M"


def test_what_has_all_there_is_cannot_grow() -> None:
    """Cut to the ceiling while that is more; a verdict of its own when it is not."""
    partition = Ceiling(10 * GIB, 90 * MINUTE, "partition short")
    clipped = decide(failed(137, memory_gib=8, ceiling=partition, exit_class=ExitClass.OOM))
    assert clipped is not None
    assert (clipped.action, clipped.memory_bytes) == (RecoveryAction.RETRY, 10 * GIB)
    full = decide(failed(137, memory_gib=10, ceiling=partition, exit_class=ExitClass.OOM))
    assert full is not None
    assert (full.action, full.memory_bytes) == (RecoveryAction.CANNOT_GROW, None)
    assert (
        full.reason == "OOM detected, memory 10g cannot grow further: 10g is all the memory that partition short gives"
    )
    late = decide(failed(152, runtime_min=90, ceiling=partition))
    assert late is not None
    assert late.action is RecoveryAction.CANNOT_GROW
    allowed = decide(failed(152, runtime_min=30, settings={"max_runtime": "PT30M"}))
    assert allowed is not None
    assert "PT30M is the most run time that was allowed" in allowed.reason
    still = decide(failed(137, ran_min=1, settings={"memory_multiplier": 1.0}))
    assert still is not None
    assert "the multiplier is 1" in still.reason


@pytest.mark.parametrize(
    "values", [{"max_memory": "much"}, {"max_runtime": "1h"}, {"memory_margin": 0.5}, {"memory_margin": float("nan")}]
)
def test_options_that_make_no_sense_are_refused(values: dict[str, Any]) -> None:
    """The message names the option."""
    with pytest.raises(ConfigError, match=next(iter(values))):
        GrowthOptions(**values)


jobs = st.builds(
    failed,
    code=st.sampled_from([1, 137, 152]),
    peak_gib=st.none() | st.floats(0, 2000),
    ran_min=st.floats(0, 100_000),
    memory_gib=st.floats(0, 2000),
    runtime_min=st.floats(0, 100_000),
    exit_class=st.sampled_from([ExitClass.USER_ERROR, ExitClass.OOM, ExitClass.TIMEOUT]),
    has_own_request=st.booleans(),
    ceiling=st.builds(Ceiling, st.none() | st.integers(1, 2**43), st.none() | st.integers(1, 2**24)),
    settings=st.fixed_dictionaries(
        {"memory_multiplier": st.floats(1, 1e300), "runtime_multiplier": st.floats(1, 1e300)},
        optional={"max_memory": st.sampled_from(["1m", "3g", "1t"]), "max_runtime": st.sampled_from(["PT1S", "P2D"])},
    ),
)


@given(jobs)
def test_requests_grow_and_never_beyond_the_ceiling(job: FailedJob) -> None:
    """Whatever the job: a retry asks for more of something, for less of nothing, and for no more than there is."""
    decision = decide(job)
    if decision is None or decision.action is not RecoveryAction.RETRY:
        return
    pairs = [
        (decision.memory_bytes, job.memory_bytes, job.ceiling.memory_bytes),
        (decision.runtime_s, job.runtime_s, job.ceiling.runtime_s),
    ]
    assert any(new is not None for new, _, _ in pairs)
    for new, now, most in pairs:
        assert new is None or (now < new and (most is None or new <= most))


@given(jobs, st.integers(1, 2**43), st.integers(1, 2**24))
def test_recovery_ends(job: FailedJob, memory: int, seconds: int) -> None:
    """A job that always lacks the same runs out of room: after few retries it cannot grow."""
    import attrs

    settings = {"memory_multiplier": 1.5, "runtime_multiplier": 1.5}
    job = attrs.evolve(job, ceiling=Ceiling(memory, seconds), settings=settings)
    for _ in range(150):
        decision = decide(job)
        if decision is None or decision.action is not RecoveryAction.RETRY:
            return
        new_memory = decision.memory_bytes or job.memory_bytes
        job = attrs.evolve(job, memory_bytes=new_memory, runtime_s=decision.runtime_s or job.runtime_s)
    raise AssertionError("it would be retried for ever")
