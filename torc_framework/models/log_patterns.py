"""Patterns of log lines, as plugins define them."""

import re
from enum import StrEnum

from attrs import frozen


class Severity(StrEnum):
    """Severity of a log line."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@frozen
class LogPattern:
    """A named regular expression for lines of job and runner logs; ``hint`` is advice on what to do."""

    name: str
    pattern: re.Pattern[str]
    severity: Severity = Severity.ERROR
    hint: str = ""
