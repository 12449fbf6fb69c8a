"""Errors that appear in logs, and the patterns by which their lines are found: the types.

A vocabulary is a set of names and patterns for the lines of logs. This program's own one is used by
``torc logs analyze``. Torc's documentation ("Log Analysis", "Slurm Log Parsing") defines two more, whose names and
severities are those that Torc's tools print; ``torc classify`` answers with these. On one line the first matching
pattern of a vocabulary counts.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from attrs import frozen

from torc_framework.models.log_patterns import LogPattern, Severity


class Vocabulary(Enum):
    """Sets of names and patterns for the lines of logs."""

    OWN = auto()
    """``torc logs analyze`` of this program."""
    TORC_LOGS_ANALYZE = auto()
    """Torc's ``torc logs analyze``."""
    TORC_PARSE_LOGS = auto()
    """Torc's ``torc slurm parse-logs``."""


@frozen
class Wording:
    """A pattern of one of Torc's vocabularies.

    Attributes:
        rank: Its place in the vocabulary, from 1.
        is_exact: Upper and lower case are distinguished.
    """

    vocabulary: Vocabulary
    rank: int
    name: str
    expression: str
    is_exact: bool
    severity: Severity

    def pattern(self) -> LogPattern:
        """Return the compiled pattern."""
        return LogPattern(self.name, re.compile(self.expression, 0 if self.is_exact else re.IGNORECASE), self.severity)


@frozen
class LogError:
    """An error that appears in logs.

    Regular expressions begin with fixed letters where possible: these are found fast in logs of gigabytes.

    Attributes:
        name: Its name in the own vocabulary.
        hint: Advice on what to do.
        any_case: Regular expressions of the own vocabulary that match in upper and lower case.
        exact: Regular expressions of the own vocabulary that distinguish upper and lower case.
        wordings: The patterns of Torc's vocabularies.
    """

    name: str
    severity: Severity
    hint: str
    any_case: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    wordings: tuple[Wording, ...] = ()

    def patterns(self) -> Iterator[LogPattern]:
        """Yield the compiled patterns of the own vocabulary."""
        for expression in self.any_case:
            yield LogPattern(self.name, re.compile(expression, re.IGNORECASE | re.ASCII), self.severity, self.hint)
        for expression in self.exact:
            yield LogPattern(self.name, re.compile(expression), self.severity, self.hint)


def analyze_wording(
    rank: int, name: str, expression: str, *, exact: bool = False, severity: Severity = Severity.ERROR
) -> Wording:
    """Return a pattern of Torc's ``torc logs analyze``."""
    return Wording(Vocabulary.TORC_LOGS_ANALYZE, rank, name, expression, exact, severity)


def parse_wording(
    rank: int, name: str, expression: str, *, exact: bool = False, severity: Severity = Severity.ERROR
) -> Wording:
    """Return a pattern of Torc's ``torc slurm parse-logs``."""
    return Wording(Vocabulary.TORC_PARSE_LOGS, rank, name, expression, exact, severity)


NOT_NONE: Final = r"(?<!\bno )(?<!\b0 )(?<!\bzero )(?<!\bany )(?<!\bwithout )"
"""Begins expressions whose words are harmless after ``no``, ``0`` or ``without``."""
UNLESS_NONE: Final = r"^(?!.{0,200}\b(?:no|none|nothing|0|zero|not|never)\b).{0,200}"
"""Begins expressions whose words are harmless anywhere in a line with ``no``, ``0`` or ``not``."""
