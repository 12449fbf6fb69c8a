"""Reader of the journals of living and dead supervisors; the package `supervisor` describes their records."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torc_framework.supervision import supervisor
from torc_framework.supervision.supervisor import journal_lines

if TYPE_CHECKING:
    from collections.abc import Collection

    from torc_framework.supervision.supervisor import Key

START_SLACK_S = 1.0
"""A process is taken for the recorded one if it started at most this long after the time in the record."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LOG: Final = logging.getLogger("torc_framework.supervision")


class RecordedExit(NamedTuple):
    """End of the first process of an attempt, as the kernel reported it to the supervisor.

    Attributes:
        status: Raw wait status.
        duration_s: Its run time by a monotonic clock.
        peak_kib: Largest resident set. A negative value is an upper bound, because the supervisor's own memory was
            counted in; 0 is unknown.
        cgroup_facts: Counters of control groups; see `supervisor.supervisor.Supervisor.cgroup_facts`.
    """

    status: int
    at: float
    started_at: float
    duration_s: float
    peak_kib: int
    cpu_s: float
    cgroup_facts: dict[str, int]


@dataclass
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


class Journal:
    """The records of one journal file; they can be read while they are appended, and after the file was removed.

    Attributes:
        is_settled: Its supervisor starts no more attempts.
        has_begun: Its supervisor has written the first line.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[Key, JournalEntry] = {}
        self.is_settled = self.has_begun = False
        self._file = path.open("rb", buffering=0)
        self._boot, self._offset = "", 0

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
        if record is None:
            return False
        kind, *words, more = record
        if kind == "H":
            (self._boot,), self.has_begun = words, True
        elif kind == "O":
            self.is_settled = True
        else:
            key = words[0], words[1]
            if kind == "I":
                self.entries[key] = JournalEntry(self._boot)
            elif kind == "W":
                return self.entries.pop(key, None) is not None
            elif (entry := self.entries.get(key)) is None:
                return False
            else:
                _complete(entry, kind, words[2:], more)
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


def _complete(entry: JournalEntry, kind: str, words: list[Any], more: list[Any]) -> None:
    """Add a record of kind S, E or L to the entry of its attempt."""
    if kind == "S":
        entry.pid, entry.boottime, entry.at = words
    elif kind == "E":
        entry.end = RecordedExit._make([*words, dict(more)])
    else:
        entry.at, entry.failure = words[0], " ".join(more)


def journal_path(first: Path, number: int) -> Path:
    """Return the path of the journal with this number of a chain; ``first`` is that of number 1."""
    return first if number == 1 else first.with_suffix(f".{number}{first.suffix}")


def journal_paths(first: Path) -> dict[int, Path]:
    """Return the journals of a chain that exist, by their numbers in ascending order.

    A chain is formed by the journals of all supervisors that followed each other on one first path.
    """
    name = re.compile(rf"{re.escape(first.stem)}(?:\.(\d+))?{re.escape(first.suffix)}")
    matches = [(match, path) for path in folder_entries(first.parent) if (match := name.fullmatch(path.name))]
    return dict(sorted((int(match[1] or 1), path) for match, path in matches))


def open_journals(first: Path, apart: Collection[Path]) -> list[Journal]:
    """Return the journals of a chain that still exist, oldest first, without those of some paths."""
    journals = []
    for path in journal_paths(first).values():
        if path not in apart:
            with suppress(FileNotFoundError):
                journals.append(Journal(path))
    return journals


def folder_entries(folder: Path) -> list[Path]:
    """Return what lies in a folder; nothing if it cannot be read."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []
