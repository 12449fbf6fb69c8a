"""Logs of named events with values: what code needs that logs for a runner and for commands alike."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class EventLog(Protocol):
    """A log with one line per event; implemented by `torc_framework.runner.process.runner_log.RunnerLog`."""

    def info(self, event: str, **values: Any) -> None:
        """Log an ordinary event."""

    def warning(self, event: str, **values: Any) -> None:
        """Log an event that a person should look at."""


class _NoLog:
    """A log that drops everything."""

    def info(self, event: str, **values: Any) -> None:
        return

    def warning(self, event: str, **values: Any) -> None:
        return


@contextmanager
def muted_log() -> Iterator[EventLog]:
    """Provide a log that drops everything; what the package logs by itself does not reach standard error meanwhile.

    Commands use it that report the troubles of an operation themselves.
    """
    root, handler = logging.getLogger("torc_framework"), logging.NullHandler()
    root.addHandler(handler)  # without any handler, Python prints warnings to standard error
    try:
        yield _NoLog()
    finally:
        root.removeHandler(handler)
