"""Commands as child processes: what a person types for one, its environment, and what it would do, in sentences."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from torc_framework.monitoring.command_table import OfferedCommand
from torc_framework.monitoring.identity import Identity

_OWN_VARIABLES: Final = (
    "TORC_API_URL",
    "TORC_CLIENT__API_URL",
    "TORC_USERNAME",
    "TORC_CLIENT__USERNAME",
    "TORC_PASSWORD",
    "TORC_PASSWORD_FILE",
)
"""Variables that a child gets from the reader's identity, or not at all."""


def command_text(arguments: Sequence[str]) -> str:
    """Return what a person types for a command."""
    return shlex.join(["torc", *arguments])


def child_environment(identity: Identity) -> Mapping[str, str]:
    """Return the environment of a child that uses the server as this user."""
    own = {name: value for name, value in os.environ.items() if name not in _OWN_VARIABLES}
    return {**own, **identity.environment, "NO_COLOR": "1"}


def sentences(impact: Mapping[str, Any], command: OfferedCommand) -> Iterator[str]:
    """Yield what a command would do to a workflow with these numbers, as sentences."""
    from torc_framework.text.quantities import count_text

    live, waiting = impact["live_jobs"], impact["job_counts"].get("ready", 0) + impact["job_counts"].get("blocked", 0)
    if command.name == "delete":
        parts = [
            count_text(impact[name], noun)
            for name, noun in (
                ("jobs", "job"),
                ("results", "result"),
                ("files", "file record"),
                ("user_data", "user data record"),
                ("events", "event"),
            )
            if impact[name]
        ]
        yield f"Deletes {', '.join(parts) or 'the empty workflow'}. The files themselves and logs stay."
    if command.name == "cancel" and waiting:
        yield f"{count_text(waiting, 'job')} that wait will not start."
    if command.name == "reset_status":
        ended = sum(count for label, count in impact["job_counts"].items() if label != "uninitialized")
        yield f"Up to {count_text(ended, 'job')} become uninitialized; their results are kept."
    if live:
        yield f"{count_text(live, 'job')} under way {'is' if live == 1 else 'are'} stopped."
    if impact["queued_allocations"] and command.name in ("delete", "cancel"):
        yield f"{count_text(impact['queued_allocations'], 'allocation')} in the queue are released."
