"""Files by which the runners of a workflow ask accounting together: one asks for all, and the others read its answer.

They stand in a folder that the runners share, on any file system that creates a file for one process only (``O_EXCL``:
local ones, NFS since version 3, Lustre, GPFS); locks of other kinds are missing on some. Per runner there is a file
with the steps whose rows it wants. The runner that creates the file ``turn`` asks for all of these, writes the answer
and removes the file. It touches the file while it asks: one that stays the same for `STALE_TURN_S` on the clock of the
process that looks was left by a runner that died, and is removed. Two runners that ask at the same time cost one call
more, and nothing else; a step whose row does not come stays in its runner's file and is asked for again.
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
"""A turn that was not touched for so long is over, seconds."""
TOUCH_S: Final = 1.0
"""How often the runner that asks touches its turn, seconds."""
STALE_WANTS_S: Final = 120.0
"""A list of wants that is so much older than the turn, beyond what its runner waits for rows, was left by a runner
that died; seconds."""
MAX_READ_BYTES: Final = 4 * 1024**2
"""More of a file is never read."""
_TURN_FILE: Final = "turn"
_ANSWER_FILE: Final = "answer.json"
_WANTS_PREFIX: Final = "wants_"


def _numbers(values: Iterable[float]) -> Sequence[float]:
    return tuple(map(float, values))


@frozen
class SharedAnswer:
    """What a runner was answered.

    Attributes:
        mark: Another with each answer.
        asked_at: When accounting was asked within the last minute, by any of the runners, seconds since the epoch.
        pause_s: How long accounting is to be left alone from now on, seconds.
        trouble: Why there was no answer; "" if there was one.
        printed: What the program printed.
    """

    mark: str = field(default="", converter=str)
    asked_at: Sequence[float] = field(default=(), converter=_numbers)
    pause_s: float = field(default=0.0, converter=float)
    trouble: str = field(default="", converter=str)
    printed: str = field(default="", converter=str)


@define
class SharedAccounting:
    """One runner's view of the folder. Every method may raise OSError: the folder is not usable then.

    Attributes:
        folder: The folder; it is made when it is needed.
        owner: What tells this runner from all others, part of a file name.
        patience_s: How long a runner waits for a row, seconds.
    """

    folder: Path
    owner: str
    patience_s: float
    _wants: tuple[str, ...] = field(default=(), init=False)
    _mark: str = field(default="", init=False)
    _other_turn: tuple[tuple[int, int], float] | None = field(default=None, init=False)
    _has_turn: bool = field(default=False, init=False)

    def want(self, steps: Iterable[str]) -> None:
        """Let others ask for these steps, too, and no longer for those named before."""
        wants = tuple(steps)
        if wants == self._wants:
            return
        self._write(f"{_WANTS_PREFIX}{self.owner}", "\n".join(wants))
        self._wants = wants

    def new_answer(self) -> SharedAnswer | None:
        """Return the newest answer if it is another than last time."""
        answer = self._answer()
        if answer is None or answer.mark == self._mark:
            return None
        self._mark = answer.mark
        return answer

    def take_turn(self) -> bool:
        """Begin to ask for all; say whether no other runner does."""
        path = self.folder / _TURN_FILE
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            self._look_at_turn(path)
            return False
        self._other_turn, self._has_turn = None, True
        return True

    def _look_at_turn(self, path: Path) -> None:
        """Remove another runner's turn if it was not touched for too long."""
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
        """Say that this runner still asks."""
        if self._has_turn:
            with suppress(FileNotFoundError):  # it was removed while this process was stopped
                os.utime(self.folder / _TURN_FILE)

    def wants_of(self, own: Iterable[str]) -> list[str]:
        """Return this runner's steps, and after them those of all others; only within a turn."""
        now = (self.folder / _TURN_FILE).stat().st_mtime  # by the clock that the other files' times are of
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
        """Return the newest answer; an empty one if there is none."""
        return self._answer() or SharedAnswer()

    def end_turn(self, answer: SharedAnswer | None = None) -> None:
        """Write what was answered, with a mark of its own, and let others ask."""
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
        """Want nothing any more."""
        with suppress(OSError):
            self.end_turn()
            (self.folder / f"{_WANTS_PREFIX}{self.owner}").unlink(missing_ok=True)
            self._wants = ()

    def _answer(self) -> SharedAnswer | None:
        try:
            return SharedAnswer(**json.loads(self._read(_ANSWER_FILE)))
        except (FileNotFoundError, ValueError, TypeError):  # none yet, or not one of ours
            return None

    def _read(self, name: str) -> str:
        descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
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
