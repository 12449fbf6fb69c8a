"""Shared accounting queries: of all runners of a workflow one queries accounting, and the others read the answer.

The runners share a folder. The protocol needs a file system that creates a file for one process only (``O_EXCL``: local
file systems, NFS since version 3, Lustre, GPFS); other kinds of locks are missing on some of them. Each runner has a
file with the steps whose rows it wants. The runner that creates the file ``turn`` queries the steps of all runners,
writes the answer and removes the file. It touches the file while it queries. A runner that sees the file unchanged for
`STALE_TURN_S` of its own clock removes it, because its owner has died. Two runners that query at the same time only
cause one call more. A step whose row is missing stays in its runner's file and is queried again.
"""

import json
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import asdict, define, evolve, field, frozen

STALE_TURN_S: Final = 4.0
"""A turn file that was not touched for this long is removed, seconds."""
TOUCH_S: Final = 1.0
"""How often the querying runner touches its turn file, seconds."""
STALE_WANTS_S: Final = 120.0
"""A file of wanted steps is removed if it is older than the turn file by more than a runner's patience and this time,
seconds; its runner has died."""
MAX_READ_BYTES: Final = 4 * 1024**2
"""Most bytes that are read of a file."""
_TURN_FILE: Final = "turn"
_ANSWER_FILE: Final = "answer.json"
_WANTS_PREFIX: Final = "wants_"


def _numbers(values: Iterable[float]) -> Sequence[float]:
    return tuple(map(float, values))


@frozen
class SharedAnswer:
    """The answer to one query.

    Attributes:
        mark: Identifies this answer.
        asked_at: When accounting was queried within the last minute, by any runner, seconds since the epoch.
        pause_s: How long no runner should query after this answer, seconds.
        trouble: Why the query failed; empty if it succeeded.
        printed: Output of ``sacct``.
    """

    mark: str = field(default="", converter=str)
    asked_at: Sequence[float] = field(default=(), converter=_numbers)
    pause_s: float = field(default=0.0, converter=float)
    trouble: str = field(default="", converter=str)
    printed: str = field(default="", converter=str)


@define
class SharedAccounting:
    """One runner's access to the folder. Every method but `close` may raise OSError if the folder is not usable.

    Attributes:
        folder: The folder; it is made when it is needed.
        owner: Identifies this runner; part of a file name.
        patience_s: How long a runner waits for a row, seconds.
    """

    folder: Path
    owner: str
    patience_s: float
    _wanted: tuple[str, ...] = field(default=(), init=False)
    _mark: str = field(default="", init=False)
    _other_turn: tuple[tuple[int, int], float] | None = field(default=None, init=False)
    _has_turn: bool = field(default=False, init=False)

    def set_wanted(self, steps: Iterable[str]) -> None:
        """Replace this runner's list of wanted steps, which other runners query as well."""
        wanted = tuple(steps)
        if wanted == self._wanted:
            return
        self._write(f"{_WANTS_PREFIX}{self.owner}", "\n".join(wanted))
        self._wanted = wanted

    def new_answer(self) -> SharedAnswer | None:
        """Return the newest answer, or None if it was returned before."""
        answer = self._answer()
        if answer is None or answer.mark == self._mark:
            return None
        self._mark = answer.mark
        return answer

    def take_turn(self) -> bool:
        """Take the turn to query for all runners; return whether that succeeded, as no other runner has it."""
        path = self.folder / _TURN_FILE
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            self._remove_stale_turn(path)
            return False
        self._other_turn, self._has_turn = None, True
        return True

    def _remove_stale_turn(self, path: Path) -> None:
        """Remove another runner's turn file if it was not touched for `STALE_TURN_S`."""
        now = time.monotonic()
        with suppress(FileNotFoundError):
            facts = path.stat()
            mark = (facts.st_ino, facts.st_mtime_ns)
            if self._other_turn is None or self._other_turn[0] != mark:
                self._other_turn = mark, now
            elif now - self._other_turn[1] >= STALE_TURN_S:
                self._other_turn = None
                path.unlink()

    def touch_turn(self) -> None:
        """Touch this runner's turn file, which shows that its query still runs."""
        if self._has_turn:
            with suppress(FileNotFoundError):  # another runner removed it while this process was stopped
                os.utime(self.folder / _TURN_FILE)

    def all_wanted(self, own: Iterable[str]) -> list[str]:
        """Return this runner's steps, then those of all other runners; only within a turn."""
        now = (
            (self.folder / _TURN_FILE).stat().st_mtime
        )  # by the clock of the file system, like the times of the other files
        found = dict.fromkeys(own)
        for entry in os.scandir(self.folder):
            if not entry.name.startswith(_WANTS_PREFIX) or entry.name == f"{_WANTS_PREFIX}{self.owner}":
                continue
            with suppress(FileNotFoundError):
                if now - entry.stat().st_mtime > self.patience_s + STALE_WANTS_S:
                    Path(entry.path).unlink()
                    continue
                found |= dict.fromkeys(filter(_is_step_id, self._read(entry.name).splitlines()))
        return list(found)

    def last_answer(self) -> SharedAnswer:
        """Return the newest answer, or an empty one."""
        return self._answer() or SharedAnswer()

    def end_turn(self, answer: SharedAnswer | None = None) -> None:
        """Write the answer with a mark of its own, and remove the turn file."""
        if not self._has_turn:
            return
        self._has_turn = False
        try:
            if answer is not None:
                self._mark = f"{self.owner} {time.time_ns()}"
                self._write(_ANSWER_FILE, json.dumps(asdict(evolve(answer, mark=self._mark))))
        finally:
            (self.folder / _TURN_FILE).unlink(missing_ok=True)

    def close(self) -> None:
        """End the turn and remove this runner's list of wanted steps; errors are ignored."""
        with suppress(OSError):
            self.end_turn()
            (self.folder / f"{_WANTS_PREFIX}{self.owner}").unlink(missing_ok=True)
            self._wanted = ()

    def _answer(self) -> SharedAnswer | None:
        try:
            return SharedAnswer(**json.loads(self._read(_ANSWER_FILE)))
        except (FileNotFoundError, ValueError, TypeError):  # there is none yet, or the file has another form
            return None

    def _read(self, name: str) -> str:
        descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_READ_BYTES).decode(errors="replace")

    def _write(self, name: str, text: str) -> None:
        """Replace a file as a whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        beside = self.folder / f".{name}.{self.owner}"
        beside.write_text(text, encoding="utf-8")
        beside.replace(self.folder / name)


def _is_step_id(line: str) -> bool:
    job, _, step = line.partition(".")
    return job.isdecimal() and step.isdecimal() and len(line) < 40
