"""Repetition of failed requests: which ones may be repeated, and after which pause.

A request is repeated only if that is safe: it was not sent, the server answered that it did not carry it out, or it is
idempotent. The last repetition begins within a given time after the first attempt.
"""

import random
import time
from enum import Enum, auto
from typing import Final

from attrs import frozen

from torc_framework.errors import TorcError

FIRST_PAUSE_S: Final = 0.1
LAST_PAUSE_S: Final = 10.0
"""The pause doubles from `FIRST_PAUSE_S` up to this; the actual one is drawn between half of it and all of it."""


class RetryRule(Enum):
    """Whether a failed request may be repeated."""

    NEVER = auto()
    """No: it would fail again, or the server may still be carrying it out."""
    IF_IDEMPOTENT = auto()
    """If it is idempotent: the server may have carried it out."""
    ALWAYS = auto()
    """Yes: the server did not carry it out."""


REFUSALS: Final = {429: RetryRule.ALWAYS, **dict.fromkeys((502, 503, 504), RetryRule.IF_IDEMPOTENT)}
"""Rule for each status that a repetition may overcome; a response with ``Retry-After`` was not carried out."""


@frozen
class FailedRequest:
    """A failed attempt of a request.

    Attributes:
        error: The error to raise if the request is not repeated.
        cause: The exception that led to it.
        after_s: Seconds that the server asked to wait before a repetition.
    """

    error: TorcError
    retry_rule: RetryRule
    cause: Exception | None = None
    after_s: float = 0.0


class Backoff:
    """The pauses between the attempts of one request.

    Args:
        total_s: Seconds after the first attempt in which another may begin.
    """

    def __init__(self, total_s: float) -> None:
        self._until = time.monotonic() + total_s
        self._pause = FIRST_PAUSE_S

    def pause_before_retry(self, failure: FailedRequest, *, is_idempotent: bool) -> float | None:
        """Return the seconds to wait before the request is repeated; None if it must not be, or the time is over."""
        if failure.retry_rule is RetryRule.NEVER or (
            failure.retry_rule is RetryRule.IF_IDEMPOTENT and not is_idempotent
        ):
            return None
        pause = max(failure.after_s, self._pause * random.uniform(0.5, 1.0))
        self._pause = min(2 * self._pause, LAST_PAUSE_S)
        return pause if time.monotonic() + pause < self._until else None


def retry_after_seconds(header: str) -> float:
    """Return the seconds of a ``Retry-After`` header, which holds a number or a date; 0 for any other text."""
    text = header.strip()
    if text.isdecimal():
        return float(text)
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0
