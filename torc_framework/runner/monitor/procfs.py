"""Processes as ``/proc`` describes them (proc(5)), read with few system calls.

A walk from a process to its descendants by ``/proc/PID/task/TID/children`` costs the same however
many other processes the machine has; looking for them in the table of all processes does not.
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_CHUNK: Final = 4096


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
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split(maxsplit=22)
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
