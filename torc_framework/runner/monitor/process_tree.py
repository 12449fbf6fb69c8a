"""The processes of one attempt, followed from their roots, also after they lost their parents."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from torc_framework.runner.monitor import procfs

SHARING_MATTERS_BYTES: Final = 32 << 20
"""Shared pages are not examined in trees whose summed resident memory is smaller than this."""


class TreeUsage(NamedTuple):
    """Usage of a tree at one moment: CPU seconds since its start, bytes, processes, GPU bytes."""

    cpu_s: float
    memory_bytes: int
    processes: int
    gpu_memory_bytes: int | None


class ProcessTree:
    """All processes below some roots.

    A process that was found once belongs to the tree until it ends, also when its parent has ended and it has become
    the child of another process. A process that begins and loses its parent between two measurements is not found.
    """

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = list(roots)
        self._followed: dict[int, procfs.FollowedProcess] | None = None
        """The processes that the last measurement found, by pid; None before the first one."""
        self._usage: TreeUsage | None = None
        """The last usage, if it holds as long as none of these processes changes."""
        self._peak_files: list[Path] | None = None

    def measure(self, gpu_bytes: Mapping[int, int] | None = None) -> TreeUsage | None:
        """Return the usage of the tree now; None if none of its processes is left.

        Args:
            gpu_bytes: GPU memory by pid; None if that is not known.
        """
        if self._followed is None:
            self._followed = {pid: procfs.FollowedProcess(pid) for pid in self._roots}
        todo = list(self._followed.values())
        changes = [followed.refresh() for followed in todo]
        if self._usage is not None and gpu_bytes is None and not any(changes):
            return self._usage
        live: dict[int, procfs.Process] = {}
        visited: dict[int, procfs.FollowedProcess] = {}
        ticks = 0
        while todo:
            found: list[int] = []
            for followed in todo:
                process = followed.process
                if process is None or followed.pid in visited:
                    continue  # it is gone, or has changed its parent meanwhile
                visited[followed.pid] = followed
                ticks += process.cpu_ticks
                if not process.is_over:
                    live[followed.pid] = process
                    found += followed.children
            todo = [procfs.FollowedProcess(pid) for pid in found if pid not in visited]
            for followed in todo:
                followed.refresh()
        self._followed, self._usage = visited, None
        if not live:
            return None
        resident = sum(process.rss_bytes for process in live.values())
        memory = _memory(live, resident)
        gpu = None if gpu_bytes is None else sum(gpu_bytes.get(pid, 0) for pid in live)
        usage = TreeUsage(ticks / procfs.TICKS_PER_S, memory, len(live), gpu)
        if gpu is None and memory == resident:  # the share in shared pages depends on other processes as well
            self._usage = usage
        return usage

    def cgroup_peak_bytes(self) -> int | None:
        """Return the memory peak of the attempt's own control group; None if it has none.

        It has one if its first process is in another group than the parent of that process. The peak includes cached
        files.
        """
        if self._peak_files is None:
            self._peak_files = self._own_peak_files()
        if not self._peak_files:
            return None
        peaks = [peak for path in self._peak_files if (peak := procfs.read_number(path)) is not None]
        return max(peaks, default=None)

    def _own_peak_files(self) -> list[Path]:
        root = self._roots[0]
        process = procfs.read_process(root)
        own = procfs.peak_files(procfs.cgroup_of(root))
        foreign = procfs.peak_files(procfs.cgroup_of(process.parent)) if process else own
        return [path for path in own if path not in foreign]


def _memory(live: Mapping[int, procfs.Process], resident: int) -> int:
    """Return the memory of processes; shared pages count once where that changes the sum by a tenth or more.

    Args:
        live: The processes by pid.
        resident: The sum of their resident memory, bytes.
    """
    if (
        resident < SHARING_MATTERS_BYTES
        or resident - max(process.rss_bytes for process in live.values()) < resident / 10
    ):
        return resident  # nothing is counted twice, or less than a tenth
    return sum(
        process.rss_bytes if (shared := procfs.proportional_bytes(pid)) is None else shared
        for pid, process in live.items()
    )
