"""Log lines of the server: ``time=... level=... logger=... message="..."`` on stderr."""

import logging
import sys
import time
from typing import Final

LEVELS: Final = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
"""Log levels by the words a person may use."""


class KeyValueFormatter(logging.Formatter):
    """One line per message, as keys and values."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback follows on lines of its own."""
        message = record.getMessage().replace('"', "'")
        stamp = f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z"
        line = f'time={stamp} level={record.levelname.lower()} logger={record.name} message="{message}"'
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure_logging(level: str) -> None:
    """Send log lines of at least this level to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KeyValueFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(LEVELS.get(level.lower(), logging.INFO))
