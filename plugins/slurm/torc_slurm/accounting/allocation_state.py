"""The state in which Slurm ends the runner's own allocation, from accounting.

In accounting of Slurm 22.05.8 (measured) the steps of a preempted or canceled allocation are CANCELLED with signal 15,
exactly like a step that a person stopped. Only the allocation's own row has the reason, as soon as Slurm begins to end
the allocation.
"""

import time
from collections.abc import Callable
from typing import Final

from attrs import define, field

from torc_framework.api import AllocationError
from torc_slurm.calls.background_command import BackgroundCommand, run_in_background
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.processes.reactor import Reactor
from torc_slurm.shared.job_states import FINAL_STATES

REPEAT_S: Final = 1.0
"""Shortest time between two queries about an allocation that continues, seconds."""
MAX_REPEAT_S: Final = 16.0
"""Longest time between queries for no other reason than a signal to a step, seconds; it doubles with each query."""

OnState = Callable[[str | None], None]
"""Called once with the state in which the allocation ends, in Slurm's spelling; None if it continues or is unknown."""


@define
class AllocationStateQuery:
    """Queries the state of one allocation; requests at the same time share one ``sacct``.

    Attributes:
        slurm: Access to Slurm's programs.
        reactor: Delivers the results.
        patience_s: Time limit of a query, seconds; it is short because the allocation may be ending.
    """

    slurm: SlurmCommands
    reactor: Reactor
    patience_s: float
    _state: str | None = field(default=None, init=False)
    _answered_at: float = field(default=float("-inf"), init=False)
    _repeat_s: float = field(default=REPEAT_S, init=False)
    _running: BackgroundCommand | None = field(default=None, init=False)
    _callbacks: list[OnState] = field(factory=list, init=False)

    def request(self, job_id: int, on_state: OnState, *, is_likely: bool) -> None:
        """Call ``on_state`` with the allocation's state: at once if it was queried recently, otherwise after a query.

        Args:
            is_likely: The runner has a further indication that the allocation ends, beside a signal to a step.
        """
        repeat_s = REPEAT_S if is_likely else self._repeat_s
        if self._state is not None or time.monotonic() < self._answered_at + repeat_s:
            on_state(self._state)
            return
        self._callbacks.append(on_state)
        if self._running is None:
            self._query(job_id)

    def _query(self, job_id: int) -> None:
        command = ("sacct", "-nPX", f"--jobs={job_id}", "--format=State")
        try:
            self._running = run_in_background(
                self.slurm, self.reactor, *command, on_result=self._on_result, timeout_s=self.patience_s
            )
        except (AllocationError, OSError):
            self._on_result(None, None)

    def _on_result(self, printed: str | None, _error: Exception | None) -> None:
        state = (printed or "").strip()
        self._running = None
        self._state = state if state.partition(" ")[0] in FINAL_STATES else None
        self._answered_at = time.monotonic()
        self._repeat_s = min(MAX_REPEAT_S, 2 * self._repeat_s)
        callbacks, self._callbacks = self._callbacks, []
        for on_state in callbacks:
            on_state(self._state)

    def close(self) -> None:
        """Kill a running query; its callbacks receive None."""
        if self._running is not None:
            self._running.kill()
            self._on_result(None, None)
