"""Lists of observations and failed jobs that cover what hooks decide by, and what the constants of a plugin suggest."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

from attrs import evolve

from torc_framework.api import (
    Ceiling,
    ExitClass,
    ExitObservation,
    ExitVerdict,
    FailedJob,
    Failure,
    StopReason,
    classify_exit,
    render_return_code,
)
from torc_framework.testing.support.constants import Constants

STARTED_AT: Final = 1_700_000_000.0
GIB: Final = 2**30
NO_CONSTANTS: Final = Constants()
LAST_PROCESS_CODE: Final = 255
LONG_TEXT_CHARACTERS: Final = 50_000
_EXECUTORS: Final = ("local", "slurm")
_OTHER_JOBS: Final = 800
_FEW_WORDS, _SOME_WORDS, _MANY_WORDS, _NUMBERS = 6, 25, 120, 250
_STATES: Final = ("OUT_OF_MEMORY", "TIMEOUT", "PREEMPTED", "NODE_FAIL", "CANCELLED by 1000", "OOMKilled", "Evicted")


def ran(executor: str = "local", **changes: Any) -> ExitObservation:
    """Return the observation of an attempt that ran for a minute."""
    return ExitObservation(executor, started_at=STARTED_AT, ended_at=STARTED_AT + 60, **changes)


def typical_observations(constants: Constants = NO_CONSTANTS) -> Iterator[ExitObservation]:
    """Yield every exit code and signal, every reason to stop, and each constant where a plugin may compare it."""
    own = [word for word in constants.words if word == word.lower() and "." not in word][:_FEW_WORDS]
    executors = tuple(dict.fromkeys([*own, *_EXECUTORS]))
    large = [number for number in constants.integers if number > LAST_PROCESS_CODE][:_NUMBERS]
    yield ExitObservation("local")
    for executor, code in product([*own[:2], *_EXECUTORS], range(LAST_PROCESS_CODE + 1)):
        yield ran(executor, exit_code=code)
    for executor, code in product(executors, [code for code in constants.integers[:_NUMBERS] if code >= 0]):
        yield ran(executor, exit_code=code)
    for executor, number in product(executors[:2], range(1, 65)):
        yield ran(executor, signal=number)
    yield from _bare(large)
    yield from _stopped()
    yield from _used(constants)
    yield from _told(constants, executors)
    yield from _raw(constants, own)


def _bare(codes: list[int]) -> Iterator[ExitObservation]:
    """Yield endings of which little was observed."""
    for code in [*range(LAST_PROCESS_CODE + 1), *codes]:
        yield ExitObservation("local", exit_code=code)
    for number in (2, 6, 9, 11, 15, 64):
        yield ExitObservation("local", signal=number)
    yield ExitObservation("local", lost=True)
    yield ExitObservation("local", launch_error="no such folder: /nowhere", ended_at=STARTED_AT)
    yield ran(exit_code=0, missing_outputs=("results/α β.csv",))


def _stopped() -> Iterator[ExitObservation]:
    for reason, (code, number) in product(StopReason, ((None, 9), (None, 15), (0, None), (1, None), (137, None))):
        for is_forced in (False, True):
            yield ran(exit_code=code, signal=number, stop_reason=reason, stop_forced=is_forced)


def _used(constants: Constants) -> Iterator[ExitObservation]:
    """Yield endings with memory and run time below, at and above what the job requested."""
    limits = [GIB, *[number for number in constants.integers if number > 1][:_FEW_WORDS]]
    for limit, part, (code, number) in product(limits, (0, 0.5, 0.9, 1, 1.5), ((1, None), (137, None), (None, 9))):
        memory: dict[str, Any] = {"memory_limit_bytes": limit, "peak_memory_bytes": int(limit * part)}
        yield ran(exit_code=code, signal=number, **memory, oom_kills=1 if part == 1 else None)
        yield ExitObservation(
            *("slurm", code, number),
            started_at=STARTED_AT,
            ended_at=STARTED_AT + limit * part,
            duration_s=float(limit * part),
            runtime_limit_s=float(limit),
            cpu_time_s=1.0,
        )


def _told(constants: Constants, executors: tuple[str, ...]) -> Iterator[ExitObservation]:
    """Yield endings with the words of schedulers and of the plugin, as states, as reasons and in launch errors."""
    for executor, word in product(executors, [*_STATES, *constants.texts[:_MANY_WORDS]]):
        for code in (None, 1):
            yield ran(executor, exit_code=code, scheduler_state=word)
            yield ran(executor, exit_code=code, scheduler_reason=f"node n1: {word} (3 times)")
        yield ran(executor, signal=9, scheduler_state=word, scheduler_reason=word)
    for word in constants.texts[:_MANY_WORDS]:
        yield ExitObservation("local", launch_error=f"could not start: {word}")
        yield ran(signal=15, stop_reason=StopReason.SHUTDOWN, stop_cause=word)
        yield ran(exit_code=0, missing_outputs=(word,))


def _raw(constants: Constants, executors: list[str]) -> Iterator[ExitObservation]:
    """Yield endings with raw values under the plugin's words."""
    values: list[Any] = [
        True,
        0,
        1,
        -1,
        *constants.integers[:_SOME_WORDS],
        *constants.texts[:_SOME_WORDS],
        None,
        [],
        {},
    ]
    for key, value in product(constants.words[:_SOME_WORDS], values):
        yield ran(exit_code=1, raw={key: value})
    inside: list[Any] = [True, *constants.integers[:_FEW_WORDS], *constants.texts[:_FEW_WORDS]]
    few = constants.words[:_FEW_WORDS]
    for executor, outer, inner, value in product(["local", *executors[:_FEW_WORDS]], few, few, inside):
        yield ran(executor, exit_code=1, raw={outer: {inner: value}})


def long_observations(constants: Constants = NO_CONSTANTS) -> Iterator[ExitObservation]:
    """Yield observations with texts of 50,000 characters, on which searches that backtrack take very long."""
    parts = ["a", " ", "x=1, ", "0", "Ω\n", "slurmstepd: error: ", *constants.words[:_FEW_WORDS]]
    for part in parts:
        text = (part * (LONG_TEXT_CHARACTERS // len(part))) + "!"
        yield ran(exit_code=1, scheduler_state=text, scheduler_reason=text, raw={"message": text, part: text})
        yield ExitObservation("local", launch_error=text)
    yield ran(exit_code=1, missing_outputs=tuple(f"f{number}" for number in range(2000)))
    yield ran(exit_code=1, raw={f"key{number}": number for number in range(5000)})


# --- failures ---------------------------------------------------------------------------------------


def failure_of(seen: ExitObservation, verdict: ExitVerdict | None = None, **changes: Any) -> Failure:
    """Return the failure of an attempt that ended so, with the built-in verdict unless another is given."""
    verdict = verdict or classify_exit(seen)
    values: dict[str, Any] = {"workflow_id": 1, "job_id": 1, "job_name": "job", "attempt_id": 1}
    return Failure(**(values | {"return_code": render_return_code(seen)} | changes), observation=seen, verdict=verdict)


def failing_observations(constants: Constants = NO_CONSTANTS) -> Iterator[ExitObservation]:
    """Yield the typical observations of endings that are no success."""
    for seen in typical_observations(constants):
        if classify_exit(seen).exit_class is not ExitClass.SUCCESS:
            yield seen


def typical_failures(constants: Constants = NO_CONSTANTS) -> Iterator[Failure]:
    """Yield failures of every class, with every return code, and those of the typical observations."""
    for named, number in product(ExitClass, (1, 2, 50)):
        if named is not ExitClass.SUCCESS:
            yield failure_of(ran(exit_code=1), ExitVerdict(named, f"it was {named}", 0.9), attempt_id=number)
    for seen in failing_observations(constants):
        yield failure_of(seen)
    for word in constants.texts[:_SOME_WORDS]:
        yield failure_of(ran(exit_code=1), job_name=word)
        yield failure_of(ran(exit_code=1), ExitVerdict(ExitClass.USER_ERROR, f"said {word}", 0.5, ("exit_code",)))


def typical_failed_jobs(settings: Mapping[str, Any], constants: Constants = NO_CONSTANTS) -> Iterator[FailedJob]:
    """Yield jobs that failed in every way, whose requests are below, at and above the ceiling."""
    for failure, ceiling, recoveries in product([*_lacking(), *_own(constants)], _CEILINGS, (0, 1, 4)):
        yield _job(failure, ceiling, recoveries, settings)
    others = list(typical_failures(constants))
    for place, failure in enumerate(others[:: max(1, len(others) // _OTHER_JOBS)]):
        yield _job(failure, _CEILINGS[place % len(_CEILINGS)], place % 5, settings)
    for code in range(-LAST_PROCESS_CODE, LAST_PROCESS_CODE + 1):
        yield _job(failure_of(ran(exit_code=1), return_code=code), _CEILINGS[0], code % 2, settings)


def _own(constants: Constants) -> Iterator[Failure]:
    """Yield failures with the constants of the plugin as codes, names and words."""
    for code in [code for code in constants.integers if code >= 0][:_SOME_WORDS]:
        yield failure_of(ran(exit_code=code, raw=dict.fromkeys(constants.words[:_FEW_WORDS], code)))
    few_codes = [code for code in constants.integers if code >= 0][:_FEW_WORDS]
    for code, word in product(few_codes, constants.texts[:_FEW_WORDS]):
        yield failure_of(ran(exit_code=code, scheduler_reason=word, raw={word: code}), job_name=f"{word}1")
    for word in constants.texts[:_SOME_WORDS]:
        seen = ran(word, exit_code=1, scheduler_state=word, scheduler_reason=word)
        yield failure_of(seen, ExitVerdict(ExitClass.USER_ERROR, f"said {word}", 0.5, ("exit_code",)), job_name=word)


_CEILINGS: Final = (
    Ceiling(GIB, 3600, "this machine", 2),
    Ceiling(GIB + GIB // 4, 3900, "partition short", 3),
    Ceiling(None, None),
    Ceiling(64 * GIB, 86_400, "partition long", 64),
    Ceiling(GIB // 2, 1800, "a smaller machine", 1),
    Ceiling(GIB, None, "this machine", 64),
    Ceiling(None, 3600, "this machine", 2),
)
"""Ceilings for a job that requests 1 GiB, an hour and 2 CPUs."""


def _lacking() -> Iterator[Failure]:
    """Yield failures for lack of memory, run time and CPUs, as each executor reports them."""
    limits: dict[str, Any] = {"memory_limit_bytes": GIB, "runtime_limit_s": 3600.0}
    for seen in (
        ran(signal=9, oom_kills=1, peak_memory_bytes=GIB, **limits),
        ran(exit_code=137, peak_memory_bytes=2 * GIB, **limits),
        ran(signal=9, stop_reason=StopReason.MEMORY_LIMIT, peak_memory_bytes=GIB + 1, **limits),
        ran(signal=15, stop_reason=StopReason.RUNTIME_LIMIT, **limits),
        ran(signal=9, stop_reason=StopReason.RUNTIME_LIMIT, stop_forced=True, peak_memory_bytes=2 * GIB, **limits),
        ran("slurm", exit_code=1, scheduler_state="OUT_OF_MEMORY", **limits),
        ran("slurm", signal=15, scheduler_state="TIMEOUT", **limits),
        ran("slurm", exit_code=1, scheduler_state="NODE_FAIL", **limits),
        ran("slurm", exit_code=1, scheduler_state="PREEMPTED", **limits),
        ran(signal=15, stop_reason=StopReason.SHUTDOWN, **limits),
        ran(signal=15, stop_reason=StopReason.CANCELED, **limits),
        ExitObservation("local", lost=True, **limits),
        ExitObservation("local", launch_error="no such folder", **limits),
        ran(exit_code=1, **limits),
    ):
        yield failure_of(seen)
    for named in ExitClass:
        if named is not ExitClass.SUCCESS:
            yield failure_of(ran(exit_code=1, **limits), ExitVerdict(named, f"it was {named}", 0.9, ("exit_code",)))


def _job(failure: Failure, ceiling: Ceiling, recoveries: int, settings: Mapping[str, Any]) -> FailedJob:
    return FailedJob(
        evolve(failure, attempt_id=recoveries + 1),
        memory_bytes=GIB,
        runtime_s=3600,
        num_cpus=2,
        ceiling=ceiling,
        recoveries=recoveries,
        history=(failure.return_code,) * recoveries,
        settings=dict(settings),
    )
