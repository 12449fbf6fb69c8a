"""Errors that appear in logs, and the patterns by which their lines are found: one table for all vocabularies."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from torc_framework.models.log_errors import crashes, files, memory, programs, schedulers
from torc_framework.models.log_errors.kinds import LogError, Vocabulary
from torc_framework.models.log_patterns import LogPattern

LOG_ERRORS: Final[Sequence[LogError]] = (
    *memory.ERRORS,
    *schedulers.ERRORS,
    *crashes.ERRORS,
    *files.ERRORS,
    *programs.ERRORS,
)
"""All errors, in the order of the own vocabulary: the most specific first."""


@cache
def log_error_patterns(vocabulary: Vocabulary = Vocabulary.OWN) -> tuple[LogPattern, ...]:
    """Return the patterns of a vocabulary, in the order in which they are tried on a line."""
    if vocabulary is Vocabulary.OWN:
        return tuple(pattern for error in LOG_ERRORS for pattern in error.patterns())
    wordings = (wording for error in LOG_ERRORS for wording in error.wordings if wording.vocabulary is vocabulary)
    return tuple(wording.pattern() for wording in sorted(wordings, key=lambda wording: wording.rank))


__all__ = ["LOG_ERRORS", "LogError", "Vocabulary", "log_error_patterns"]
