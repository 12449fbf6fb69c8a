"""What accounting knows of steps that have ended: asked for many at once, not too often, and not for ever."""

import logging
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import define, frozen

from torc_framework.api import AllocationError, parse_memory
from torc_slurm.accounting.shared_accounting import TOUCH_S, SharedAccounting, SharedAnswer
from torc_slurm.calls.background_command import BackgroundCommand, run_in_background
from torc_slurm.calls.slurm_commands import SlurmCommands, SlurmNotInstalledError, SlurmUnavailableError
from torc_slurm.processes.reactor import Reactor

SACCT_FIELDS: Final = (
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
ROW_DELAY_S: Final = 0.25
"""Accounting has the row of a step so long after its end, as a rule."""
PAUSE_FACTOR: Final = 4
"""A call that took so long is followed by a rest of this many times as long."""
CALLS_PER_MINUTE: Final = 10
"""So many calls in the last minute, of all runners that share their answers, make the next interval twice as long,
twice as many thrice: about 20 calls a minute are made under load, and after a rest the first ones at once."""
SHARED_POLL_S: Final = 0.5
"""While another runner asks, its answer is looked for so often, seconds."""
UNSHARED_FACTOR: Final = 5
"""A runner that cannot share answers with others leaves intervals this many times as long, one and a half at random."""
MAX_REFUSALS: Final = 3
"""After so many refusals in a row accounting is taken not to be there."""
MAX_STEPS_PER_CALL: Final = 500
"""Steps in one question."""
MINUTE_S: Final = 60.0
UNFINISHED_STATES: Final = frozenset(
    {"RUNNING", "PENDING", "COMPLETING", "SUSPENDED", "RESIZING", "SIGNALING", "STOPPED"}
)
"""States of rows that will change."""
_LOG: Final = logging.getLogger("torc_framework.slurm")


@frozen
class StepRow:
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
        return state is not None and state.split()[0].rstrip("+").upper() not in UNFINISHED_STATES

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
        return parse_sacct_time(self.text("TotalCPU") or "")

    @property
    def elapsed_s(self) -> float | None:
        """Whole seconds from its start to its end, by the controller's clock."""
        return parse_sacct_time(self.text("Elapsed") or "")

    def time(self, name: str) -> float | None:
        """Return one of its times in seconds since the epoch: whole seconds, told in the zone of this machine."""
        try:
            return time.mktime(time.strptime(self.text(name) or "", "%Y-%m-%dT%H:%M:%S"))
        except (ValueError, OverflowError):
            return None


def parse_sacct_time(text: str) -> float | None:
    """Return the seconds that sacct writes as ``[D-][HH:]MM:SS[.mmm]``; None if it is no such text."""
    match = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)", text)
    if match is None:
        return None
    days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60 + float(match[4])


def parse_step_rows(printed: str) -> dict[str, StepRow]:
    """Return the rows of steps by ``JOB.STEP``; lines that are none are left out."""
    rows: dict[str, StepRow] = {}
    for line in printed.splitlines():
        values = line.split("|")
        if len(values) == len(SACCT_FIELDS) and "." in values[0]:
            rows[values[0]] = StepRow(dict(zip(SACCT_FIELDS, values, strict=True)))
    return rows


@define(eq=False)
class _WantedRow:
    """A step whose row is wanted, since when and for how long."""

    since: float
    patience_s: float
    tell: Callable[[StepRow | None, str], None]

    def is_overdue(self, now: float) -> bool:
        return now - self.since >= self.patience_s


class StepAccounting:
    """Asks accounting for the rows of steps that have ended, together with the other runners of the workflow.

    Args:
        door: The way to Slurm.
        reactor: What it waits with.
        interval_s: Seconds between two questions, at least; more after many of them.
        patience_s: How long a row may be missing.
        shared: Where runners share questions and answers; None is nowhere.
    """

    def __init__(
        self,
        door: SlurmCommands,
        reactor: Reactor,
        interval_s: float,
        patience_s: float,
        shared: SharedAccounting | None = None,
    ) -> None:
        self._door, self._reactor, self._shared = door, reactor, shared
        self._interval_s, self._patience_s = interval_s, patience_s
        self._wanted: dict[str, _WantedRow] = {}
        self._pending: BackgroundCommand | None = None
        self._not_before, self._planned = 0.0, False
        self._asked_at: Sequence[float] = ()
        self._closed: str | None = None
        self._trouble, self._refusals = "", 0

    def want(self, step_id: str, tell: Callable[[StepRow | None, str], None], patience_s: float | None = None) -> None:
        """Let ``tell`` be called with the row of a step, or with None and the reason why there is none."""
        if self._closed is not None:
            tell(None, self._closed)
            return
        patience = self._patience_s if patience_s is None else min(patience_s, self._patience_s)
        self._wanted[step_id] = _WantedRow(time.monotonic(), patience, tell)
        self._reactor.after(patience, lambda: self._give_up(time.monotonic()))  # also while a question is under way
        self._plan(ROW_DELAY_S)

    def _plan(self, seconds: float) -> None:
        """Look for an answer, or ask, in so many seconds."""
        if not self._planned and self._pending is None and self._wanted:
            self._planned = True
            self._reactor.after(seconds, self._look)

    def _look(self) -> None:
        """Take what another runner was answered, and ask for the rest if it is time to and no other runner does."""
        self._planned = False
        now = time.monotonic()
        ripe = [step for step, each in self._wanted.items() if now - each.since >= ROW_DELAY_S * 0.9]
        if not ripe:
            self._plan(ROW_DELAY_S)
            return
        if self._shared is not None:
            try:
                shared = self._ask_together(self._shared, now)
            except OSError as error:
                self._go_alone(error)
            else:
                if shared is not None:
                    self._ask(shared)
                return
        if now >= self._not_before:
            self._ask(ripe)
        else:
            self._plan(self._not_before - now)

    def _ask_together(self, shared: SharedAccounting, now: float) -> list[str] | None:
        """Return the steps to ask for in this runner's turn; None if it is not to ask now.

        Raises:
            OSError: the folder cannot be used.
        """
        if (answer := shared.new_answer()) is not None:
            self._trouble = answer.trouble
            rest_s = answer.pause_s - (time.time() - max(answer.asked_at, default=0.0))
            self._not_before = now + min(max(0.0, rest_s), answer.pause_s)
            self._tell(answer.printed)
        if self._wanted and now >= self._not_before and shared.take_turn():
            self._asked_at = shared.last_answer().asked_at
            return shared.wants_of(self._wanted)
        shared.want(self._wanted)
        self._plan(self._not_before - now if now < self._not_before else SHARED_POLL_S)
        return None

    def _ask(self, steps: Sequence[str]) -> None:
        """Begin the question for these steps."""
        command = ("sacct", "-nP", f"--format={','.join(SACCT_FIELDS)}", "-j", ",".join(steps[:MAX_STEPS_PER_CALL]))
        try:
            self._pending = run_in_background(self._door, self._reactor, *command, deliver=self._answered)
        except (AllocationError, OSError) as error:
            self._failed(error, time.monotonic())
            return
        self._keep_turn(self._pending)

    def _keep_turn(self, pending: BackgroundCommand) -> None:
        """Show other runners, while a question is under way, that this one lives."""
        if self._pending is pending and self._shared is not None:
            try:
                self._shared.touch_turn()
            except OSError as error:
                self._go_alone(error)
                return
            self._reactor.after(TOUCH_S, lambda: self._keep_turn(pending))

    def _answered(self, printed: str | None, error: Exception | None) -> None:
        """Take the answer to the question that was under way."""
        now, pending = time.monotonic(), self._pending
        self._pending = None
        if printed is None or pending is None:
            self._failed(error or AllocationError("accounting was not asked"), now)
            return
        self._trouble, self._refusals = "", 0
        pause_s = max(self._interval_now_s(), PAUSE_FACTOR * pending.question.took_s)
        self._not_before = now + pause_s
        self._tell(printed)
        self._share(SharedAnswer(asked_at=self._asked_at, pause_s=pause_s, printed=printed))
        self._give_up(now)
        self._plan(ROW_DELAY_S)

    def _tell(self, printed: str) -> None:
        """Tell of the rows that have come."""
        for step_id, row in parse_step_rows(printed).items():
            if row.is_final and (wanted := self._wanted.pop(step_id, None)):
                wanted.tell(row, "")

    def _interval_now_s(self) -> float:
        """Return how long to wait after a call, which is noted: the longer, the more calls there were lately."""
        now = time.time()
        lately = [at for at in self._asked_at if 0 <= now - at <= MINUTE_S]
        self._asked_at = [*lately, now]
        alone = 1.0 if self._shared is not None else UNSHARED_FACTOR * (1 + random.random() / 2)
        return self._interval_s * alone * (1 + len(lately) / CALLS_PER_MINUTE)

    def _share(self, answer: SharedAnswer | None) -> None:
        """End this runner's turn, if it has one, with an answer for all."""
        if self._shared is not None:
            try:
                self._shared.end_turn(answer)
                self._shared.want(self._wanted)
            except OSError as error:
                self._go_alone(error)

    def _go_alone(self, error: OSError) -> None:
        """Ask for this runner only, and less often."""
        if self._shared is not None:
            _LOG.warning("event=accounting_not_shared folder=%r reason=%r", str(self._shared.folder), str(error))
            self._shared.close()
            self._shared = None

    def _failed(self, error: Exception, now: float) -> None:
        """Wait for an accounting that is ill, and never ask again one that is not there."""
        self._refusals += not isinstance(error, (SlurmUnavailableError, OSError))
        if isinstance(error, SlurmNotInstalledError) or self._refusals >= MAX_REFUSALS:
            _LOG.warning("event=no_accounting reason=%r", str(error))
            self._closed = f"there is no accounting: {error}"
            wanted, self._wanted = self._wanted, {}
            self._share(None)
            for each in wanted.values():
                each.tell(None, self._closed)
            return
        if not self._trouble:
            _LOG.warning("event=accounting_ill reason=%r", str(error))
            self._trouble = str(error)
        pause_s = max(self._interval_now_s(), self._door.breaker.wait_s(now))
        self._not_before = now + pause_s
        self._share(SharedAnswer(asked_at=self._asked_at, pause_s=pause_s, trouble=self._trouble))
        self._give_up(now)
        self._plan(ROW_DELAY_S)

    def _give_up(self, now: float) -> None:
        """Do without the rows that have been missing for too long."""
        reason = self._trouble or "accounting had no row in time"
        overdue = {step: each for step, each in self._wanted.items() if each.is_overdue(now)}
        if not overdue:
            return
        for step_id in overdue:
            del self._wanted[step_id]
        if self._shared is not None:
            try:
                self._shared.want(self._wanted)
            except OSError as error:
                self._go_alone(error)
        for each in overdue.values():
            each.tell(None, reason)

    def close(self) -> None:
        """Ask no more."""
        if self._pending is not None:
            self._pending.drop()
            self._pending = None
        if self._shared is not None:
            self._shared.close()
