"""Reports of a helper as events. They come from the host: a wrong value must not reach the runner or the server."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from attrs import evolve

from torc_framework.api import AttemptEnded, LauncherEvent
from torc_framework.api.supervision import launcher_event
from torc_ssh.executor.endings import EXECUTOR
from torc_ssh.session import HelperError, clean_text

MOST_NUMBER: Final = 1 << 53
"""Largest value of a number: what JSON and databases keep exactly."""
MOST_FACTS: Final = 20
MOST_STATE_BYTES: Final = 16 << 10


def checked_event(report: Any, clock_offset_s: float) -> LauncherEvent:
    """Return the event that a report stands for.

    Args:
        report: What the host sent.
        clock_offset_s: Added to the times in the report, seconds.

    Raises:
        ValueError: it is no report, or has a number that no report has.
    """
    if not isinstance(report, list) or not all(map(_is_value, report)) or not all(map(_is_id, report[1:3])):
        raise ValueError("it has other values than a report")
    try:
        event = launcher_event(EXECUTOR, report, clock_offset_s)
    except (TypeError, ArithmeticError) as error:
        raise ValueError(str(error)) from None
    if isinstance(event, AttemptEnded) and event.observation.launch_error is not None:
        reason = clean_text(event.observation.launch_error)
        return AttemptEnded(event.key, evolve(event.observation, launch_error=reason))
    return event


def checked_journal(answer: Any) -> tuple[str, dict[str, Any]]:
    """Return the state folder on the host, and what a later launcher needs, from the answer to ``attempts_open``.

    The runner stores the latter in its record on the server.

    Raises:
        HelperError: the answer is not as it has to be.
    """
    folder, state = (answer.get("folder"), answer.get("state")) if isinstance(answer, dict) else (None, None)
    if isinstance(folder, str) and isinstance(state, dict) and isinstance(state.get("journal"), str):
        with suppress(ValueError):  # what is not a number
            if len(json.dumps([folder, state], allow_nan=False)) <= MOST_STATE_BYTES:
                return folder, state
    raise HelperError("invalid", f"the host's answer about its journal is {clean_text(answer)}")


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _is_value(value: Any) -> bool:
    """Return whether a value of a report is text, a number, nothing, or a few named numbers."""
    if isinstance(value, Mapping):
        return len(value) <= MOST_FACTS and all(
            name.isidentifier() and (each is None or (isinstance(each, int) and _is_value(each)))
            for name, each in value.items()
        )
    if isinstance(value, int | float):
        return -MOST_NUMBER <= value <= MOST_NUMBER  # false for what is not a number
    return value is None or isinstance(value, str)
