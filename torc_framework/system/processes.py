"""Starts of processes and threads that are repeated while the system's limit on processes is reached."""

import errno
import logging
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from torc_framework.errors import ConfigError

_T = TypeVar("_T")
_LOG: Final = logging.getLogger("torc_framework.system.processes")
SHORTAGES: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""Error numbers for too many processes or open files, or too little memory, which may pass."""
PATIENCE_S: Final = 30.0
"""Seconds for which a start is repeated."""
NO_THREAD_MESSAGE: Final = "can't start new thread"
"""Text of CPython's RuntimeError for a thread that the system could not start; it has no class of its own."""
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
            if error.errno not in SHORTAGES:
                raise
            if time.monotonic() > deadline:
                raise OSError(error.errno, f"{error.strerror} for {patience_s:.0f} s; {SHORTAGE_ADVICE}") from None
            if not is_logged:
                _LOG.warning("event=process_waits reason=%r", error.strerror)
                is_logged = True
        time.sleep(PAUSE_S)


def start_thread_with_retry(thread: threading.Thread, patience_s: float = PATIENCE_S) -> None:
    """Start a thread; repeat that while the system's limits are reached.

    Raises:
        ConfigError: the thread cannot be started within ``patience_s`` seconds.
    """

    def begin() -> None:
        try:
            thread.start()
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, str(error)) from error

    try:
        start_process_with_retry(begin, patience_s)
    except OSError as error:
        raise ConfigError(error.strerror) from None
