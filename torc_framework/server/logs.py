"""Log lines of the server, as ``key=value`` or JSON: on standard error, and in a file that is rotated by size.

What a line tells beside its message is handed over as fields (`log_fields`) and stands as it is in both forms.
"""

import json
import logging
import re
import sys
import time
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final

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
"""Log levels by the words a person may use."""
FILE_NAME: Final = "torc-server.log"
MAX_FILE_BYTES: Final = 10 * 1024 * 1024
"""A log file that would grow beyond this gets a number and makes room for a new one."""
OLD_FILES: Final = 5
_BARE: Final = re.compile(r"[\w.,:;/@%+*<>()\[\]{}~-]+")
"""Values that need no quotes."""
_PASSWORD: Final = re.compile(r"(\w://[^/@\s:]*):[^/@\s]*@")


def log_fields(**values: Any) -> dict[str, dict[str, Any]]:
    """Return the ``extra`` of a log call; values that are None are left out."""
    return {"fields": {name: value for name, value in values.items() if value is not None}}


def url_without_password(url: str) -> str:
    """Return a URL that may be shown."""
    return _PASSWORD.sub(r"\1:***@", url.partition("?")[0] if "://" in url else url)


class LineFormatter(logging.Formatter):
    """One line per message; whatever a name or a path holds, it stays one line."""

    converter = staticmethod(time.gmtime)

    def pairs(self, record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
        """Yield the keys and values of a line."""
        yield "time", f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z"
        yield "level", record.levelname.lower()
        yield "logger", record.name
        yield "message", record.getMessage()
        yield from getattr(record, "fields", {}).items()


class KeyValueFormatter(LineFormatter):
    """``key=value`` pairs."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback follows on lines of its own."""
        line = one_line(" ".join(f"{key}={_quoted(value)}" for key, value in self.pairs(record)))
        return f"{line}\n{cleaned(self.formatException(record.exc_info))}" if record.exc_info else line


class JsonFormatter(LineFormatter):
    """JSON objects with the same keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback is its ``exception``."""
        values = dict(self.pairs(record))
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        return cleaned(json.dumps(values, default=str, ensure_ascii=False))


def _quoted(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def configure_logging(level: str, settings: LoggingSettings | None = None, *, on_stderr: bool = True) -> None:
    """Send log lines of at least this level to standard error and to the log file, if there is one.

    JSON is for programs: with a file it is the file that has it, and standard error is left to people.

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
    logging.getLogger("uvicorn").setLevel(max(root.level, logging.WARNING))  # what it says of itself we say ourselves


class _PrivateFileHandler(RotatingFileHandler):
    """Makes files that only the server's user may read: names of people, workflows and addresses are in them."""

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
