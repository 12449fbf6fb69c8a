"""Ends that the kernel has told and that are not in the journal yet, in memory that outlives the process."""

import mmap
import struct

CAPACITY = 128
_ENTRY = struct.Struct("qddq")
"""Status, time, seconds since boot, and last the pid: an entry without one is not whole."""


class UnrecordedExits:
    """Shared by both processes: what the supervisor has added and not cleared, the reaper reads after its death."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, CAPACITY * _ENTRY.size)
        self._count = 0

    def add(self, pid: int, status: int, at: float, boottime: float) -> None:
        """Keep the end of a process, before the kernel is told to forget it."""
        if self._count < CAPACITY:
            _ENTRY.pack_into(self._memory, self._count * _ENTRY.size, status, at, boottime, pid)
            self._count += 1

    def clear(self) -> None:
        """Forget all: they are in the journal."""
        self._memory[: self._count * _ENTRY.size] = bytes(self._count * _ENTRY.size)
        self._count = 0

    def read(self) -> dict[int, tuple[int, float, float]]:
        """Return status, time and seconds since boot of each end, by pid."""
        return {pid: (status, at, boottime) for status, at, boottime, pid in _ENTRY.iter_unpack(self._memory) if pid}
