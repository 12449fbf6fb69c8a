"""Control groups for memory: one for each attempt whose memory the kernel limits, made, read and removed here.

Words of both versions of control groups; the folder of a group says nothing of its version, so both
travel together. A group is a folder of the kernel's: making it is one call, each limit another, and
it can be removed once no process is in it.
"""

import os
import signal

Cgroup = tuple[int, str]
"""Version of control groups, and folder of one."""
KillCounts = tuple[int, int]
"""What `Surroundings.mark` returned."""

JOIN_FILES = {1: "tasks", 2: "cgroup.procs"}
"""A process that writes 0 there is in the group; ``tasks`` takes no lock that all processes of the machine share."""
MEMBERS_FILE = "cgroup.procs"
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
    """Return what a file holds, b"" where there is none."""
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
    """Return how often the kernel killed for lack of memory, None where it does not count (before Linux 4.13)."""
    counts = [line for line in events.splitlines() if line.startswith(_KILLS)]
    return int(counts[0].split()[1]) if counts else None


def create(group: Cgroup, limit_bytes: int) -> None:
    """Make a group that may use so much memory, swap included where the kernel accounts for swap.

    Raises:
        OSError: it cannot be made or limited; nothing is left of it.
    """
    version, folder = group
    os.mkdir(folder)  # noqa: PTH102 - pathlib is not loaded here
    try:
        _write(f"{folder}/{_LIMITS[version]}", str(limit_bytes))
        if os.path.exists(swap := f"{folder}/{_SWAP_LIMITS[version]}"):  # noqa: PTH110
            _write(swap, str(limit_bytes if version == 1 else 0))
    except OSError:
        os.rmdir(folder)  # noqa: PTH106
        raise


def run_inside(group: Cgroup, arguments: list[str]) -> list[str]:
    """Return a shell's arguments changed so that it enters a group before it does anything else."""
    version, folder = group
    shell, *rest = arguments
    entrance = f"{folder}/{JOIN_FILES[version]}".replace("'", "'\\''")
    enter = f"echo 0 >'{entrance}' || exit 126;"
    if rest[0] == "-c":
        return [shell, "-c", enter + rest[1]]
    return [shell, "-c", f'{enter} exec "$0" "$1"', shell, *rest]


def read_counters(group: Cgroup) -> dict[str, int]:
    """Return what the kernel says of a group: ``oom_kills`` and ``peak`` in bytes, each where it is counted."""
    version, folder = group
    peak = _read(f"{folder}/{_PEAKS[version]}").strip()
    found = {"oom_kills": _kills(_read(f"{folder}/{_EVENTS[version]}")), "peak": int(peak) if peak.isdigit() else None}
    return {name: value for name, value in found.items() if value is not None}


def remove(group: Cgroup, home: Cgroup | None, *, kill: bool) -> bool:
    """Remove a group; those who are still in it are killed, or let go on in the group ``home``.

    Returns:
        False when it is still there: some of them have not ended yet, or cannot be moved.
    """
    if _is_removed(group[1]):
        return True
    for pid in _read(f"{group[1]}/{MEMBERS_FILE}").split():
        if int(pid) <= 1:
            continue  # 0 is how the kernel shows a process of another pid namespace; to kill it would be to kill ours
        try:
            if kill:
                os.kill(int(pid), signal.SIGKILL)
            elif home is not None:
                _write(f"{home[1]}/{MEMBERS_FILE}", pid.decode())
        except OSError:
            continue  # it has ended, or is not ours
    return _is_removed(group[1])


def _is_removed(folder: str) -> bool:
    try:
        os.rmdir(folder)  # noqa: PTH106
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


class SharedCgroup:
    """The group that attempts without one of their own share with this process: who was killed in it?

    The kernel counts kills, but does not say whose. So a kill is taken for an attempt's only if it
    happened while that attempt ran, and never for two.
    """

    def __init__(self, home: Cgroup | None) -> None:
        self.fd = -1
        self.claimed = 0
        if home is not None:
            try:
                self.fd = os.open(f"{home[1]}/{_EVENTS[home[0]]}", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return  # the root group of version 2 counts nothing

    def mark(self) -> KillCounts:
        """Return what to compare with later: kills so far, and those of them that are known to be somebody's."""
        return self._count(), self.claimed

    def _count(self) -> int:
        if self.fd < 0:
            return 0
        try:
            return _kills(os.pread(self.fd, 512, 0)) or 0
        except OSError:
            return 0

    def claim(self, since: KillCounts) -> int:
        """Return how many kills since a mark are nobody else's, and take one of them."""
        kills, claimed = self.mark()
        left = kills - since[0] - (claimed - since[1])
        self.claimed += left > 0
        return max(left, 0)
