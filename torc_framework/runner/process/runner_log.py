"""The runner's log: one event per line, as ``key=value`` pairs; events of jobs begin with Torc's words.

The lines about starts and ends of attempts are most of the log. They are formatted here, and written together by
`RunnerLog.flush`. All other lines go through Python's logging, as those of plugins do.
"""

import contextlib
import logging
import threading
import time
from pathlib import Path
from typing import Any, ClassVar, Final

from torc_framework.models.exchange import EndedReport

_ROOT: Final = logging.getLogger("torc_framework")
_LOG: Final = logging.getLogger("torc_framework.runner")
_FORMAT: Final = "%(asctime)s.%(msecs)03d level=%(levelname)s %(message)s"
_DATE_FORMAT: Final = "%Y-%m-%dT%H:%M:%S"
_LEVELS: Final = {name.lower(): value for name, value in logging.getLevelNamesMapping().items()}


def _shown(value: Any) -> str:
    text = str(value)
    return repr(text) if not text.isprintable() or not text or any(mark in text for mark in " =\"'") else text


def _ids(job_id: int, attempt_id: int) -> str:
    return f" job_id={job_id} attempt_id={attempt_id}"


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

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, after the lines about attempts that came before it."""
        self._owner.flush()
        super().emit(record)

    def write(self, text: str) -> None:
        """Write lines that are already formatted."""
        with contextlib.suppress(OSError):
            if self.stream is None:
                self.stream = self._open()
            self.stream.write(text)
            self.stream.flush()

    def close(self) -> None:
        """Close the file; lines that cannot be written are dropped."""
        with contextlib.suppress(OSError):
            super().close()

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
        self._handler.setFormatter(logging.Formatter(_FORMAT, datefmt=_DATE_FORMAT))
        self._facts: dict[str, Any] = {}
        self._shared_pairs = ""
        self._second, self._time_of_second = -1, ""
        self._lines: list[str] = []
        """Lines about attempts that are not written yet."""
        with RunnerLog._lock:
            if RunnerLog._open == 0:
                RunnerLog._former_level = _ROOT.level
            RunnerLog._open += 1
            _ROOT.setLevel(_LEVELS.get(level.lower(), logging.INFO))
            _ROOT.addHandler(self._handler)

    def about(self, **facts: Any) -> None:
        """Set the pairs with which every further line begins."""
        self._facts = facts
        self._shared_pairs = "".join(f" {key}={_shown(value)}" for key, value in facts.items() if value is not None)

    def started(self, job_id: int, attempt_id: int) -> None:
        """Log the start of an attempt; the line is written by the next `flush`."""
        if _LOG.isEnabledFor(logging.INFO):
            self._lines.append(f"{self._line_head()}Job started{self._shared_pairs}{_ids(job_id, attempt_id)}\n")

    def ended(self, report: EndedReport, *, is_start_told: bool) -> None:
        """Log the end of an attempt, of its process and of the job; the lines are written by the next `flush`."""
        if not _LOG.isEnabledFor(logging.INFO):
            return
        if not is_start_told:
            self.started(report.job_id, report.attempt_id)
        head, about = self._line_head(), f"{self._shared_pairs}{_ids(report.job_id, report.attempt_id)}"
        exit_class = "" if report.exit_class is None else f" exit_class={_shown(report.exit_class)}"
        reason = "" if report.reason is None else f" reason={_shown(report.reason)}"
        self._lines.append(
            f"{head}Job process completed{about} return_code={report.return_code}"
            f" exec_time_s={round(report.exec_time_s, 3)}\n"
            f"{head}Job completed{about} status={report.status}{exit_class}{reason}\n"
        )

    def _line_head(self) -> str:
        """Return time and level of a line, in the form of `_FORMAT`."""
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second, self._time_of_second = second, time.strftime(_DATE_FORMAT, time.localtime(second))
        return f"{self._time_of_second}.{int((now - second) * 1000):03d} level=INFO "

    def flush(self) -> None:
        """Write the lines about attempts that are not written yet."""
        with self._handler.lock or contextlib.nullcontext():
            if self._lines:
                lines, self._lines = self._lines, []
                self._handler.write("".join(lines))

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
        _LOG.log(level, "event=%s %s", event, text, extra={_WRITER: self})

    def close(self) -> None:
        """Close the file."""
        self.flush()
        with RunnerLog._lock:
            _ROOT.removeHandler(self._handler)
            RunnerLog._open -= 1
            if RunnerLog._open == 0:
                _ROOT.setLevel(RunnerLog._former_level)
        self._handler.close()
