"""A question to a program of Slurm whose answer is taken when it is there, while the runner's only thread goes on."""

from collections.abc import Callable
from typing import Final

from attrs import define, field

from torc_framework.api import AllocationError
from torc_slurm.calls.slurm_commands import TIMEOUT_S, RunningCommand, SlurmCommands
from torc_slurm.processes.reactor import Reactor

TIMEOUT_SLACK_S: Final = 0.1
"""So long after its limit a program that still runs is given up, seconds."""

OnAnswer = Callable[[str | None, Exception | None], None]
"""Called once: with what the program printed, or with the reason why there is no answer."""


@define(eq=False)
class BackgroundCommand:
    """A program that runs, watched by a reactor; made by `run_in_background`."""

    question: RunningCommand
    _reactor: Reactor
    _deliver: OnAnswer
    _is_open: bool = field(default=True, init=False)

    def take(self) -> None:
        """Take the answer, which is there or late, and deliver it; does nothing if that was done."""
        if self._close():
            try:
                printed = self.question.answer()
            except AllocationError as error:
                self._deliver(None, error)
            else:
                self._deliver(printed, None)

    def drop(self) -> None:
        """End the program; its answer is not delivered."""
        if self._close():
            self.question.drop()

    def release(self) -> RunningCommand | None:
        """Stop watching, and return the question so that the caller waits for it; None if it was answered."""
        return self.question if self._close() else None

    def _close(self) -> bool:
        """Stop watching; say whether the answer was still to be taken."""
        was_open, self._is_open = self._is_open, False
        if was_open:
            self._reactor.unwatch(self.question.fileno())
        return was_open


def run_in_background(
    door: SlurmCommands, reactor: Reactor, *command: str, deliver: OnAnswer, timeout_s: float = TIMEOUT_S
) -> BackgroundCommand:
    """Start a program; its answer is delivered when the reactor runs, after ``timeout_s`` seconds at the latest.

    Raises:
        AllocationError: it cannot be started, or Slurm is not to be asked now.
        OSError: it cannot be watched; it was ended.
    """
    question = door.begin(*command, timeout_s=timeout_s)
    pending = BackgroundCommand(question, reactor, deliver)
    try:
        reactor.watch(question.fileno(), pending.take)
    except BaseException:
        question.drop()
        raise
    reactor.after(question.left_s + TIMEOUT_SLACK_S, pending.take)
    return pending
