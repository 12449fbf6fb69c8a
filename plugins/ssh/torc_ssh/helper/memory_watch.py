"""Memory of attempts that the kernel does not hold to their limits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    from torc_framework.api.supervision import SupervisedAttempts

    Key = tuple[int, int]

_PAGE = os.sysconf("SC_PAGE_SIZE")


class MemoryWatch:
    """Measures attempts with a memory limit, and finds those that exceed it.

    Attempts in control groups of their own are left to the kernel.
    """

    def __init__(self) -> None:
        self._limits: dict[Key, int] = {}

    def watch(self, limits: Iterable[tuple[Key, int | None]]) -> None:
        """Watch attempts with these limits in bytes; None is no limit."""
        self._limits.update({key: limit for key, limit in limits if limit is not None})

    def forget(self, key: Key) -> None:
        """Forget an attempt that is over."""
        self._limits.pop(key, None)

    def exceeded(self, attempts: SupervisedAttempts) -> list[tuple[Key, int]]:
        """Return the running attempts that exceed their limits, each with its bytes; each is returned once."""
        if not self._limits:
            return []
        held = set(attempts.memory_limited(self._limits))
        roots = {key: pid for key, pid in attempts.pids(self._limits).items() if key not in held}
        found = [(key, bytes_) for key, bytes_ in memory_of_trees(roots).items() if bytes_ > self._limits[key]]
        for key, _ in found:
            self.forget(key)
        return found


def memory_of_trees(roots: dict[Key, int]) -> dict[Key, int]:
    """Return the memory of the processes below each of these pids, and of those in their sessions, in bytes.

    Shared pages are divided by the number of processes that share them, where the kernel tells that.
    """
    if not roots:
        return {}
    owners = {pid: key for key, pid in roots.items()}
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(name)):
            pid, session = int(name), int(fields[3])
            parents[pid] = session if session in owners and pid != session else int(fields[1])
            resident[pid] = int(fields[21]) * _PAGE
    trees: dict[Key, list[int]] = {key: [] for key in roots}
    for pid in resident:
        above, seen = pid, 0
        while above not in owners and above in parents and seen < len(parents):
            above, seen = parents[above], seen + 1
        if above in owners:
            trees[owners[above]].append(pid)
    return {key: sum(_proportional(pid, resident[pid]) for pid in pids) for key, pids in trees.items()}


def _stat(name: str) -> list[bytes]:
    """Return the fields of /proc/PID/stat after the name of the program, [] if the process is gone or over."""
    try:
        with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
            fields = file.read(4096).rpartition(b")")[2].split()
    except OSError:
        return []
    return fields if len(fields) > 21 and fields[0] not in (b"Z", b"X") else []


def _proportional(pid: int, resident: int) -> int:
    """Return the memory of a process with its part of shared pages; small ones are not examined."""
    if resident < 32 << 20:
        return resident
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb", buffering=0) as file:
            lines = file.read(8192).splitlines()
    except OSError:
        return resident
    sizes: list[Any] = [line.split() for line in lines if line.startswith(b"Pss:")]
    return int(sizes[0][1]) * 1024 if sizes else resident
