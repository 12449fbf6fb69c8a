"""Start of the first process of an attempt, with its log files.

The child opens the files, and they are always new files: a process that an earlier attempt has left keeps its own
open file and cannot write to the log of another attempt.
"""

from __future__ import annotations

import errno
import os
import signal

LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
SHORTAGE_ERRNOS = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Errors for too many processes or open files, or too little memory, at the moment."""


def ignored_signals() -> list[int]:
    """Return the signals that this process ignores; an exec resets only the others to their default action."""
    return [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]


def spawn(arguments: list[str], environment: dict[bytes, bytes], out: str, err: str, ignored: list[int]) -> int:
    """Start a process in a session of its own; return its pid.

    Args:
        arguments: The command line as words.
        environment: Its environment.
        out: Path of the file for standard output; "" is none.
        err: Path of the file for standard error; "" is that of standard output.
        ignored: Signals whose default action is restored.

    Raises:
        OSError: the process cannot be started; the error names the file or folder that is the cause.
    """
    logs = [path for path in (out, err) if path]
    actions: list[tuple] = [  # type: ignore[type-arg] # `typing` is not loaded here
        (os.POSIX_SPAWN_OPEN, 1, out, LOG_FLAGS, 0o666)
        if out
        else (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, err, LOG_FLAGS, 0o666) if err else (os.POSIX_SPAWN_DUP2, 1, 2),
    ]

    def begin() -> int:
        return os.posix_spawn(
            arguments[0],
            arguments,
            environment,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=ignored,
        )

    try:
        return begin()
    except OSError as error:
        if error.errno in SHORTAGE_ERRNOS:
            raise
        for path in logs:
            prepare_log_path(path)
    try:
        return begin()
    except OSError as error:
        if error.errno not in SHORTAGE_ERRNOS:
            for path in logs:
                prepare_log_path(path)
                # The error of this call names the log; that of the spawn would name the shell.
                os.close(os.open(path, LOG_FLAGS | os.O_CLOEXEC, 0o666))
        raise


def prepare_log_path(path: str) -> None:
    """Create the folder of a log if it does not exist, and remove an existing file with the log's name.

    Such a file belongs to an attempt with the same numbers before a reset, or of another database.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - pathlib is not loaded here
    try:
        os.unlink(path)  # noqa: PTH108 - pathlib is not loaded here
    except FileNotFoundError:
        return
