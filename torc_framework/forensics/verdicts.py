"""What a stored ending is called, how sure that is, and what it rests on."""

from typing import Any, Final, Protocol

from attrs import evolve

from torc_framework.models.exits import ExitObservation, ExitVerdict, signal_name
from torc_framework.models.records import ResultRecord
from torc_framework.models.resources import format_duration, format_memory
from torc_framework.models.result_observations import exit_class_of

_SHOWN_OTHERWISE: Final = frozenset(
    {"peak_memory_bytes", "memory_limit_bytes", "runtime_limit_s", "scheduler_state", "scheduler_reason"}
)
UNCONFIRMED_CONFIDENCE: Final = 0.5
"""Confidence in an ending of which no more than a return code is known."""


class Classifier(Protocol):
    """Who names endings: the plugin manager."""

    def classify(self, observation: ExitObservation) -> ExitVerdict:
        """Name one."""


def verdict_of(result: ResultRecord, judge: Classifier, seen: ExitObservation) -> ExitVerdict:
    """Return what an ending is called: as it was named then; how sure that is, the classifiers of now say.

    A name that they would not give comes from a plugin that is not here: nothing is known of its grounds.
    """
    now = judge.classify(seen)
    if result.exit_class is None:
        return evolve(now, confidence=min(now.confidence, UNCONFIRMED_CONFIDENCE), reason=result.reason or now.reason)
    then = exit_class_of(result)
    if now.exit_class is then:
        return evolve(now, reason=result.reason or now.reason)
    return ExitVerdict(then, result.reason or result.exit_class, UNCONFIRMED_CONFIDENCE)


def evidence_of(seen: ExitObservation, verdict: ExitVerdict) -> list[dict[str, Any]]:
    """Return what was seen that bears on a verdict: what it cites, scheduler's words, usage against limits."""
    found: list[dict[str, Any]] = []
    for name in verdict.evidence:
        if name in _SHOWN_OTHERWISE:
            continue
        value = getattr(seen, name, None)
        shown = ", ".join(value) if isinstance(value, tuple) else value
        if name == "signal" and isinstance(value, int):
            shown = f"{value} ({signal_name(value)})"
        found.append({"kind": "observed", "field": name, "value": _plain(value), "text": f"{name} is {shown}"})
    if seen.scheduler_state is not None:
        words = ": ".join(filter(None, (seen.scheduler_state, seen.scheduler_reason)))
        found.append({"kind": "scheduler", "value": words, "text": f"{seen.executor} said {words}"})
    if seen.peak_memory_bytes is not None:
        found.append(_usage("memory", "peak memory", seen.peak_memory_bytes, seen.memory_limit_bytes, format_memory))
    if seen.runtime_s is not None:
        found.append(_usage("runtime", "run time", seen.runtime_s, seen.runtime_limit_s, _seconds))
    if seen.log_disk_full:
        text = "the disk of its logs was full when it ended: they may lack what it wrote last"
        found.append({"kind": "observed", "field": "log_disk_full", "value": True, "text": text})
    return found


def _usage(kind: str, what: str, used: float, limit: float | None, text: Any) -> dict[str, Any]:
    said = f"{what} {text(used)}"
    if limit:
        said += f" of {text(limit)} asked for ({100 * used / limit:.0f} %)"
    return {"kind": kind, "used": used, "limit": limit, "text": said}


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 60 else format_duration(int(seconds))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
