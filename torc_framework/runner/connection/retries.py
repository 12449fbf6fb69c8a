"""Calls that a runner repeats before it ends, and how long it waits for retries of jobs."""

import math
import time
from collections.abc import Callable
from typing import Final, TypeVar

from torc_framework.errors import ApiError, ServerUnreachableError

LAST_PATIENCE_S: Final = 10.0
"""How long a runner that was interrupted, or closes its record, repeats a call to an unreachable server."""
RESULT_PATIENCE_S: Final = 60.0
"""How long a runner that has finished repeats its question for the result: a server may be starting again."""
LATE_S: Final = 5.0
"""How long a runner stays after a retry was due; another runner may have claimed it."""
_PAUSE_S: Final = 0.5
_T = TypeVar("_T")


def retry_until_answered(
    call: Callable[[], _T], patience_s: Callable[[str], float] = lambda _trouble: LAST_PATIENCE_S
) -> _T:
    """Make a call, and repeat it for a while if the server does not answer or fails (status 5xx).

    Args:
        call: The call.
        patience_s: Called after each failure with its message; returns for how many seconds after the first call it is
            repeated in all.
    """
    began = time.monotonic()
    while True:
        try:
            return call()
        except (ServerUnreachableError, ApiError) as error:
            if isinstance(error, ApiError) and error.status < 500:
                raise
            if time.monotonic() - began > patience_s(str(error)):
                raise
            time.sleep(_PAUSE_S)


def stay_until(now: float, due_in_s: float | None) -> float:
    """Return until when a runner stays for a retry that is not due yet; minus infinity if there is none."""
    return -math.inf if due_in_s is None else now + due_in_s + LATE_S
