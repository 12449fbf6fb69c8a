"""Whether the allocation that a runner lives in is being ended, and why: what its steps' rows do not say.

Steps of an allocation that is preempted, or canceled, are all CANCELLED with signal 15 in accounting, as one is that
a person stopped. The allocation's own row says it as soon as Slurm begins to end it.
"""

import time
from collections.abc import Callable
from typing import Final

from attrs import define, field

from torc_framework.api import AllocationError
from torc_slurm.allocations.batch_jobs import FINAL_STATES
from torc_slurm.calls.background_command import BackgroundCommand, run_in_background
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.processes.reactor import Reactor

REPEAT_S: Final = 1.0
"""An allocation that goes on is not asked about again for so long, seconds."""
MAX_REPEAT_S: Final = 16.0
"""Where nothing but a signal speaks for its end, that time doubles with each answer, up to so many seconds."""

OnState = Callable[[str | None], None]
"""Called once with the state in which the allocation ends, in Slurm's words; None if it goes on or is not known."""


@define
class AllocationStateQuery:
    """Asks accounting about one allocation, when there is reason to.

    Attributes:
        patience_s: How long an answer may take, seconds: the allocation may be ending.
    """

    door: SlurmCommands
    reactor: Reactor
    patience_s: float
    _state: str | None = field(default=None, init=False)
    _asked_at: float = field(default=float("-inf"), init=False)
    _again_s: float = field(default=REPEAT_S, init=False)
    _pending: BackgroundCommand | None = field(default=None, init=False)
    _waiting: list[OnState] = field(factory=list, init=False)

    def want(self, job_id: int, tell: OnState, *, is_likely: bool) -> None:
        """Let ``tell`` be called with the allocation's state: at once if it is known, else when it is answered.

        Args:
            is_likely: There is more that speaks for the allocation's end than a signal that ended a step.
        """
        again_s = REPEAT_S if is_likely else self._again_s
        if self._state is not None or time.monotonic() < self._asked_at + again_s:
            tell(self._state)
            return
        self._waiting.append(tell)
        if self._pending is None:
            self._ask(job_id)

    def _ask(self, job_id: int) -> None:
        command = ("sacct", "-nPX", f"--jobs={job_id}", "--format=State")
        try:
            self._pending = run_in_background(
                self.door, self.reactor, *command, deliver=self._answered, timeout_s=self.patience_s
            )
        except (AllocationError, OSError):
            self._answered(None, None)

    def _answered(self, printed: str | None, _error: Exception | None) -> None:
        words = (printed or "").strip()
        self._pending = None
        self._state = words if words.partition(" ")[0] in FINAL_STATES else None
        self._asked_at = time.monotonic()
        self._again_s = min(MAX_REPEAT_S, 2 * self._again_s)
        waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell(self._state)

    def close(self) -> None:
        """Ask no more; those that wait are told that it is not known."""
        if self._pending is not None:
            self._pending.drop()
            self._answered(None, None)
