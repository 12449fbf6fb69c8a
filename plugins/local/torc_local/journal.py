"""Reader of the journals of living and dead supervisors; `torc_local.supervisor` describes their records."""

import fcntl
import glob
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from attrs import define, field

from torc_local import supervisor
from torc_local.supervisor import journal_lines

Key = tuple[int, int]
START_SLACK_S = 1.0
"""A process is taken for the recorded one if it started at most this long after the time in the record."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LOG: Final = logging.getLogger("torc_framework.local")


class RecordedExit(NamedTuple):
    """End of the first process of an attempt, as the kernel reported it to the supervisor.

    Attributes:
        status: Raw wait status.
        duration_s: Its run time by a monotonic clock.
        peak_kib: Largest resident set. A negative value is an upper bound, because the supervisor's own memory was
            counted in; 0 is unknown.
        cgroup_facts: Counters of control groups; see `torc_local.supervisor.supervisor.Supervisor.cgroup_facts`.
    """

    status: int
    at: float
    started_at: float
    duration_s: float
    peak_kib: int
    cpu_s: float
    cgroup_facts: Mapping[str, int]


@define
class JournalEntry:
    """The records of one attempt.

    Attributes:
        boot: Id of the boot of the machine.
        pid: Its first process; None as long as there is only the intent.
        boottime: Start of that process, in seconds since boot.
        at: The same, in seconds since the epoch.
        end: Its end; None before that.
        failure: Why it could not be started; None if it could.
    """

    boot: str
    pid: int | None = None
    boottime: float = 0.0
    at: float = 0.0
    end: RecordedExit | None = None
    failure: str | None = None

    def is_over(self) -> bool:
        """Return whether its end is recorded."""
        return self.end is not None or self.failure is not None

    def is_alive(self) -> bool:
        """Return whether its process still runs: a process with this pid and start, in the same boot."""
        if self.pid is None or self.boot != supervisor.boot_id():
            return False
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return False
        started = int(fields[19]) / _TICKS_PER_S
        return fields[0] not in b"ZX" and -0.02 <= started - self.boottime <= START_SLACK_S


@define
class Journal:
    """The records of one journal file; they can be read while they are appended, and after the file was removed.

    Raises:
        OSError: the file cannot be opened.
    """

    path: Path
    entries: dict[Key, JournalEntry] = field(factory=dict)
    is_settled: bool = False
    """Its supervisor starts no more attempts."""
    has_begun: bool = False
    """Its supervisor has written the first line."""
    _file: BinaryIO = field(init=False, repr=False)
    _boot: str = ""
    _offset: int = 0

    def __attrs_post_init__(self) -> None:
        """Open the file."""
        self._file = self.path.open("rb", buffering=0)

    def read(self) -> None:
        """Read the lines that were appended since the last call; an incomplete line is left for the next call."""
        fd = self._file.fileno()
        text = os.pread(fd, max(0, os.fstat(fd).st_size - self._offset), self._offset)
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.split(b"\n"):
            if line and not self._take(journal_lines.parse(line)):
                _LOG.warning("event=unreadable_journal_line journal=%r line=%r", str(self.path), line[:200])

    def _take(self, record: tuple[Any, ...] | None) -> bool:
        """Apply one record; return False if it does not fit the records before it."""
        match record:
            case ("H", boot, _):
                self._boot, self.has_begun = boot, True
            case ("I", job, attempt, _):
                self.entries[job, attempt] = JournalEntry(self._boot)
            case ("W", job, attempt, _):
                return self.entries.pop((job, attempt), None) is not None
            case ("S" | "E" | "L" as kind, job, attempt, *words, more):
                entry = self.entries.get((job, attempt))
                if entry is None:
                    return False
                match kind:
                    case "S":
                        entry.pid, entry.boottime, entry.at = words
                    case "E":
                        entry.end = RecordedExit._make([*words, dict(more)])
                    case "L":
                        entry.at, entry.failure = words[0], " ".join(more)
            case ("O", _):
                self.is_settled = True
            case _:
                return False
        return True

    def is_held(self) -> bool:
        """Return whether the supervisor that writes it, or its reaper, is alive."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        fcntl.flock(self._file, fcntl.LOCK_UN)
        return False

    def wait_until_settled(self, patience_s: float) -> bool:
        """Wait until the supervisor is gone, or has noticed that its runner is gone and starts no more attempts.

        Returns:
            False if neither happened in time.
        """
        deadline = time.monotonic() + patience_s
        while True:
            held = self.is_held()
            self.read()
            if self.is_settled or not held:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)

    def last_line(self) -> str:
        """Return the last line of a failed supervisor, for a message."""
        fd = self._file.fileno()
        lines = os.pread(fd, os.fstat(fd).st_size, 0).decode(errors="replace").splitlines()
        return lines[-1] if lines else "it is empty"

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def journal_path(first: Path, number: int) -> Path:
    """Return the path of the journal of a runner's supervisor with this number; ``first`` is that of number 1."""
    return first if number == 1 else first.with_suffix(f".{number}{first.suffix}")


def open_journals(first: Path) -> list[Journal]:
    """Return the journals of all supervisors of one runner that still exist, oldest first."""
    paths = first.parent.glob(f"{glob.escape(first.stem)}*{first.suffix}")
    journals = []
    for path in sorted(paths, key=lambda path: (len(path.name), path.name)):
        with suppress(FileNotFoundError):
            journals.append(Journal(path))
    return journals
