"""What may be sent again, and when.

A request is sent again only if that can do no harm: it never left, the server said that it did
nothing, or doing it twice is doing it once. All pauses together stay within a bound.
"""

import random
import time
from enum import Enum, auto
from typing import Final

from attrs import frozen

from torc_framework.errors import TorcError

FIRST_PAUSE_S: Final = 0.1
LAST_PAUSE_S: Final = 10.0
"""The pause doubles from the first to the last; each is drawn between half of it and all of it."""


class RetryRule(Enum):
    """Whether a request that failed may be sent again."""

    NEVER = auto()
    """It would fail again, or the server may be at work on it."""
    IF_HARMLESS = auto()
    """It may have been carried out."""
    ALWAYS = auto()
    """It was not carried out."""


REFUSALS: Final = {429: RetryRule.ALWAYS, **dict.fromkeys((502, 503, 504), RetryRule.IF_HARMLESS)}
"""Answers that may be another one a little later; one that says when to come back says that nothing was done."""


@frozen
class FailedRequest:
    """How one attempt to get an answer failed.

    Attributes:
        error: What is raised if it stays so.
        cause: What led to it.
        after_s: The server asked not to come back for so many seconds.
    """

    error: TorcError
    chance: RetryRule
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

    def pause_before_next(self, failure: FailedRequest, *, harmless: bool) -> float | None:
        """Return the seconds to wait before the request is sent again; None: it must not be, or not any more."""
        if failure.chance is RetryRule.NEVER or (failure.chance is RetryRule.IF_HARMLESS and not harmless):
            return None
        pause = max(failure.after_s, self._pause * random.uniform(0.5, 1.0))
        self._pause = min(2 * self._pause, LAST_PAUSE_S)
        return pause if time.monotonic() + pause < self._until else None


def retry_after_seconds(header: str) -> float:
    """Return the seconds that a ``Retry-After`` header asks for: a number or a date; 0 for what is neither."""
    text = header.strip()
    if text.isdecimal():
        return float(text)
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0
