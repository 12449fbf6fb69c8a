"""Detached processes: started in a session of their own, known by a record file, and found again by it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal as signals
import sys
import time
from typing import Any

from torc_ssh.helper import watcher
from torc_ssh.helper.errors import EXISTS, FAILED, INVALID, NOT_FOUND, RefusedRequestError
from torc_ssh.helper.facts import boot_id
from torc_ssh.helper.process_identity import all_processes, descendants, is_same_process, send_signal, signal_number

MOST_STDIN_BYTES = 60_000
"""What fits into a pipe, so that nothing waits for the process to read it."""
START_PATIENCE_S = 30.0
KILL_PATIENCE_S = 5.0
_PAUSE_S = 0.05


def spawn(
    argv: list[str],
    *,
    log: str,
    record: str,
    environment: dict[str, str] | None = None,
    stdin: str | None = None,
    cwd: str = ".",
) -> dict[str, Any]:
    """Start a process in a session of its own, without a terminal; return ``pid``.

    Args:
        argv: The words of the command; the program is searched in the PATH of its environment.
        log: File for its standard output and standard error; one that exists is overwritten.
        record: File that tells which process it is, and later its exit. Folders of both files are made.
        environment: Variables beyond those of the login.
        stdin: Text for its standard input, at most 60,000 bytes.
        cwd: Its working folder.

    Raises:
        RefusedRequestError: the process of the record still runs (kind ``exists``), or it cannot be started.
    """
    if not argv or (stdin is not None and len(os.fsencode(stdin)) > MOST_STDIN_BYTES):
        raise RefusedRequestError(INVALID, "no command, or too much standard input")
    log, record, cwd = os.path.abspath(log), os.path.abspath(record), os.path.abspath(cwd)
    for path in (log, record):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    values = {"boot_id": boot_id(), "argv_sha256": hashlib.sha256("\0".join(argv).encode(errors="replace")).hexdigest()}
    order = {"argv": argv, "environment": environment or {}, "cwd": cwd, "log": log, "stdin": stdin}
    with open(record, "ab") as file:
        os.chmod(record, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)  # of two that start at the same time the second finds the first
        found = _read(record)
        if _is_running(found):
            raise RefusedRequestError(EXISTS, f"process {found['pid']} of {record} still runs")
        try:
            watcher.write_record(record, values)
            return _start_watcher({**order, "record": record, "values": values})
        except BaseException:
            os.unlink(record)
            raise


def _start_watcher(order: dict[str, Any]) -> dict[str, Any]:
    import subprocess

    loader: Any = watcher.__loader__
    program = f"{loader.get_source(watcher.__name__)}\nmain(json.loads({json.dumps(order)!r}))\n"
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-", "torc-watcher"],  # the program is not visible in lists of processes
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(program.encode(), timeout=START_PATIENCE_S)
        answer = json.loads(output)
    except subprocess.TimeoutExpired:
        process.kill()
        raise RefusedRequestError(FAILED, f"the process did not start within {START_PATIENCE_S:.0f} s") from None
    except ValueError:
        last = (errors.decode(errors="replace").strip().splitlines() or [""])[-1]
        raise RefusedRequestError(FAILED, f"the process could not be started: {last}") from None
    if "error" in answer:
        raise RefusedRequestError(FAILED, f"cannot start {order['argv'][0]}: {answer['error']}")
    return dict(answer)


def _read(record: str) -> dict[str, Any]:
    """Return the values of a record, {} if there is none or it is not one."""
    try:
        with open(record, "rb") as file:
            values = json.loads(file.read(2 * watcher.RECORD_BYTES))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def _is_alive(values: dict[str, Any], who: str = "pid") -> bool:
    """Return whether the process of a record lives, or its watcher."""
    pid, start, boot = values.get(who), values.get(f"{who}_start"), values.get("boot_id")
    return isinstance(pid, int) and isinstance(start, int) and is_same_process(pid, start, str(boot))


def _is_running(values: dict[str, Any]) -> bool:
    """Return whether the process of a record runs, or has ended and its watcher is about to record the exit."""
    return "exit_code" not in values and (_is_alive(values) or _is_alive(values, "watcher"))


def process(record: str) -> dict[str, Any]:
    """Return the state of a process, with the values of its record and the host's time as ``now``.

    The state is ``running``; ``ended``, with ``exit_code`` (minus the number of a signal) and ``ended_at``; ``gone`` if
    it no longer runs and no exit is recorded; ``none`` if there is no record.
    """
    values = _read(record)
    if not _is_running(values):
        values = _read(record)  # it may have ended between the two looks
    if not values.get("pid"):
        state = "none"
    elif "exit_code" in values:
        state = "ended"
    else:
        state = "running" if _is_running(values) else "gone"
    return {**values, "state": state, "now": time.time()}


def kill(record: str, signal: str | int) -> int:
    """Send a signal to a process; return how many processes got it.

    It goes to all processes of its session. SIGKILL goes also to all descendants in all sessions, until there
    are none or five seconds have passed; also if the process itself has ended before.

    Raises:
        RefusedRequestError: there is no record.
    """
    values = _read(record)
    if not values.get("pid"):
        raise RefusedRequestError(NOT_FOUND, f"no process is known by {record}")
    number = signal_number(signal)
    if number != signals.SIGKILL:
        return sum(send_signal(pid, number) for pid in _session(values))
    seen: set[int] = set()
    deadline = time.monotonic() + KILL_PATIENCE_S
    while time.monotonic() < deadline:
        pids = _session(values) | _descendants(values)
        if not pids:
            break
        for pid in sorted(pids, key=lambda each: each != values["pid"]):  # first the one whose exit is recorded
            send_signal(pid, number)
        seen |= pids
        time.sleep(_PAUSE_S)
    return len(seen)


def _session(values: dict[str, Any]) -> set[int]:
    if not _is_alive(values):
        return set()
    return {each.pid for each in all_processes() if each.session == values["pid"] and not each.has_ended}


def _descendants(values: dict[str, Any]) -> set[int]:
    roots = [values[who] for who in ("pid", "watcher") if _is_alive(values, who)]
    return {each.pid for root in roots for each in descendants(root) if not each.has_ended}
