"""Queries for accounting rows of ended steps: many steps per call, a limited number of calls, limited patience."""

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Final

from attrs import define

from torc_framework.api import AllocationError
from torc_slurm.accounting.shared_accounting import TOUCH_S, SharedAccounting, SharedAnswer
from torc_slurm.accounting.step_rows import SACCT_FIELDS, StepRow, parse_step_rows
from torc_slurm.calls.background_command import BackgroundCommand, run_in_background
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.calls.slurm_errors import SlurmNotInstalledError, SlurmUnavailableError
from torc_slurm.processes.reactor import Reactor

ROW_DELAY_S: Final = 0.25
"""A step's row is first queried this long after its end, when accounting usually has it, seconds."""
PAUSE_FACTOR: Final = 4
"""The pause after a call is at least this many times as long as the call took."""
CALLS_PER_MINUTE: Final = 10
"""The interval between calls is multiplied by ``1 + n / CALLS_PER_MINUTE`` after ``n`` calls within the last minute, by
all runners that share answers. Under load that gives about 20 calls per minute; after a pause the first calls are made
at once."""
SHARED_POLL_S: Final = 0.5
"""How often a runner looks for the answer to another runner's query, seconds."""
UNSHARED_FACTOR: Final = 5
"""The intervals of a runner that cannot share answers are 1 to 1.5 times this factor longer, at random."""
MAX_REFUSALS: Final = 3
"""After this many consecutive refusals the cluster counts as one without accounting."""
MAX_STEPS_PER_CALL: Final = 500
"""Most steps in one call of ``sacct``."""
MINUTE_S: Final = 60.0
_LOG: Final = logging.getLogger("torc_framework.slurm")


OnRow = Callable[[StepRow | None, str], None]
"""Called with a step's row, or with None and the reason why there is none."""


@define(eq=False)
class _WantedRow:
    """A request for one step's row, with its time and its patience."""

    since: float
    patience_s: float
    on_row: OnRow

    def is_overdue(self, now: float) -> bool:
        return now - self.since >= self.patience_s


class StepAccounting:
    """Queries accounting for the rows of ended steps, together with the other runners of the workflow.

    Args:
        slurm: Access to Slurm's programs.
        reactor: Calls this object back.
        interval_s: Shortest time between two calls, seconds; it grows with the number of recent calls.
        patience_s: How long to wait for a row, seconds.
        shared: The folder by which runners share queries and answers; None if this runner queries alone.
    """

    def __init__(
        self,
        slurm: SlurmCommands,
        reactor: Reactor,
        interval_s: float,
        patience_s: float,
        shared: SharedAccounting | None = None,
    ) -> None:
        self._slurm, self._reactor, self._shared = slurm, reactor, shared
        self._interval_s, self._patience_s = interval_s, patience_s
        self._wanted: dict[str, _WantedRow] = {}
        self._running: BackgroundCommand | None = None
        self._not_before, self._is_scheduled = 0.0, False
        self._call_times: Sequence[float] = ()
        self._unavailable_reason: str | None = None
        self._last_error, self._refusals = "", 0

    def request_row(self, step_id: str, on_row: OnRow, patience_s: float | None = None) -> None:
        """Call ``on_row`` once with the row of an ended step, or with None and the reason why there is none.

        Args:
            step_id: ``JOB.STEP``.
            on_row: Called by the reactor, or at once on a cluster without accounting.
            patience_s: How long to wait for this row, if that is shorter than usual.
        """
        if self._unavailable_reason is not None:
            on_row(None, self._unavailable_reason)
            return
        patience = self._patience_s if patience_s is None else min(patience_s, self._patience_s)
        self._wanted[step_id] = _WantedRow(time.monotonic(), patience, on_row)
        self._reactor.after(patience, lambda: self._expire(time.monotonic()))  # a running query may take longer
        self._schedule(ROW_DELAY_S)

    def _schedule(self, seconds: float) -> None:
        """Call `_check` in so many seconds, if rows are wanted and no query or check is under way."""
        if not self._is_scheduled and self._running is None and self._wanted:
            self._is_scheduled = True
            self._reactor.after(seconds, self._check)

    def _check(self) -> None:
        """Take a shared answer; query missing rows if the pause is over and no other runner queries."""
        self._is_scheduled = False
        now = time.monotonic()
        due = [step for step, each in self._wanted.items() if now - each.since >= ROW_DELAY_S * 0.9]
        if not due:
            self._schedule(ROW_DELAY_S)
            return
        if self._shared is not None:
            try:
                shared = self._steps_for_shared_query(self._shared, now)
            except OSError as error:
                self._stop_sharing(error)
            else:
                if shared is not None:
                    self._query(shared)
                return
        if now >= self._not_before:
            self._query(due)
        else:
            self._schedule(self._not_before - now)

    def _steps_for_shared_query(self, shared: SharedAccounting, now: float) -> list[str] | None:
        """Take a new shared answer; return the steps of all runners if this runner gets the turn to query, else None.

        Raises:
            OSError: the shared folder cannot be used.
        """
        if (answer := shared.new_answer()) is not None:
            self._last_error = answer.trouble
            rest_s = answer.pause_s - (time.time() - max(answer.asked_at, default=0.0))
            self._not_before = now + min(max(0.0, rest_s), answer.pause_s)
            self._deliver_rows(answer.printed)
        if self._wanted and now >= self._not_before and shared.take_turn():
            self._call_times = shared.last_answer().asked_at
            return shared.all_wanted(self._wanted)
        shared.set_wanted(self._wanted)
        self._schedule(self._not_before - now if now < self._not_before else SHARED_POLL_S)
        return None

    def _query(self, steps: Sequence[str]) -> None:
        """Start the call of ``sacct`` for these steps."""
        command = ("sacct", "-nP", f"--format={','.join(SACCT_FIELDS)}", "-j", ",".join(steps[:MAX_STEPS_PER_CALL]))
        try:
            self._running = run_in_background(self._slurm, self._reactor, *command, on_result=self._on_result)
        except (AllocationError, OSError) as error:
            self._on_failure(error, time.monotonic())
            return
        self._keep_turn(self._running)

    def _keep_turn(self, running: BackgroundCommand) -> None:
        """Touch the turn file regularly while a query runs, so that other runners see that this one is alive."""
        if self._running is running and self._shared is not None:
            try:
                self._shared.touch_turn()
            except OSError as error:
                self._stop_sharing(error)
                return
            self._reactor.after(TOUCH_S, lambda: self._keep_turn(running))

    def _on_result(self, printed: str | None, error: Exception | None) -> None:
        """Deliver the result of the query, and share it."""
        now, running = time.monotonic(), self._running
        self._running = None
        if printed is None or running is None:
            self._on_failure(error or AllocationError("accounting was not queried"), now)
            return
        self._last_error, self._refusals = "", 0
        pause_s = max(self._next_interval_s(), PAUSE_FACTOR * running.command.elapsed_s)
        self._not_before = now + pause_s
        self._deliver_rows(printed)
        self._end_turn(SharedAnswer(asked_at=self._call_times, pause_s=pause_s, printed=printed))
        self._expire(now)
        self._schedule(ROW_DELAY_S)

    def _deliver_rows(self, printed: str) -> None:
        """Call back for the final rows in ``sacct``'s output."""
        for step_id, row in parse_step_rows(printed).items():
            if row.is_final and (wanted := self._wanted.pop(step_id, None)):
                wanted.on_row(row, "")

    def _next_interval_s(self) -> float:
        """Record a call and return the pause after it, which grows with the number of calls in the last minute."""
        now = time.time()
        recent = [at for at in self._call_times if 0 <= now - at <= MINUTE_S]
        self._call_times = [*recent, now]
        factor = 1.0 if self._shared is not None else UNSHARED_FACTOR * (1 + random.random() / 2)
        return self._interval_s * factor * (1 + len(recent) / CALLS_PER_MINUTE)

    def _end_turn(self, answer: SharedAnswer | None) -> None:
        """End this runner's turn, if it has one, and share the answer."""
        if self._shared is not None:
            try:
                self._shared.end_turn(answer)
                self._shared.set_wanted(self._wanted)
            except OSError as error:
                self._stop_sharing(error)

    def _stop_sharing(self, error: OSError) -> None:
        """Stop sharing, as the folder cannot be used; from now on query for this runner alone, and less often."""
        if self._shared is not None:
            _LOG.warning("event=accounting_not_shared folder=%r reason=%r", str(self._shared.folder), str(error))
            self._shared.close()
            self._shared = None

    def _on_failure(self, error: Exception, now: float) -> None:
        """Pause after a failed query; stop querying if there is no accounting."""
        self._refusals += not isinstance(error, (SlurmUnavailableError, OSError))
        if isinstance(error, SlurmNotInstalledError) or self._refusals >= MAX_REFUSALS:
            _LOG.warning("event=no_accounting reason=%r", str(error))
            self._unavailable_reason = f"there is no accounting: {error}"
            wanted, self._wanted = self._wanted, {}
            self._end_turn(None)
            for each in wanted.values():
                each.on_row(None, self._unavailable_reason)
            return
        if not self._last_error:
            _LOG.warning("event=accounting_ill reason=%r", str(error))
            self._last_error = str(error)
        pause_s = max(self._next_interval_s(), self._slurm.breaker.wait_s(now))
        self._not_before = now + pause_s
        self._end_turn(SharedAnswer(asked_at=self._call_times, pause_s=pause_s, trouble=self._last_error))
        self._expire(now)
        self._schedule(ROW_DELAY_S)

    def _expire(self, now: float) -> None:
        """Call back without a row for requests whose patience is over."""
        reason = self._last_error or "accounting had no row in time"
        overdue = {step: each for step, each in self._wanted.items() if each.is_overdue(now)}
        if not overdue:
            return
        for step_id in overdue:
            del self._wanted[step_id]
        if self._shared is not None:
            try:
                self._shared.set_wanted(self._wanted)
            except OSError as error:
                self._stop_sharing(error)
        for each in overdue.values():
            each.on_row(None, reason)

    def close(self) -> None:
        """Kill a running query and withdraw this runner's wanted rows; nothing is called back any more."""
        if self._running is not None:
            self._running.kill()
            self._running = None
        if self._shared is not None:
            self._shared.close()
