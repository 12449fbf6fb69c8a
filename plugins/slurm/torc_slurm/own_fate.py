"""Whether the allocation that a runner lives in is being ended, and why: what its steps' rows do not say.

Steps of an allocation that is preempted, or canceled, are all CANCELLED with signal 15 in accounting, as one is that
a person stopped. The allocation's own row says it as soon as Slurm begins to end it.
"""

import time
from typing import Final

from attrs import define, field

from torc_framework.api import AllocationError
from torc_slurm.door import Door
from torc_slurm.queue import OVER

AGAIN_S: Final = 1.0
"""An allocation that goes on is not asked about again for so long."""


@define
class OwnFate:
    """Asks accounting about one allocation, when there is reason to.

    Attributes:
        patience_s: How long the answer may take: the allocation may be ending.
    """

    door: Door
    patience_s: float
    _state: str | None = field(default=None, init=False)
    _asked_at: float = field(default=float("-inf"), init=False)

    def state(self, job_id: int) -> str | None:
        """Return the state in which the allocation ends, in Slurm's words; None if it goes on or nobody says."""
        if self._state is None and time.monotonic() >= self._asked_at + AGAIN_S:
            self._state = self._ask(job_id)
            self._asked_at = time.monotonic()
        return self._state

    def _ask(self, job_id: int) -> str | None:
        command = ("sacct", "-nPX", f"--jobs={job_id}", "--format=State")
        try:
            words = self.door.ask(*command, timeout_s=self.patience_s).strip()
        except AllocationError:
            return None
        return words if words.partition(" ")[0] in OVER else None
