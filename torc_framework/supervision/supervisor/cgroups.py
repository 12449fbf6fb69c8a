"""Control groups that limit the memory of one attempt each: creation, counters and removal.

The module supports versions 1 and 2 of control groups (Linux, "Control Group v1: Memory Resource Controller" and
"Control Group v2", section Memory). A group is identified by its version and its folder. Its folder is created by one
call and its limits are set by further calls; it can be removed when no process is in it.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    Cgroup = tuple[int, str]
    """Version and folder of a control group."""
    KillCounts = tuple[int, int]
    """What `SharedCgroup.counts` returned."""

JOIN_FILES = {1: "tasks", 2: "cgroup.procs"}
"""File to which a process writes 0 to join the group; ``tasks`` takes no lock that all processes share."""
MEMBERS_FILE = "cgroup.procs"
COMMON_SHELLS = ("sh", "bash", "dash")
_LIMITS = {1: "memory.limit_in_bytes", 2: "memory.max"}
_SWAP_LIMITS = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}
_EVENTS = {1: "memory.oom_control", 2: "memory.events"}
_PEAKS = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}
_KILLS = b"oom_kill "


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _read(path: str) -> bytes:
    """Return the content of a file, b"" if it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _kills(events: bytes) -> int | None:
    """Return the number of OOM kills; None on kernels that do not count them (before Linux 4.13)."""
    counts = [line for line in events.splitlines() if line.startswith(_KILLS)]
    return int(counts[0].split()[1]) if counts else None


def create(group: Cgroup, limit_bytes: int) -> None:
    """Create a group with a memory limit, including swap where the kernel accounts for swap.

    Raises:
        OSError: it cannot be created or limited; it does not exist then.
    """
    version, folder = group
    os.mkdir(folder)  # noqa: PTH102 - pathlib is not loaded here
    try:
        _write(f"{folder}/{_LIMITS[version]}", str(limit_bytes))
        if os.path.exists(swap := f"{folder}/{_SWAP_LIMITS[version]}"):  # noqa: PTH110 - pathlib is not loaded here
            _write(swap, str(limit_bytes if version == 1 else 0))
    except OSError:
        os.rmdir(folder)  # noqa: PTH106 - pathlib is not loaded here
        raise


def run_inside(group: Cgroup, arguments: list[str]) -> list[str]:
    """Return a command line, changed so that its process first joins a group.

    If it is a common shell with a command, that shell does so; otherwise another one does, and then runs it.
    """
    version, folder = group
    entrance = f"{folder}/{JOIN_FILES[version]}".replace("'", "'\\''")
    enter = f"echo 0 >'{entrance}' || exit 126;"
    program, *rest = arguments
    if rest[0] == "-c" and program.rpartition("/")[2] in COMMON_SHELLS:
        return [program, "-c", enter + rest[1], *rest[2:]]
    return ["/bin/sh", "-c", f'{enter} exec "$@"', "torc", *arguments]


def read_counters(group: Cgroup) -> dict[str, int]:
    """Return the kernel's counters of a group: ``oom_kills``, and ``peak`` in bytes, if the kernel has them."""
    version, folder = group
    peak = _read(f"{folder}/{_PEAKS[version]}").strip()
    found = {"oom_kills": _kills(_read(f"{folder}/{_EVENTS[version]}")), "peak": int(peak) if peak.isdigit() else None}
    return {name: value for name, value in found.items() if value is not None}


def remove(group: Cgroup, home: Cgroup | None, *, kill: bool) -> bool:
    """Remove a group after killing the processes in it, or after moving them to the group ``home``.

    Returns:
        False if it still exists: some processes have not ended yet, or cannot be moved.
    """
    if _is_removed(group[1]):
        return True
    for pid in _read(f"{group[1]}/{MEMBERS_FILE}").split():
        if int(pid) <= 1:
            continue  # the kernel shows 0 for a process of another pid namespace; `kill(0)` would hit our own group
        try:
            if kill:
                os.kill(int(pid), signal.SIGKILL)
            elif home is not None:
                _write(f"{home[1]}/{MEMBERS_FILE}", pid.decode())
        except OSError:
            continue  # it has ended, or belongs to another user
    return _is_removed(group[1])


def _is_removed(folder: str) -> bool:
    try:
        os.rmdir(folder)  # noqa: PTH106 - pathlib is not loaded here
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


class SharedCgroup:
    """OOM kills in the group of this process, which attempts without a group of their own share.

    The kernel counts kills without naming the processes. A kill is attributed to an attempt only if it happened while
    that attempt ran, and to one attempt only.
    """

    def __init__(self, home: Cgroup | None) -> None:
        self.fd = -1
        self.claimed = 0
        if home is not None:
            try:
                self.fd = os.open(f"{home[1]}/{_EVENTS[home[0]]}", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return  # the root group of version 2 has no counters

    def counts(self) -> KillCounts:
        """Return the number of kills so far, and of those that were attributed to an attempt."""
        return self._count(), self.claimed

    def _count(self) -> int:
        if self.fd < 0:
            return 0
        try:
            return _kills(os.pread(self.fd, 512, 0)) or 0
        except OSError:
            return 0

    def claim(self, since: KillCounts) -> int:
        """Return the number of kills since earlier counts that are not attributed, and attribute one of them."""
        kills, claimed = self.counts()
        left = kills - since[0] - (claimed - since[1])
        self.claimed += left > 0
        return max(left, 0)
