"""The server's logging: lines of ``key=value`` pairs or JSON, on standard error and in a file that is rotated by size.

Everything in a line besides its message is passed as fields (`log_fields`), which are the same in both formats.
"""

import json
import logging
import re
import sys
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final, NamedTuple

from torc_framework.errors import ConfigError
from torc_framework.server.settings import LoggingSettings
from torc_framework.system.private_files import make_private_folder, open_private
from torc_framework.text.terminal import cleaned, one_line

LEVELS: Final = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
"""Log level for each word that a setting may hold."""
FILE_NAME: Final = "torc-server.log"
MAX_FILE_BYTES: Final = 10 * 1024 * 1024
"""Size at which the log file is renamed with a number and a new one is begun."""
OLD_FILES: Final = 5
"""Renamed log files that are kept."""
_BARE: Final = re.compile(r"[\w.,:;/@%+*<>()\[\]{}~-]+")
"""Values that are written without quotes."""
_PASSWORD: Final = re.compile(r"(\w://[^/@\s:]*):[^/@\s]*@")


def log_fields(**values: Any) -> dict[str, dict[str, Any]]:
    """Return the ``extra`` of a log call; values that are None are left out."""
    return {"fields": {name: value for name, value in values.items() if value is not None}}


def url_without_password(url: str) -> str:
    """Return a database URL with its password masked and its query removed."""
    return _PASSWORD.sub(r"\1:***@", url.partition("?")[0] if "://" in url else url)


class LogLine(NamedTuple):
    """One of several lines that are logged together (`log_lines`).

    Attributes:
        level: Its level, a number of the module `logging`.
        message: Its message.
        fields: Its further keys and values.
    """

    level: int
    message: str
    fields: Mapping[str, Any]


def log_lines(logger: logging.Logger, lines: Sequence[LogLine]) -> None:
    """Log lines of one moment. Each handler writes them at once, which takes less time than a call for each line."""
    level = max(line.level for line in lines)
    logger.handle(logger.makeRecord(logger.name, level, "", 0, "%d lines", (len(lines),), None, extra={"lines": lines}))


class LineFormatter(logging.Formatter):
    """One line per message, also when a name or a path holds a line break."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, or its lines if it was logged by `log_lines`."""
        at = f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z"
        lines: Sequence[LogLine] | None = getattr(record, "lines", None)
        if lines is None:
            lines = [LogLine(record.levelno, record.getMessage(), getattr(record, "fields", {}))]
        return "\n".join([self.line(record, at, line) for line in lines])

    @abstractmethod
    def line(self, record: logging.LogRecord, at: str, line: LogLine) -> str:
        """Return the text of a line.

        Args:
            record: The record that it belongs to.
            at: The record's time as text.
            line: Level, message and fields.
        """


class KeyValueFormatter(LineFormatter):
    """``key=value`` pairs."""

    def line(self, record: logging.LogRecord, at: str, line: LogLine) -> str:
        """Return the line; a traceback follows on lines of its own."""
        pairs = " ".join([f"{key}={_quoted(value)}" for key, value in line.fields.items()])
        head = f"time={at} level={_level_name(line.level)} logger={record.name} message={_quoted(line.message)}"
        text = one_line(f"{head} {pairs}" if pairs else head)
        return f"{text}\n{cleaned(self.formatException(record.exc_info))}" if record.exc_info else text


class JsonFormatter(LineFormatter):
    """JSON objects with the same keys."""

    def line(self, record: logging.LogRecord, at: str, line: LogLine) -> str:
        """Return the line; a traceback is its ``exception``."""
        head = {"time": at, "level": _level_name(line.level), "logger": record.name, "message": line.message}
        values = {**head, **line.fields}
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        return cleaned(json.dumps(values, default=str, ensure_ascii=False))


def _level_name(level: int) -> str:
    return logging.getLevelName(level).lower()


def _quoted(value: Any) -> str:
    if type(value) is int:
        return str(value)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def configure_logging(level: str, settings: LoggingSettings | None = None, *, on_stderr: bool = True) -> None:
    """Send log lines of at least this level to standard error and to the log file, if one is configured.

    With ``json_logs`` and a log file, the file holds JSON, and standard error holds ``key=value`` pairs.

    Raises:
        ConfigError: the log file cannot be written.
    """
    settings = settings or LoggingSettings()
    machine: LineFormatter = JsonFormatter() if settings.json_logs else KeyValueFormatter()
    handlers: list[logging.Handler] = []
    if on_stderr:
        stream = logging.StreamHandler(sys.stderr)
        stream.setFormatter(machine if settings.log_dir is None else KeyValueFormatter())
        handlers.append(stream)
    if settings.log_dir is not None:
        file = _log_file(settings.log_dir)
        file.setFormatter(machine)
        handlers.append(file)
    root = logging.getLogger()
    root.handlers[:] = handlers
    root.setLevel(LEVELS.get(level, logging.INFO))
    logging.getLogger("uvicorn").setLevel(max(root.level, logging.WARNING))  # its start and end are logged by `serve`


class _PrivateFileHandler(RotatingFileHandler):
    """Creates files that only the server's user may read: they hold names of people, workflows and addresses."""

    def _open(self) -> Any:
        return open(self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors, opener=open_private)


def _log_file(folder: Path) -> logging.Handler:
    path = folder / FILE_NAME
    try:
        if not folder.is_dir():
            make_private_folder(folder)
        return _PrivateFileHandler(path, maxBytes=MAX_FILE_BYTES, backupCount=OLD_FILES, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write the log file {path}: {error.strerror}; see --log-dir") from error
