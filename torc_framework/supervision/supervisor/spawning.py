"""Start of the first process of an attempt, with its log files.

The child opens the files, and they are always new files: a process that an earlier attempt has left keeps its own
open file and cannot write to the log of another attempt.
"""

from __future__ import annotations

import errno
import os
import signal
import stat

LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
SHORTAGE_ERRNOS = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Errors for too many processes or open files, or too little memory, at the moment."""


def spawns_sessions() -> bool:
    """Return whether `os.posix_spawn` can start a session.

    It cannot if Python was built with glibc before 2.26, as distributions of Python for many systems are.
    """
    try:
        os.posix_spawn("", ["none"], {}, setsid=True)
    except NotImplementedError:
        return False
    except OSError:
        return True
    return True


def find_program(name: str) -> str | None:
    """Return the path of a program in the folders of PATH; None if there is none."""
    paths = [os.path.join(folder, name) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)]  # noqa: PTH118 - pathlib is not loaded here
    return next((path for path in paths if os.path.isabs(path) and os.access(path, os.X_OK)), None)  # noqa: PTH117 - as above


class Spawner:
    """Starts processes, each in a session of its own and with the default action for every signal.

    Where Python cannot start sessions, the program ``setsid`` begins them. It does not change the pid.
    """

    def __init__(self) -> None:
        self.ignored = [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]
        """Signals that this process ignores; an exec resets only the others to their default action."""
        self.setsid = spawns_sessions()
        self.program = None if self.setsid else find_program("setsid")

    def spawn(self, arguments: list[str], environment: dict[bytes, bytes], out: str, err: str) -> int:
        """Start a process; return its pid.

        Args:
            arguments: The command line as words.
            environment: Its environment.
            out: Path of the file for standard output; the null device if it is not kept.
            err: Path of the file for standard error, likewise. It may be that of standard output.

        Raises:
            OSError: the process cannot be started; the error names the file or folder that is the cause.
        """
        try:
            return self._spawn_once(arguments, environment, out, err)
        except OSError as error:
            if error.errno in SHORTAGE_ERRNOS:
                raise
        logs = {out, err} - {os.devnull}
        for path in logs:
            prepare_log_path(path)
        try:
            return self._spawn_once(arguments, environment, out, err)
        except OSError as error:
            if error.errno not in SHORTAGE_ERRNOS:
                for path in logs:
                    prepare_log_path(path)
                    # The error of this call names the log; that of the spawn would name the shell.
                    os.close(os.open(path, LOG_FLAGS | os.O_CLOEXEC, 0o666))
            raise

    def _spawn_once(self, arguments: list[str], environment: dict[bytes, bytes], out: str, err: str) -> int:
        actions = [open_action(1, out), (os.POSIX_SPAWN_DUP2, 1, 2) if err == out else open_action(2, err)]
        if self.setsid:
            return os.posix_spawn(
                arguments[0],
                arguments,
                environment,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=self.ignored,
            )
        if self.program is None:
            raise OSError(errno.ENOSYS, "this Python cannot start sessions, and PATH has no program setsid")
        return os.posix_spawn(
            self.program,
            [self.program, *arguments],
            environment,
            file_actions=actions,
            setsigmask=(),
            setsigdef=self.ignored,
        )


def open_action(descriptor: int, path: str) -> tuple:  # type: ignore[type-arg] # `typing` is not loaded here
    """Return the action by which a child opens a new log, or the null device."""
    return os.POSIX_SPAWN_OPEN, descriptor, path, os.O_WRONLY if path == os.devnull else LOG_FLAGS, 0o666


def prepare_log_path(path: str) -> None:
    """Create the folder of a log if it does not exist, and remove an existing file with the log's name.

    Such a file belongs to an attempt with the same numbers before a reset, or of another database. Anything else that
    has the name, such as a device, stays: the start then fails.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - pathlib is not loaded here
    try:
        kind = stat.S_IFMT(os.lstat(path).st_mode)
        if kind in (stat.S_IFREG, stat.S_IFLNK):
            os.unlink(path)  # noqa: PTH108 - pathlib is not loaded here
    except FileNotFoundError:
        return
