"""The server as a daemon: it detaches from the terminal, locks a pid file, and reports its port to the command that
started it.
"""

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
"""Pid file of a daemon that root starts without ``--pid-file``."""


class PidFileError(OperatorError):
    """The pid file is locked by a running server, or cannot be written."""


def default_pid_file(log_dir: Path) -> Path:
    """Return the pid file to use without ``--pid-file``: the system's for root, otherwise one beside the log file."""
    return SYSTEM_PID_FILE if os.geteuid() == 0 else log_dir / "torc-server.pid"


@contextlib.contextmanager
def pid_file(path: Path) -> Iterator[int | None]:
    """Lock the pid file while the block runs; yield the pid that a killed server left in it, or None.

    A lock decides which server owns the file, because the kernel releases it when the process ends in any way. The pid
    in the file does not decide: after a crash it may belong to another program.

    Raises:
        PidFileError: another server has locked it, or it cannot be written.
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
    """Return the open and locked pid file; if its owner removed it meanwhile, lock a new one."""
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
    """The daemon did not start; the message is that of its exception."""

    def __init__(self, message: str, exit_status: int) -> None:
        self.exit_status = ExitStatus(exit_status)
        super().__init__(message)


@frozen
class BackgroundServer:
    """A daemon that answers requests."""

    pid: int
    port: int


ServeFunction = Callable[[Callable[[int], None]], int]
"""Runs the server and returns its exit code; calls its argument with the port as soon as requests are answered."""


def start_in_background(serve: ServeFunction, log: Path) -> BackgroundServer:
    """Run ``serve`` in a process without a terminal; return when it answers requests.

    The process keeps the current folder, so that relative paths stay valid.

    Args:
        serve: Runs the server.
        log: The server's log file, for messages.

    Raises:
        BackgroundError: the server ended before it answered.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if child := os.fork():
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as stream:
            return _read_report(stream.read(), log)
    try:
        os.close(reader)
        os.setsid()
        if os.fork() == 0:  # the leader of the session ends, so that the server cannot acquire a terminal
            os._exit(_run_detached(serve, writer))
    finally:
        os._exit(0)


def _read_report(report: bytes, log: Path) -> BackgroundServer:
    """Return the daemon that wrote this report.

    Raises:
        BackgroundError: the report is empty or holds an error.
    """
    if not report:
        raise BackgroundError(f"the server ended before it listened; see {log}", ExitStatus.FAILED)
    facts = json.loads(report)
    if "error" in facts:
        raise BackgroundError(facts["error"], facts["status"])
    return BackgroundServer(facts["pid"], facts["port"])


def _run_detached(serve: ServeFunction, writer: int) -> int:
    """Run the server without a terminal, report its port or its error once, and return the exit code."""

    def send_report(**facts: Any) -> None:
        nonlocal writer
        if writer >= 0:
            os.write(writer, json.dumps(facts).encode())
            os.close(writer)
            writer = -1

    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    try:
        return serve(lambda port: send_report(pid=os.getpid(), port=port))
    except TorcError as error:
        logging.getLogger("torc.server").log(logging.ERROR, "%s", error)
        send_report(error=str(error), status=int(error.exit_status))
        return int(error.exit_status)
    except BaseException as error:
        logging.getLogger("torc.server").exception("the server failed")
        send_report(error=f"{type(error).__name__}: {error}", status=int(ExitStatus.FAILED))
        return int(ExitStatus.FAILED)
