"""The program that starts a detached process, is its parent, and writes its exit into its record.

`torc_ssh.helper.detached` starts it as a process of its own from this source; it imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

RECORD_BYTES = 4096
"""Size of a record: it is written whole at first, so that a disk that is full later does not lose the exit."""
_PR_SET_CHILD_SUBREAPER = 36


def write_record(path: str, values: dict[str, Any]) -> None:
    """Write a record over the one that is there."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(fd, json.dumps(values).encode().ljust(RECORD_BYTES - 1) + b"\n", 0)
    finally:
        os.close(fd)


def _start_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def _become_subreaper() -> None:
    """Become the parent of descendants whose parents end, so that they can be found."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # they are not found then


def _start(order: dict[str, Any]) -> tuple[int, str]:
    """Start the process; return its pid, and "" or why it could not be started."""
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    failure, failure_write = os.pipe()
    text = order["stdin"]
    source, source_write = (os.open(os.devnull, os.O_RDONLY), -1) if text is None else os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            for theirs, fd in ((source, 0), (log, 1), (log, 2)):
                os.dup2(theirs, fd)
            os.chdir(order["cwd"])
            os.execvpe(order["argv"][0], order["argv"], {**os.environ, **order["environment"]})
        except BaseException as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            os.write(failure_write, str(reason).encode())
        finally:
            os._exit(127)
    os.close(failure_write)
    os.close(source)
    found = os.read(failure, 4096)  # ends when the program begins; a failure is written at once
    os.close(failure)
    if source_write >= 0:
        try:
            os.write(source_write, os.fsencode(text))  # it fits into the pipe
        except BrokenPipeError:
            pass  # the program has ended or closed its input
        os.close(source_write)
    return pid, found.decode(errors="replace")


def main(order: dict[str, Any]) -> None:
    """Start a process, report that on standard output, and wait for all descendants.

    Args:
        order: ``argv``, ``environment``, ``cwd``, ``log``, ``stdin`` (text or None), ``record``, and ``values`` that
            the record contains besides.
    """
    if os.fork():
        os._exit(0)  # the helper does not have to wait for this process
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _become_subreaper()
    values = order["values"]
    try:
        pid, reason = _start(order)
        if not reason:
            values.update(pid=pid, pid_start=_start_of(pid), started_at=time.time())
            values.update(watcher=os.getpid(), watcher_start=_start_of(os.getpid()))
            write_record(order["record"], values)
    except OSError as error:
        pid, reason = 0, f"{error.strerror}: {error.filename}"
    sys.stdout.write(json.dumps({"error": reason} if reason else {"pid": pid}))
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    if not reason:
        _wait(pid, order["record"], values)


def _wait(pid: int, record: str, values: dict[str, Any]) -> None:
    while True:
        try:
            ended, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return
        if ended == pid:
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            values.update(exit_code=code, ended_at=time.time())
            write_record(record, values)
