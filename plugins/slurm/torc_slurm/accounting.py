"""What accounting knows of steps that have ended: asked for many at once, not too often, and not for ever."""

import logging
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from attrs import define, frozen

from torc_framework.api import AllocationError, parse_memory
from torc_slurm.door import Door, Question, SlurmIllError, SlurmMissingError
from torc_slurm.reactor import Reactor

FIELDS: Final = (
    "JobIDRaw",
    "JobName",
    "State",
    "ExitCode",
    "Reason",
    "NodeList",
    "Start",
    "End",
    "Elapsed",
    "TotalCPU",
    "MaxRSS",
    "MaxVMSize",
    "AllocTRES",
)
"""What is asked of each step (``sacct --helpformat``)."""
FIRST_AFTER_S: Final = 0.25
"""Accounting has the row of a step so long after its end, as a rule."""
REST: Final = 4
"""A call that took so long is followed by a rest of this many times as long."""
USUAL_PER_MINUTE: Final = 10
"""So many calls in the last minute make the next interval twice as long, twice as many thrice: about 20 calls a
minute are made under load, and after a rest the first ones at once."""
MOST_REFUSALS: Final = 3
"""After so many refusals in a row accounting is taken not to be there."""
MOST_STEPS: Final = 500
"""Steps in one question."""
MINUTE_S: Final = 60.0
UNFINISHED: Final = frozenset({"RUNNING", "PENDING", "COMPLETING", "SUSPENDED", "RESIZING", "SIGNALING", "STOPPED"})
"""States of rows that will change."""
_LOG: Final = logging.getLogger("torc_framework.slurm")


@frozen
class Row:
    """What accounting says of one step, by the names of sacct's fields."""

    fields: Mapping[str, str]

    def text(self, name: str) -> str | None:
        """Return a field, None if it is empty or says nothing."""
        value = self.fields.get(name, "").strip()
        return None if value in ("", "Unknown", "None", "None assigned", "N/A") else value

    @property
    def is_final(self) -> bool:
        """It will not change any more."""
        state = self.text("State")
        return state is not None and state.split()[0].rstrip("+").upper() not in UNFINISHED

    @property
    def code_and_signal(self) -> tuple[int, int] | None:
        """The exit code, less 128 where it was as large, and the signal."""
        match = re.fullmatch(r"(\d+):(\d+)", self.text("ExitCode") or "")
        return (int(match[1]), int(match[2])) if match else None

    @property
    def peak_memory_bytes(self) -> int | None:
        """The largest sample of its memory; None if there was none, which accounting writes as 0."""
        match = re.fullmatch(r"(\d+)(?:\.\d+)?([KMGT]?)", self.text("MaxRSS") or "")
        return (parse_memory(match[1] + match[2]) or None) if match else None

    @property
    def cpu_time_s(self) -> float | None:
        """CPU seconds, user and system."""
        return seconds_of(self.text("TotalCPU") or "")

    def time(self, name: str) -> float | None:
        """Return one of its times in seconds since the epoch: whole seconds, told in the zone of this machine."""
        try:
            return time.mktime(time.strptime(self.text(name) or "", "%Y-%m-%dT%H:%M:%S"))
        except (ValueError, OverflowError):
            return None


def seconds_of(text: str) -> float | None:
    """Return the seconds that sacct writes as ``[D-][HH:]MM:SS[.mmm]``; None if it is no such text."""
    match = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)", text)
    if match is None:
        return None
    days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60 + float(match[4])


def rows_of(printed: str) -> dict[str, Row]:
    """Return the rows of steps by ``JOB.STEP``; lines that are none are left out."""
    rows: dict[str, Row] = {}
    for line in printed.splitlines():
        values = line.split("|")
        if len(values) == len(FIELDS) and "." in values[0]:
            rows[values[0]] = Row(dict(zip(FIELDS, values, strict=True)))
    return rows


@define(eq=False)
class _Wanted:
    """A step whose row is wanted, since when and for how long."""

    since: float
    patience_s: float
    tell: Callable[[Row | None, str], None]

    def is_overdue(self, now: float) -> bool:
        return now - self.since >= self.patience_s


class Accountant:
    """Asks accounting for the rows of steps that have ended.

    Args:
        door: The way to Slurm.
        reactor: What it waits with.
        interval_s: Seconds between two questions, at least; more after many of them.
        patience_s: How long a row may be missing.
    """

    def __init__(self, door: Door, reactor: Reactor, interval_s: float, patience_s: float) -> None:
        self._door, self._reactor = door, reactor
        self._interval_s, self._patience_s = interval_s, patience_s
        self._wanted: dict[str, _Wanted] = {}
        self._question: Question | None = None
        self._not_before, self._planned = 0.0, False
        self._asked_at: deque[float] = deque()
        self._closed: str | None = None
        self._trouble, self._refusals = "", 0

    def want(self, step_id: str, tell: Callable[[Row | None, str], None], patience_s: float | None = None) -> None:
        """Let ``tell`` be called with the row of a step, or with None and the reason why there is none."""
        if self._closed is not None:
            tell(None, self._closed)
            return
        patience = self._patience_s if patience_s is None else min(patience_s, self._patience_s)
        self._wanted[step_id] = _Wanted(time.monotonic(), patience, tell)
        self._reactor.after(patience, lambda: self._give_up(time.monotonic()))  # also while a question is under way
        self._plan(FIRST_AFTER_S)

    def _plan(self, seconds: float) -> None:
        """Ask in so many seconds, or as soon afterwards as may be."""
        if self._planned or self._question is not None or not self._wanted:
            return
        self._planned = True
        self._reactor.after(max(seconds, self._not_before - time.monotonic()), self._ask)

    def _ask(self) -> None:
        self._planned = False
        now = time.monotonic()
        ripe = [step for step, each in self._wanted.items() if now - each.since >= FIRST_AFTER_S * 0.9][:MOST_STEPS]
        if not ripe:
            self._plan(FIRST_AFTER_S)
            return
        try:
            question = self._door.begin("sacct", "-nP", f"--format={','.join(FIELDS)}", "-j", ",".join(ripe))
            self._reactor.watch(question.fileno(), self._hear)
        except (AllocationError, OSError) as error:
            self._failed(error, now)
            return
        self._question = question
        self._reactor.after(question.left_s + 0.1, lambda: self._hear() if self._question is question else None)

    def _hear(self) -> None:
        """Take the answer to the question that is under way."""
        question, self._question = self._question, None
        if question is None:
            return
        took_s = question.took_s
        self._reactor.unwatch(question.fileno())
        try:
            printed = question.answer()
        except AllocationError as error:
            self._failed(error, time.monotonic())
            return
        now = time.monotonic()
        self._trouble, self._refusals = "", 0
        self._not_before = now + max(self._interval_now_s(now), REST * took_s)
        for step_id, row in rows_of(printed).items():
            if row.is_final and (wanted := self._wanted.pop(step_id, None)):
                wanted.tell(row, "")
        self._give_up(now)
        self._plan(FIRST_AFTER_S)

    def _interval_now_s(self, now: float) -> float:
        """Return how long to wait after a call, which is noted: the longer, the more calls there were lately."""
        self._asked_at.append(now)
        while now - self._asked_at[0] > MINUTE_S:
            self._asked_at.popleft()
        return self._interval_s * (1 + (len(self._asked_at) - 1) / USUAL_PER_MINUTE)

    def _failed(self, error: Exception, now: float) -> None:
        """Wait for an accounting that is ill, and never ask again one that is not there."""
        self._refusals += not isinstance(error, SlurmIllError)
        if isinstance(error, SlurmMissingError) or self._refusals >= MOST_REFUSALS:
            _LOG.warning("event=no_accounting reason=%r", str(error))
            self._closed = f"there is no accounting: {error}"
            wanted, self._wanted = self._wanted, {}
            for each in wanted.values():
                each.tell(None, self._closed)
            return
        if not self._trouble:
            _LOG.warning("event=accounting_ill reason=%r", str(error))
            self._trouble = str(error)
        self._not_before = now + max(self._interval_s, self._door.breaker.wait_s(now))
        self._give_up(now)
        self._plan(self._interval_s)

    def _give_up(self, now: float) -> None:
        """Do without the rows that have been missing for too long."""
        reason = self._trouble or "accounting had no row in time"
        for step_id in [step for step, each in self._wanted.items() if each.is_overdue(now)]:
            self._wanted.pop(step_id).tell(None, reason)

    def close(self) -> None:
        """Ask no more."""
        if self._question is not None:
            self._reactor.unwatch(self._question.fileno())
            self._question.drop()
            self._question = None
