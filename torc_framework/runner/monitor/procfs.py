"""Processes as ``/proc`` describes them (proc(5)), read with few system calls.

A walk from a process to its descendants by ``/proc/PID/task/TID/children`` costs the same however
many other processes the machine has; looking for them in the table of all processes does not.
"""

import os
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_CHUNK: Final = 4096
KEPT_DESCRIPTORS: Final = 0.5
"""Descriptors of processes stay open while their numbers are below this part of the limit of open files."""


class Process(NamedTuple):
    """One process.

    Attributes:
        parent: Pid of its parent.
        is_over: It has ended and was not reaped.
        cpu_ticks: CPU time of its own and of the children that it waited for.
        threads: How many it has.
        started: Ticks from the boot to its start; with the pid its name among all processes of this boot.
        rss_bytes: Resident memory.
    """

    parent: int
    is_over: bool
    cpu_ticks: int
    threads: int
    started: int
    rss_bytes: int


def _read(path: str) -> bytes:
    """Return the content of a file of /proc; b"" if it is gone or not readable by this user."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        content = chunk = os.read(fd, _CHUNK)
        while len(chunk) == _CHUNK:
            chunk = os.read(fd, _CHUNK)
            content += chunk
    except OSError:
        return b""
    finally:
        os.close(fd)
    return content


def read_process(pid: int) -> Process | None:
    """Return a process, None if there is none of that pid."""
    return _parse_stat(_read(f"/proc/{pid}/stat"))


def _parse_stat(content: bytes) -> Process | None:
    """Return the process of a file ``/proc/PID/stat``; None if that is not whole."""
    fields = content.rpartition(b")")[2].split(maxsplit=22)
    if len(fields) < 22:
        return None
    return Process(
        parent=int(fields[1]),
        is_over=fields[0] in b"ZX",
        cpu_ticks=int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14]),
        threads=int(fields[17]),
        started=int(fields[19]),
        rss_bytes=int(fields[21]) * _PAGE,
    )


def children(pid: int, threads: int = 1) -> list[int]:
    """Return the pids of a process's children."""
    if threads == 1:
        return [int(word) for word in _read(f"/proc/{pid}/task/{pid}/children").split()]
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names alone are enough, and Path.iterdir makes an object of each
    except OSError:
        return []
    return [int(word) for task in tasks for word in _read(f"/proc/{pid}/task/{task}/children").split()]


class FollowedProcess:
    """One process that is read again and again, through descriptors of its files that stay open.

    A descriptor belongs to one process: when that has ended nothing can be read any more, also if another process has
    got its pid. Where too many files are open, the files are opened at each reading, and the start of the process tells
    it from another one.
    """

    __slots__ = ("_children_content", "_children_file", "_content", "_stat_file", "children", "pid", "process")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.process: Process | None = None
        """Its state at the last `refresh`; None if it was gone."""
        self.children: Sequence[int] = ()
        """The pids of its children at the last `refresh`."""
        self._stat_file = _open_kept(f"/proc/{pid}/stat")
        self._children_file = _open_kept(f"/proc/{pid}/task/{pid}/children")
        self._content = b""
        self._children_content: bytes | None = b""
        """What its file of children contained; None if that was not read last, because it had several threads."""

    def __del__(self) -> None:
        for file in (self._stat_file, self._children_file):
            if file >= 0:
                os.close(file)

    def refresh(self) -> bool:
        """Read its present state and its children; return whether either has changed. Only what has is parsed."""
        has_changed = self._refresh_process()
        return self._refresh_children() or has_changed

    def _refresh_process(self) -> bool:
        kept = self._stat_file
        try:
            content = os.pread(kept, _CHUNK, 0) if kept >= 0 else _read(f"/proc/{self.pid}/stat")
        except OSError:
            content = b""
        if content == self._content:
            return False
        process, before = _parse_stat(content), self.process
        if process is not None and before is not None and before.started != process.started:
            process = None  # another one has got its pid
        self._content, self.process = content, process
        return True

    def _refresh_children(self) -> bool:
        if self.process is not None and self.process.threads != 1:
            self._children_content = None
            before, self.children = self.children, children(self.pid, self.process.threads)
            return before != self.children
        kept = self._children_file
        try:
            content = os.pread(kept, _CHUNK, 0) if kept >= 0 else b""
        except OSError:
            content = b""
        if kept < 0 or len(content) == _CHUNK:
            content = _read(f"/proc/{self.pid}/task/{self.pid}/children")
        if content == self._children_content:
            return False
        self._children_content, self.children = content, [int(word) for word in content.split()]
        return True


def _open_kept(path: str) -> int:
    """Return a descriptor of a file that may stay open; -1 if it is gone, or too many files are open."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    if file < resource.getrlimit(resource.RLIMIT_NOFILE)[0] * KEPT_DESCRIPTORS:
        return file
    os.close(file)
    return -1


def proportional_bytes(pid: int) -> int | None:
    """Return a process's proportional memory (PSS): shared pages are divided among their users; None if not readable.

    The kernel visits every page of the process for it, which takes about a millisecond per GiB.
    """
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return None


def cgroup_of(pid: int) -> str:
    """Return the content of ``/proc/PID/cgroup``; "" if the process is gone."""
    return _read(f"/proc/{pid}/cgroup").decode(errors="replace")


def peak_files(cgroups: str) -> list[Path]:
    """Return the possible files with the memory peak of these control groups, for cgroup v1 and v2."""
    found = []
    for line in cgroups.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        inner = path.lstrip("/")
        if "memory" in controllers.split(","):
            found.append(Path("/sys/fs/cgroup/memory", inner, "memory.max_usage_in_bytes"))
        elif not controllers:
            found.append(Path("/sys/fs/cgroup", inner, "memory.peak"))
    return found


def read_number(path: Path) -> int | None:
    """Return the number in a file; None if there is none."""
    try:
        return int(_read(str(path)))
    except ValueError:
        return None
