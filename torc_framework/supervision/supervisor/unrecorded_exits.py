"""Ends of processes that are not in the journal yet, in shared memory that survives the supervisor."""

from __future__ import annotations

import mmap
import struct

CAPACITY = 128
_ENTRY = struct.Struct("qddq")
"""Status, time, seconds since boot and pid. The pid is written last; an entry without a pid is incomplete."""


class UnrecordedExits:
    """Ends in memory shared by supervisor and reaper; after the supervisor's death the reaper reads what is left."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, CAPACITY * _ENTRY.size)
        self._count = 0

    def add(self, pid: int, status: int, at: float, boottime: float) -> None:
        """Store the end of a process, before `wait4` removes it from the kernel."""
        if self._count < CAPACITY:
            _ENTRY.pack_into(self._memory, self._count * _ENTRY.size, status, at, boottime, pid)
            self._count += 1

    def clear(self) -> None:
        """Remove all ends: they are in the journal."""
        if self._count:
            self._memory[: self._count * _ENTRY.size] = bytes(self._count * _ENTRY.size)
            self._count = 0

    def read(self) -> dict[int, tuple[int, float, float]]:
        """Return status, time and seconds since boot of each end, by pid."""
        return {pid: (status, at, boottime) for status, at, boottime, pid in _ENTRY.iter_unpack(self._memory) if pid}
