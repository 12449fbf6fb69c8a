"""Hypothesis strategies for the arguments of hooks: observations, failures and failed jobs."""

from typing import Any, Final

from attrs import evolve
from hypothesis import strategies as st

from torc_framework.api import (
    Ceiling,
    ExitClass,
    ExitObservation,
    ExitVerdict,
    FailedJob,
    Failure,
    StopReason,
    render_return_code,
)
from torc_framework.testing.support.constants import Constants

WORDS: Final = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
"""Any short text that a scheduler or a person may give."""
SCHEDULER_WORDS: Final = st.sampled_from(
    [
        *("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "CANCELLED by 1000"),
        *(
            "BOOT_FAIL",
            "DEADLINE",
            "Succeeded",
            "Failed",
            "OOMKilled",
            "Evicted",
            "ImagePullBackOff",
            "FAILED_PREEMPTED",
        ),
    ]
)
"""Words that batch systems and clusters use."""
SIGNALS: Final = st.integers(1, 64)
SIZES: Final = st.integers(0, 2**50)
TIMES: Final = st.floats(0, 2**34, allow_nan=False)
EXECUTORS: Final = st.sampled_from(["local", "slurm", "k8s", "ssh", "elsewhere"])
"""Names of executors."""
JSON_VALUES: Final[st.SearchStrategy[Any]] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)


def _words(constants: Constants | None) -> st.SearchStrategy[str]:
    """Generate words of schedulers, any text, and the texts of a plugin."""
    usual = SCHEDULER_WORDS | WORDS
    if constants is None or not constants.texts:
        return usual
    own = st.sampled_from(constants.texts)
    return own | own.map("the node said: {}, 3 times".format) | usual


def _numbers(constants: Constants | None, usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Generate usual numbers, and those of a plugin that are at least 0."""
    own = [number for number in constants.integers if number >= 0] if constants else []
    return st.sampled_from(own) | usual if own else usual


@st.composite
def observations(
    draw: st.DrawFn, executors: st.SearchStrategy[str] = EXECUTORS, constants: Constants | None = None
) -> ExitObservation:
    """Generate any observation, also unlikely combinations.

    Args:
        executors: Names of the executors that observed.
        constants: Numbers and texts of a plugin, which are generated often.
    """
    words, sizes = _words(constants), _numbers(constants, SIZES)
    ended_by_signal = draw(st.integers(0, 2)) == 0
    codes = st.none() | st.sampled_from([0, 1, 137, 143, 255]) | st.integers(0, 255)
    keys = st.sampled_from(constants.words) | WORDS if constants and constants.words else WORDS
    values = words | sizes | JSON_VALUES
    started = draw(st.none() | TIMES)
    ended = draw(st.none() | TIMES | (TIMES if started is None else sizes.map(lambda ran: started + ran)))
    limit = draw(st.none() | sizes)
    near = st.nothing() if limit is None else st.sampled_from([limit, limit + 1, max(0, limit - 1), limit * 2])
    return ExitObservation(
        draw(st.sampled_from(constants.words) | executors if constants and constants.words else executors),
        exit_code=None if ended_by_signal else draw(_numbers(constants, codes)),
        signal=draw(st.none() | SIGNALS) if ended_by_signal else None,
        core_dumped=draw(st.booleans()),
        started_at=started,
        ended_at=ended,
        duration_s=draw(st.none() | TIMES),
        stop_reason=draw(st.none() | st.sampled_from(StopReason)),
        stop_cause=draw(st.none() | words),
        stop_forced=draw(st.booleans()),
        clean_exit=draw(st.sampled_from(["auto", "auto", "completed", "interrupted"])),
        outputs_written=draw(st.booleans()),
        launch_error=draw(st.none() | st.none() | words),
        lost=draw(st.sampled_from([False, False, False, True])),
        log_disk_full=draw(st.booleans()),
        missing_outputs=tuple(draw(st.lists(WORDS, max_size=3))),
        scheduler_state=draw(st.none() | words),
        scheduler_reason=draw(st.none() | words),
        peak_memory_bytes=draw(st.none() | sizes | near),
        cpu_time_s=draw(st.none() | TIMES),
        memory_limit_bytes=limit,
        runtime_limit_s=draw(st.none() | TIMES),
        oom_kills=draw(st.none() | st.integers(0, 3)),
        raw=draw(st.dictionaries(keys, values | st.dictionaries(keys, values, max_size=2), max_size=3)),
    )


@st.composite
def plain_observations(draw: st.DrawFn, executor: str = "local") -> ExitObservation:
    """Generate the ending of a plain program: an exit code or a signal."""
    code = draw(st.none() | st.integers(0, 255))
    number = draw(SIGNALS) if code is None else None
    return ExitObservation(executor, exit_code=code, signal=number, started_at=1.0, ended_at=draw(st.floats(1, 10**6)))


VERDICTS: Final = st.builds(
    ExitVerdict,
    exit_class=st.sampled_from([name for name in ExitClass if name is not ExitClass.SUCCESS]),
    reason=WORDS,
    confidence=st.floats(0, 1),
)
"""Verdicts on failures."""


@st.composite
def failures(draw: st.DrawFn, constants: Constants | None = None) -> Failure:
    """Generate a failed attempt."""
    seen = draw(observations(constants=constants))
    code = render_return_code(seen)
    return Failure(
        workflow_id=draw(st.integers(1, 2**31)),
        job_id=draw(st.integers(1, 2**31)),
        job_name=draw(_words(constants)),
        attempt_id=draw(st.integers(1, 5) | _numbers(constants, st.integers(1, 100)).map(lambda number: number + 1)),
        return_code=draw(st.just(code) | _numbers(constants, st.just(code))),
        observation=seen,
        verdict=draw(VERDICTS),
        stderr_path=draw(st.sampled_from([None, "/nowhere/job_stdio/job.e"])),
    )


@st.composite
def failed_jobs(
    draw: st.DrawFn, settings: dict[str, Any] | None = None, constants: Constants | None = None
) -> FailedJob:
    """Generate a failed job for a recovery policy; its observed limits are those that it requested."""
    memory = draw(st.sampled_from([1 << 20, 1 << 30, 3 << 30]) | st.integers(1, 2**46))
    runtime = draw(st.sampled_from([60, 3600]) | st.integers(1, 10**7))
    cpus = draw(st.integers(1, 256))
    failure = draw(failures(constants))
    seen = evolve(
        failure.observation,
        memory_limit_bytes=memory,
        runtime_limit_s=float(runtime),
        peak_memory_bytes=draw(st.none() | st.integers(1, 2 * memory)),
    )
    ceiling = Ceiling(
        memory_bytes=draw(st.none() | st.just(memory) | st.integers(memory, 4 * memory)),
        runtime_s=draw(st.none() | st.just(runtime) | st.integers(runtime, 4 * runtime)),
        num_cpus=draw(st.none() | st.just(cpus) | st.integers(cpus, 4 * cpus)),
    )
    recoveries = draw(st.integers(0, 5))
    return FailedJob(
        failure=evolve(failure, observation=seen),
        memory_bytes=memory,
        runtime_s=runtime,
        num_cpus=cpus,
        has_own_request=draw(st.booleans()),
        ceiling=ceiling,
        recoveries=recoveries,
        history=tuple(draw(st.lists(st.integers(-128, 255), min_size=recoveries, max_size=recoveries))),
        settings=settings or {},
    )
