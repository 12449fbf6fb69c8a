"""How long a runner that is about to leave goes on asking."""

import math
import time
from collections.abc import Callable
from typing import Final, TypeVar

from torc_framework.errors import ApiError, ServerUnreachableError

LAST_PATIENCE_S: Final = 10.0
"""How long a runner that leaves, or was interrupted, waits for a lost server."""
LATE_S: Final = 5.0
"""How long a runner stays after a retry was due: another may have taken it."""
_PAUSE_S: Final = 0.5
_T = TypeVar("_T")


def retry_until_answered(call: Callable[[], _T]) -> _T:
    """Return what a call returns, trying again for a while if the server does not answer, or cannot do it now."""
    deadline = time.monotonic() + LAST_PATIENCE_S
    while True:
        try:
            return call()
        except (ServerUnreachableError, ApiError) as error:
            if time.monotonic() > deadline or (isinstance(error, ApiError) and error.status < 500):
                raise
            time.sleep(_PAUSE_S)


def stay_until(now: float, due_in_s: float | None) -> float:
    """Return until when a runner stays for a retry that waits; minus infinity if none does."""
    return -math.inf if due_in_s is None else now + due_in_s + LATE_S
