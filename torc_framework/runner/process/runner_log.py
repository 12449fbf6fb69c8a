"""The runner's log: one event per line, as ``key=value`` pairs; events of jobs begin with Torc's words."""

import logging
import threading
from pathlib import Path
from typing import Any, ClassVar, Final

from torc_framework.models.exchange import EndedReport

_ROOT: Final = logging.getLogger("torc_framework")
_LOG: Final = logging.getLogger("torc_framework.runner")
_FORMAT: Final = "%(asctime)s.%(msecs)03d level=%(levelname)s %(message)s"
_LEVELS: Final = {name.lower(): value for name, value in logging.getLevelNamesMapping().items()}

_WORDS: Final = {
    "job_started": "Job started",
    "job_process_completed": "Job process completed",
    "job_completed": "Job completed",
}
"""Beginnings of lines that people search for; others begin with ``event=``."""


def _shown(value: Any) -> str:
    text = str(value)
    return repr(text) if not text.isprintable() or not text or any(mark in text for mark in " =\"'") else text


class RunnerThread(threading.Thread):
    """The thread of one of several runners of a process; what it logs belongs into the log of its runner alone."""


class _LogFile(logging.FileHandler):
    """A log file; a line that cannot be written, as on a full disk, is dropped.

    It leaves out the events of other runners of this process, and what is logged in their threads.
    """

    def __init__(self, path: Path, owner: "RunnerLog") -> None:
        super().__init__(path, encoding="utf-8", delay=True)
        self._owner, self._thread = owner, threading.current_thread()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line belongs into this log."""
        writer = getattr(record, _WRITER, None)
        if writer is not None:
            return writer is self._owner
        thread = threading.current_thread()
        return thread is self._thread or not isinstance(thread, RunnerThread)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Print no traceback; `RunOutcome` and the progress line report the full disk."""


_WRITER: Final = "runner_log"
"""Attribute of the lines that a `RunnerLog` writes itself."""


class RunnerLog:
    """Writes events to the runner's log file, together with what plugins log. It is made in the runner's thread."""

    _open: ClassVar[int] = 0
    """Number of open logs of this process; they share the level, which the last one resets."""
    _former_level: ClassVar[int] = logging.NOTSET
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: Path, level: str) -> None:
        self._handler = _LogFile(path, self)
        self._handler.setFormatter(logging.Formatter(_FORMAT, datefmt="%Y-%m-%dT%H:%M:%S"))
        self._facts: dict[str, Any] = {}
        with RunnerLog._lock:
            if RunnerLog._open == 0:
                RunnerLog._former_level = _ROOT.level
            RunnerLog._open += 1
            _ROOT.setLevel(_LEVELS.get(level.lower(), logging.INFO))
            _ROOT.addHandler(self._handler)

    def about(self, **facts: Any) -> None:
        """Set the pairs with which every further line begins."""
        self._facts = facts

    def ended(self, report: EndedReport, *, is_start_told: bool) -> None:
        """Log the end of an attempt: of its process and, with class and status, of the job."""
        ids = {"job_id": report.job_id, "attempt_id": report.attempt_id}
        if not is_start_told:
            self.info("job_started", **ids)
        self.info(
            "job_process_completed", **ids, return_code=report.return_code, exec_time_s=round(report.exec_time_s, 3)
        )
        self.info("job_completed", **ids, status=report.status, exit_class=report.exit_class, reason=report.reason)

    def info(self, event: str, **values: Any) -> None:
        """Log an ordinary event."""
        self._write(logging.INFO, event, values)

    def warning(self, event: str, **values: Any) -> None:
        """Log an event that a person should look at."""
        self._write(logging.WARNING, event, values)

    def _write(self, level: int, event: str, values: dict[str, Any]) -> None:
        if not _LOG.isEnabledFor(level):
            return
        pairs = (self._facts | values).items()
        text = " ".join(f"{key}={_shown(value)}" for key, value in pairs if value is not None)
        _LOG.log(level, "%s %s", _WORDS.get(event, f"event={event}"), text, extra={_WRITER: self})

    def close(self) -> None:
        """Close the file."""
        with RunnerLog._lock:
            _ROOT.removeHandler(self._handler)
            RunnerLog._open -= 1
            if RunnerLog._open == 0:
                _ROOT.setLevel(RunnerLog._former_level)
        self._handler.close()
