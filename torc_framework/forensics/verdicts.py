"""Verdicts on stored results, with their confidence and evidence."""

from collections.abc import Iterator
from typing import Any, Final, Literal, Protocol

from attrs import evolve

from torc_framework.models.exits import ExitObservation, ExitVerdict, signal_name
from torc_framework.models.records import ResultRecord
from torc_framework.models.result_observations import exit_class_of
from torc_framework.models.stdio import Stdio
from torc_framework.text.quantities import duration_text, percent_text, size_text

_SHOWN_OTHERWISE: Final = frozenset(
    {"peak_memory_bytes", "memory_limit_bytes", "runtime_limit_s", "scheduler_state", "scheduler_reason"}
)
UNCONFIRMED_CONFIDENCE: Final = 0.5
"""Confidence in a verdict that the present classifiers do not confirm."""


class Classifier(Protocol):
    """The part of the plugin manager that classifies endings."""

    def classify(self, observation: ExitObservation) -> ExitVerdict:
        """Return the verdict on an ending."""


def verdict_of(result: ResultRecord, judge: Classifier, observation: ExitObservation) -> ExitVerdict:
    """Return the verdict on a stored result: its stored exit class, with the confidence of the present classifiers.

    If these give another class, the stored one comes from a plugin that is not installed here, so that its evidence is
    unknown and its confidence is `UNCONFIRMED_CONFIDENCE`.
    """
    now = judge.classify(observation)
    if result.exit_class is None:
        return evolve(now, confidence=min(now.confidence, UNCONFIRMED_CONFIDENCE), reason=result.reason or now.reason)
    then = exit_class_of(result)
    if now.exit_class is then:
        return evolve(now, reason=result.reason or now.reason)
    return ExitVerdict(then, result.reason or result.exit_class, UNCONFIRMED_CONFIDENCE)


def evidence_of(observation: ExitObservation, verdict: ExitVerdict) -> list[dict[str, Any]]:
    """Return the evidence for a verdict: cited fields, the scheduler's state, use of memory and time against limits."""
    found: list[dict[str, Any]] = []
    for name in verdict.evidence:
        if name in _SHOWN_OTHERWISE:
            continue
        value = getattr(observation, name, None)
        shown = ", ".join(value) if isinstance(value, tuple) else value
        if name == "signal" and isinstance(value, int):
            shown = f"{value} ({signal_name(value)})"
        found.append({"kind": "observed", "field": name, "value": _plain(value), "text": f"{name} is {shown}"})
    if observation.scheduler_state is not None:
        words = ": ".join(filter(None, (observation.scheduler_state, observation.scheduler_reason)))
        found.append({"kind": "scheduler", "value": words, "text": f"{observation.executor} reported {words}"})
    if observation.peak_memory_bytes is not None:
        found.append(
            _usage("memory", "peak memory", observation.peak_memory_bytes, observation.memory_limit_bytes, size_text)
        )
    if observation.runtime_s is not None:
        found.append(_usage("runtime", "run time", observation.runtime_s, observation.runtime_limit_s, duration_text))
    if observation.log_disk_full:
        text = "the disk of its logs was full when it ended: the last lines may be missing"
        found.append({"kind": "observed", "field": "log_disk_full", "value": True, "text": text})
    found += _missing_streams(observation)
    return found


def _missing_streams(observation: ExitObservation) -> Iterator[dict[str, Any]]:
    """Yield which streams of the attempt go to no file."""
    stdio = Stdio(observation.stdio)
    kept: dict[Literal["stdout", "stderr"], bool] = {"stdout": stdio.keeps_stdout, "stderr": stdio.keeps_stderr}
    for stream, is_kept in kept.items():
        if not is_kept:
            yield {"kind": "observed", "field": "stdio", "value": stdio.mode, "text": stdio.not_kept(stream)}


def _usage(kind: str, what: str, used: float, limit: float | None, shown: Any) -> dict[str, Any]:
    text = f"{what} {shown(used)}"
    if limit:
        text += f" of {shown(limit, exact=True)} asked for ({percent_text(100 * used / limit)})"
    return {"kind": kind, "used": used, "limit": limit, "text": text}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
