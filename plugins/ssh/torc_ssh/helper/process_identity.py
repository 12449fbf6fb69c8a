"""Identity of a process: its pid is used again for others, its pid with its start and boot is not."""

from __future__ import annotations

import os
import signal
from typing import Iterator, NamedTuple

from torc_ssh.helper.facts import boot_id


class ProcessState(NamedTuple):
    """What ``/proc/PID/stat`` says of a process (proc(5)).

    Attributes:
        pid: Its pid.
        state: One letter; ``Z`` and ``X`` are processes that have ended.
        parent: Pid of its parent.
        session: Id of its session.
        start: Its start in clock ticks since the boot.
    """

    pid: int
    state: str
    parent: int
    session: int
    start: int

    @property
    def has_ended(self) -> bool:
        """The process has ended, and its parent has not taken note of that yet."""
        return self.state in "ZX"


def process_state(pid: int) -> ProcessState | None:
    """Return the state of a process; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return ProcessState(pid, fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))
    except (OSError, IndexError, ValueError):
        return None


def all_processes() -> Iterator[ProcessState]:
    """Yield the states of all processes."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            found = process_state(int(name))
            if found is not None:
                yield found


def is_same_process(pid: int, start: int, boot: str) -> bool:
    """Return whether the process that had this pid and start in this boot still runs."""
    if pid <= 1 or boot != boot_id():
        return False
    found = process_state(pid)
    return found is not None and found.start == start and not found.has_ended


def send_signal(pid: int, number: int) -> bool:
    """Send a signal to a process; return False if it is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def descendants(root: int) -> list[ProcessState]:
    """Return the processes that a process and its descendants have started, and that still have such a parent."""
    children: dict[int, list[ProcessState]] = {}
    for each in all_processes():
        children.setdefault(each.parent, []).append(each)
    found: list[ProcessState] = []
    parents = [root]
    while parents:
        new = children.pop(parents.pop(), [])
        found += new
        parents += [each.pid for each in new]
    return found


def signal_number(name: str | int) -> int:
    """Return the number of a signal that is given as number or as name, such as ``TERM``.

    Raises:
        ValueError: there is no such signal.
    """
    if isinstance(name, int):
        return int(signal.Signals(name))
    try:
        return int(signal.Signals["SIG" + name.upper().replace("SIG", "", 1)])
    except KeyError:
        raise ValueError(f"no signal: {name}") from None
