"""Processes of this machine: their starts while the system's limit on processes is reached, and their identity."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from torc_framework.supervision.supervisor.spawning import SHORTAGE_ERRNOS

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
ENDED_STATES: Final = (b"Z", b"X")
"""States of processes that have ended (proc(5), /proc/pid/stat)."""
_LOG: Final = logging.getLogger("torc_framework.supervision")
PATIENCE_S: Final = 30.0
"""Seconds for which a start is repeated."""
PAUSE_S: Final = 0.2
"""Seconds between two attempts."""
SHORTAGE_ADVICE: Final = (
    "raise the limit on processes (ulimit -u, pids.max of the control group), or end other programs"
)


def start_process_with_retry(begin: Callable[[], _T], patience_s: float = PATIENCE_S) -> _T:
    """Start a process; repeat that while the system's limits are reached, and log the first failure.

    Args:
        begin: Starts the process and returns it.
        patience_s: Seconds for which the start is repeated.

    Raises:
        OSError: the process cannot be started for another reason, or not within ``patience_s`` seconds; then the
            message contains a remedy.
    """
    deadline, is_logged = time.monotonic() + patience_s, False
    while True:
        try:
            return begin()
        except OSError as error:
            if error.errno not in SHORTAGE_ERRNOS:
                raise
            if time.monotonic() > deadline:
                raise OSError(error.errno, f"{error.strerror} for {patience_s:.0f} s; {SHORTAGE_ADVICE}") from None
            if not is_logged:
                _LOG.warning("event=process_waits reason=%r", error.strerror)
                is_logged = True
        time.sleep(PAUSE_S)


def process_start(pid: int) -> int | None:
    """Return when a process began, in clock ticks since the boot; None if there is no such process, or it has ended.

    One that has ended is listed until its parent takes notice, which some first processes of containers never do.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return None if fields[0] in ENDED_STATES else int(fields[19])
    except (OSError, IndexError):
        return None
