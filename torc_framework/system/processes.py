"""Begins processes and threads where the system may have no more of them at the moment."""

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
"""Errors that say that there are too many processes or open files at the moment."""
PATIENCE_S: Final = 30.0
"""How long to try, seconds."""
NO_THREAD: Final = "can't start new thread"
"""What Python says where the system has no more threads; it has no exception of its own for that."""
PAUSE_S: Final = 0.2
FIX: Final = "raise the limit on processes (ulimit -u, pids.max of the control group), or end other programs"


def start_process_with_retry(begin: Callable[[], _T], patience_s: float = PATIENCE_S) -> _T:
    """Begin a process, again and again while the system has none left; says once that it waits.

    Raises:
        OSError: it cannot be begun for another reason, or not within ``patience_s`` seconds; then it says what helps.
    """
    deadline, is_told = time.monotonic() + patience_s, False
    while True:
        try:
            return begin()
        except OSError as error:
            if error.errno not in SHORTAGES:
                raise
            if time.monotonic() > deadline:
                raise OSError(error.errno, f"{error.strerror} for {patience_s:.0f} s; {FIX}") from None
            if not is_told:
                _LOG.warning("event=process_waits reason=%r", error.strerror)
                is_told = True
        time.sleep(PAUSE_S)


def start_thread_with_retry(thread: threading.Thread, patience_s: float = PATIENCE_S) -> None:
    """Start a thread, again and again while the system has none left.

    Raises:
        ConfigError: it cannot be started within ``patience_s`` seconds.
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
