"""Reads the journal of a shepherd, alive or dead. The records are described in `torc_local.shepherd`."""

import fcntl
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from attrs import define, field

from torc_local import shepherd

Key = tuple[int, int]
START_SLACK_S = 1.0
"""A process counts as the one recorded if it began at most this long after the record's time."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class End(NamedTuple):
    """How an attempt ended, as the kernel told its shepherd.

    Attributes:
        status: Raw wait status.
        peak_kib: Largest resident set; negative is an upper bound: the shepherd's own memory was counted in.
        told: What control groups told; see `torc_local.shepherd.main.Shepherd.facts_of_groups`.
    """

    status: int
    at: float
    started_at: float
    peak_kib: int
    cpu_s: float
    told: Mapping[str, int]


@define
class Entry:
    """What the journal says of one attempt.

    Attributes:
        shepherd: Which of the journal's shepherds began it, from 1; no other can see its end.
        pid: Its process; None while there is only the intent.
        boottime: When that process was begun, in seconds since the boot.
        at: The same, in seconds since the epoch.
        end: How it ended; None before that.
        failure: Why it could not be started.
    """

    boot: str
    shepherd: int
    pid: int | None = None
    boottime: float = 0.0
    at: float = 0.0
    end: End | None = None
    failure: str | None = None

    def is_over(self) -> bool:
        """Say whether its end is recorded."""
        return self.end is not None or self.failure is not None

    def is_alive(self) -> bool:
        """Say whether its process still runs: same boot, same pid, same start."""
        if self.pid is None or self.boot != shepherd.boot_id():
            return False
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return False
        started = int(fields[19]) / _TICKS_PER_S
        return fields[0] not in b"ZX" and -0.02 <= started - self.boottime <= START_SLACK_S


@define
class Journal:
    """The records of one journal file, read as they are appended."""

    path: Path
    entries: dict[Key, Entry] = field(factory=dict)
    orphaned: bool = False
    """The shepherd has said that it begins nothing more."""
    shepherds: int = 0
    """Shepherds that have begun to write it."""
    _boot: str = ""
    _offset: int = 0

    def read(self) -> None:
        """Take in what was appended since the last call; a half-written line waits for its rest."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            self._take(line.split(" "))

    def _take(self, words: list[str]) -> None:
        match words:
            case ["I", job, attempt]:
                self.entries[int(job), int(attempt)] = Entry(self._boot, self.shepherds)
            case ["S", job, attempt, pid, boottime, at]:
                entry = self.entries[int(job), int(attempt)]
                entry.pid, entry.boottime, entry.at = int(pid), float(boottime), float(at)
            case ["E", job, attempt, status, at, began_at, peak, cpu, *facts]:
                told = {name: int(number) for name, _, number in (fact.partition("=") for fact in facts)}
                end = End(int(status), float(at), float(began_at), int(peak), float(cpu), told)
                self.entries[int(job), int(attempt)].end = end
            case ["L", job, attempt, at, *reason]:
                entry = self.entries[int(job), int(attempt)]
                entry.at, entry.failure = float(at), " ".join(reason)
            case ["H", boot]:
                self._boot, self.orphaned = boot, False
                self.shepherds += 1
            case ["O"]:
                self.orphaned = True
            case _:
                pass  # the last words of a shepherd that failed

    def may_yet_tell(self, entry: Entry) -> bool:
        """Say whether the shepherd that began an attempt is alive, so that its end may still be recorded."""
        return self.is_held() and entry.shepherd == self.shepherds

    def is_held(self) -> bool:
        """Say whether the shepherd that writes it is alive."""
        with self.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

    def wait_until_settled(self, patience_s: float) -> bool:
        """Wait until nothing more will be begun: the shepherd is gone or knows that its runner is.

        Returns:
            False when the shepherd did neither in time.
        """
        deadline = time.monotonic() + patience_s
        while True:
            held = self.is_held()
            self.read()
            if self.orphaned or not held:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)

    def last_words(self) -> str:
        """Return what a failed shepherd wrote at last, for a message."""
        lines = self.path.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"
