"""Starts of threads that are repeated while the system's limit on processes is reached."""

import errno
import threading
from typing import Final

from torc_framework.errors import ConfigError
from torc_framework.supervision.processes import PATIENCE_S, SHORTAGE_ADVICE, start_process_with_retry

NO_THREAD_MESSAGE: Final = "can't start new thread"
"""Text of CPython's RuntimeError for a thread that the system could not start; it has no class of its own."""
__all__ = ["NO_THREAD_MESSAGE", "SHORTAGE_ADVICE", "start_process_with_retry", "start_thread_with_retry"]


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
