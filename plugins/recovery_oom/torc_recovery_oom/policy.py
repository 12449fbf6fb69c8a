"""Decision on a job that ran out of memory or run time: its new requests.

A new request is rounded up and then limited to the available amount, so that a request never becomes smaller. A job
that already requests the available amount cannot be recovered.
"""

import math
from collections.abc import Callable
from typing import Any, Final

from attrs import define, fields, frozen

from torc_framework.api import (
    ConfigError,
    ExitClass,
    FailedJob,
    RecoveryAction,
    RecoveryDecision,
    StopReason,
    format_duration,
    format_memory,
    option,
    parse_duration,
    parse_memory,
)
from torc_recovery_oom.diagnosis import lacked_memory, lacked_time

_KIB: Final = 1024
_MIB: Final = 1024**2
_GIB: Final = 1024**3
_UNITS: Final = ((8 * _GIB, _GIB), (8 * _MIB, _MIB), (0, _KIB))
"""Units of requests, each with the smallest size that is written in it."""
_MOST_BYTES: Final = 2**62
_MOST_S: Final = 2**31
_MINUTE_S: Final = 60


@define
class GrowthOptions:
    """Options for the growth of requests."""

    memory_margin: float | None = option(
        None, "New memory is at least the measured peak times this; by default the memory multiplier.", metavar="FACTOR"
    )
    max_memory: str | None = option(None, "Let no job ask for more memory than this, such as 64g.", metavar="SIZE")
    max_runtime: str | None = option(None, "Let no job ask for more time than this, such as PT8H.", metavar="DURATION")

    def __attrs_post_init__(self) -> None:
        """Raise an error for invalid values."""
        for name, parse in (("max_memory", parse_memory), ("max_runtime", parse_duration)):
            text = getattr(self, name)
            try:
                _ = None if text is None else parse(text)
            except ValueError as error:
                raise ConfigError(f"{name} of recovery: {error}") from None
        if self.memory_margin is not None and not 1 <= self.memory_margin < math.inf:
            raise ConfigError(f"memory_margin of recovery is {self.memory_margin}; it must be 1 or more")


@frozen
class Growth:
    """One request that has to grow.

    Attributes:
        cause: Class of the failure.
        words: The same for people.
        what: Name of the resource.
        now: The present request as text.
        new: The new request as text; None if it cannot grow.
        amount: The new request as a number.
        limit: What limits its growth.
    """

    cause: ExitClass
    words: str
    what: str
    now: str
    new: str | None
    amount: int | None
    limit: str

    @property
    def sentence(self) -> str:
        """Return a sentence on the growth, for people."""
        if self.new is None:
            return f"{self.words} detected, {self.what} {self.now} cannot grow further: {self.limit}"
        return f"{self.words} detected, increasing {self.what} {self.now} -> {self.new}"


def decide(job: FailedJob) -> RecoveryDecision | None:
    """Return the decision on a job; None if it did not run out of memory or run time."""
    if job.failure.observation.stop_reason is StopReason.CANCELED:
        return None
    options = _options(job.settings)
    growths: list[Growth] = []
    evidence: list[str] = []
    if proof := lacked_memory(job):
        growths.append(_more_memory(job, options))
        evidence += proof
    if proof := lacked_time(job):
        growths.append(_more_time(job, options))
        evidence += proof
    if not growths:
        return None
    amounts = {growth.cause: growth.amount for growth in growths}
    can_grow = all(growth.new is not None for growth in growths)
    return RecoveryDecision(
        RecoveryAction.RETRY if can_grow else RecoveryAction.CANNOT_GROW,
        "; ".join(growth.sentence for growth in growths),
        memory_bytes=amounts.get(ExitClass.OOM) if can_grow else None,
        runtime_s=amounts.get(ExitClass.TIMEOUT) if can_grow else None,
        causes=tuple(growth.cause.value for growth in growths),
        confidence=job.failure.verdict.confidence if job.failure.verdict.exit_class.value in amounts else 0.8,
        evidence=tuple(evidence),
    )


def _options(settings: Any) -> GrowthOptions:
    names = {attribute.name for attribute in fields(GrowthOptions)}
    return GrowthOptions(**{name: value for name, value in settings.items() if name in names})


def _more_memory(job: FailedJob, options: GrowthOptions) -> Growth:
    factor = float(job.settings.get("memory_multiplier", 1.5))
    margin = factor if options.memory_margin is None else options.memory_margin
    peak = job.failure.observation.peak_memory_bytes or 0
    wanted = _whole_memory(_multiplied(job.memory_bytes, factor, peak * margin, most=_MOST_BYTES))
    own = _MOST_BYTES if options.max_memory is None else parse_memory(options.max_memory)
    there_is = _MOST_BYTES if job.ceiling.memory_bytes is None else _round_down(job.ceiling.memory_bytes)
    return _growth(_MEMORY, job, job.memory_bytes, wanted, own=own, there_is=there_is)


def _more_time(job: FailedJob, options: GrowthOptions) -> Growth:
    factor = float(job.settings.get("runtime_multiplier", 1.4))
    wanted = math.ceil(_multiplied(job.runtime_s, factor, most=_MOST_S) / _MINUTE_S) * _MINUTE_S
    own = _MOST_S if options.max_runtime is None else parse_duration(options.max_runtime)
    there_is = _MOST_S if job.ceiling.runtime_s is None else job.ceiling.runtime_s
    return _growth(_TIME, job, job.runtime_s, wanted, own=own, there_is=there_is)


@frozen
class _RequestKind:
    """A kind of request: the class and words for a lack of it, and its format."""

    cause: ExitClass
    words: str
    what: str
    long: str
    text: Callable[[int], str]


_MEMORY: Final = _RequestKind(ExitClass.OOM, "OOM", "memory", "memory", format_memory)
_TIME: Final = _RequestKind(ExitClass.TIMEOUT, "timeout", "runtime", "run time", format_duration)


def _growth(kind: _RequestKind, job: FailedJob, now: int, wanted: int, *, own: int, there_is: int) -> Growth:
    """Return the growth of a request to the wanted amount, within the limits of user (``own``) and site."""
    most = min(own, there_is)
    new = min(wanted, most)
    limit = _limit(kind.long, job, new, wanted, is_own=own <= there_is, most=kind.text(most))
    grown = new if new > now else None
    return Growth(
        kind.cause, kind.words, kind.what, kind.text(now), None if grown is None else kind.text(grown), grown, limit
    )


def _multiplied(request: int, factor: float, at_least: float = 0.0, *, most: int) -> float:
    """Return a request times a factor, at least the needed amount; a huge factor gives the largest amount."""
    return min(max(request * factor, at_least), float(most))


def _whole_memory(size: float) -> int:
    """Round a size up to whole GiB, MiB or KiB, depending on its magnitude."""
    unit = next(unit for start, unit in _UNITS if size >= start)
    return math.ceil(size / unit) * unit


def _round_down(size: int) -> int:
    """Round an available size of at least 1 MiB down to whole MiB, the precision of requests."""
    return size // _MIB * _MIB or size


def _limit(what: str, job: FailedJob, new: int, wanted: int, *, is_own: bool, most: str) -> str:
    """Return a clause on what limits the growth."""
    if new == wanted:
        return "the multiplier is 1"
    if is_own:
        return f"{most} is the most {what} that was allowed"
    return f"{most} is all the {what} that {job.ceiling.origin} gives"
