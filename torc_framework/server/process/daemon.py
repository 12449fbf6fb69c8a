"""A server in the background: no terminal, a pid file of its own, and a word to whoever waits until it is up."""

import contextlib
import fcntl
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from torc_framework.errors import ExitStatus, OperatorError, TorcError
from torc_framework.system.private_files import open_private

SYSTEM_PID_FILE: Final = Path("/var/run/torc-server.pid")
"""Pid file of a daemon that root starts without naming one."""


class PidFileError(OperatorError):
    """The pid file belongs to a server that runs, or cannot be written."""


def default_pid_file(log_dir: Path) -> Path:
    """Return the pid file of a daemon that was given none: the system's for root, else one beside the log."""
    return SYSTEM_PID_FILE if os.geteuid() == 0 else log_dir / "torc-server.pid"


@contextlib.contextmanager
def pid_file(path: Path) -> Iterator[int | None]:
    """Hold the pid file while the block runs; yield the pid that a server left behind which did not end cleanly.

    What makes it ours is a lock, which ends with the process however that ends: a pid alone may by
    now be another program's.

    Raises:
        PidFileError: another server holds it, or it cannot be written.
    """
    file = _locked(path)
    try:
        former = os.pread(file, 32, 0).decode("ascii", "replace").strip()
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield int(former) if former.isdecimal() else None
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(file)


def _locked(path: Path) -> int:
    """Return the open pid file, locked; one that was removed meanwhile does not count."""
    while True:
        try:
            file = open_private(path, os.O_RDWR)
        except OSError as error:
            raise PidFileError(
                f"cannot write the pid file {path}: {error.strerror}; name another: --pid-file"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(file, 32, 0).decode("ascii", "replace").strip()
            os.close(file)
            raise PidFileError(f"a server runs already: process {holder or '(starting)'} of pid file {path}") from None
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        os.close(file)


class BackgroundError(OperatorError):
    """The server in the background did not come up; the message is its own."""

    def __init__(self, message: str, exit_status: int) -> None:
        self.exit_status = ExitStatus(exit_status)
        super().__init__(message)


@frozen
class BackgroundServer:
    """A server in the background that answers."""

    pid: int
    port: int


Work = Callable[[Callable[[int], None]], int]
"""Serves, and returns an exit code; calls what it is given with the port as soon as it answers there."""


def start_in_background(work: Work, log: Path) -> BackgroundServer:
    """Run ``work`` in a process without a terminal; return when it is up.

    The process stays in the present folder, so that relative paths go on meaning what they mean.

    Args:
        log: Where a person finds out what the process said later.

    Raises:
        BackgroundError: it did not come up.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if child := os.fork():
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as stream:
            return _heard(stream.read(), log)
    try:
        os.close(reader)
        os.setsid()
        if os.fork() == 0:  # the session's leader ends, so that no terminal can become the server's
            os._exit(_work(work, writer))
    finally:
        os._exit(0)


def _heard(said: bytes, log: Path) -> BackgroundServer:
    """Return what the server said of itself."""
    if not said:
        raise BackgroundError(f"the server ended before it listened; see {log}", ExitStatus.FAILED)
    word = json.loads(said)
    if "error" in word:
        raise BackgroundError(word["error"], word["status"])
    return BackgroundServer(word["pid"], word["port"])


def _work(work: Work, writer: int) -> int:
    """Work as a daemon; return the exit code."""

    def say(**word: Any) -> None:
        nonlocal writer
        if writer >= 0:
            os.write(writer, json.dumps(word).encode())
            os.close(writer)
            writer = -1

    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    try:
        return work(lambda port: say(pid=os.getpid(), port=port))
    except TorcError as error:
        logging.getLogger("torc.server").log(logging.ERROR, "%s", error)
        say(error=str(error), status=int(error.exit_status))
        return int(error.exit_status)
    except BaseException as error:
        logging.getLogger("torc.server").exception("the server failed")
        say(error=f"{type(error).__name__}: {error}", status=int(ExitStatus.FAILED))
        return int(ExitStatus.FAILED)
