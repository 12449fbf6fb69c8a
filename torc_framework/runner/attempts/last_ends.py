"""The wait of a runner that has to end for the ends of the attempts that it still holds."""

from collections import Counter
from collections.abc import Collection
from typing import Final

from torc_framework.runner.attempts.held_jobs import HeldJob, JobStage
from torc_framework.text.quantities import count_text

TELLS_AFTER_S: Final = 3.0
"""Seconds without an end after which the runner tells what it waits for."""
LEAVES_AFTER_S: Final = 30.0
"""Seconds after SIGKILL at which the runner leaves attempts whose end was not reported."""


class LastEnds:
    """Decides when a runner that has to end leaves its attempts to the next runner.

    An attempt may never end for its runner, for example because the daemon that would report it is gone.

    Attributes:
        text: What the runner waits for, for people; None if it is too early to tell, or if it waits for nothing.
        is_over: The runner leaves the attempts that it still holds.
    """

    def __init__(self) -> None:
        self._state: tuple[int, bool] = (0, False)
        self._since = 0.0
        self.text: str | None = None
        self.is_over = False

    def update(self, items: Collection[HeldJob], now: float) -> None:
        """Take note of what is held now, after everything was asked to end."""
        all_killed = all(item.stop_forced for item in items if item.stage is JobStage.RUNNING)
        state = len(items), all_killed
        if state != self._state:
            self._state, self._since, self.text = state, now, None
        elif items and self.text is None and now - self._since >= TELLS_AFTER_S:
            self.text = _waiting_text(items, all_killed=all_killed)
        self.is_over = self.is_over or (bool(items) and all_killed and now - self._since >= LEAVES_AFTER_S)

    def leave(self) -> None:
        """Wait no more, if everything was killed and a person was told what the runner waits for."""
        self.is_over = self.is_over or (self.text is not None and self._state[1])


def left_text(items: Collection[HeldJob]) -> str:
    """Return the warning about attempts that were left."""
    return (
        f"{_jobs_text(items)} did not end after SIGKILL, and may still run; the next runner asks for {_pronoun(items)}"
    )


def _waiting_text(items: Collection[HeldJob], *, all_killed: bool) -> str:
    them = _pronoun(items)
    effect = f"leaves {them}: the next runner asks for {them}" if all_killed else f"kills {them}"
    return f"waiting for {_jobs_text(items)} to end; Ctrl-C again {effect}"


def _pronoun(items: Collection[HeldJob]) -> str:
    return "it" if len(items) == 1 else "them"


def _jobs_text(items: Collection[HeldJob]) -> str:
    """Return how many jobs of which executors these are."""
    counts = Counter(item.executor for item in items)
    return " and ".join(f"{count_text(count, 'job')} of executor {name}" for name, count in sorted(counts.items()))
