"""Exit actions of OSMO: maps from an action to exit codes.

Sources: NVIDIA OSMO, user guide, "Exit Codes", section "Task Actions"; its workflow specification and the service's
group update for what the guide does not define: the first action in the order of the file applies.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

ACTIONS: Final[Mapping[str, str]] = {"COMPLETE": "COMPLETED", "FAIL": "FAILED", "RESCHEDULE": "RESCHEDULED"}
"""Status after each action."""
_CODES: Final = re.compile(r"[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*")


def exit_action_problems(actions: Any, task: str = "the task") -> list[str]:
    """Return the problems of a map of exit actions; each names task, action and text."""
    if not isinstance(actions, Mapping):
        return [f"exit actions of {task} are {actions!r}; expected a map such as {{RESCHEDULE: '1001'}}"]
    problems = []
    for action, text in actions.items():
        if str(action).upper() not in ACTIONS:
            problems.append(f"exit action {action!r} of {task} is unknown; known: {', '.join(ACTIONS)}")
        if not isinstance(text, (str, int)) or isinstance(text, bool) or not _CODES.fullmatch(str(text)):
            problems.append(
                f"exit action {action} of {task} lists {text!r}; expected codes and ranges such as '0-10,16', no blanks"
            )
    return problems


def ranges_of(text: str | int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a list of codes with inclusive ends; a reversed range covers no code."""
    for part in str(text).split(","):
        low, _, high = part.partition("-")
        yield int(low), int(high or low)


def covers(text: str | int, code: int) -> bool:
    """Return whether a list of codes contains a code."""
    return any(low <= code <= high for low, high in ranges_of(text))


def match_exit_actions(actions: Mapping[str, str | int], code: int) -> str | None:
    """Return the first action, in the order of the map, that lists a code."""
    return next((action.upper() for action, text in actions.items() if covers(text, code)), None)


def overlaps(actions: Mapping[str, str | int]) -> list[str]:
    """Return warnings about codes that two actions list; the first of them applies."""
    seen: list[tuple[str, int, int]] = []
    warnings = []
    for action, text in actions.items():
        for low, high in ranges_of(text):
            for other, low_2, high_2 in seen:
                if other != action and low <= high_2 and low_2 <= high:
                    warnings.append(f"{other} and {action} both list {max(low, low_2)}: {other} gets it")
            seen.append((action, low, high))
    return warnings
