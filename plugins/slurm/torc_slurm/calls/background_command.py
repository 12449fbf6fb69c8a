"""Slurm commands in the background: a reactor delivers the result while the runner's only thread continues."""

from collections.abc import Callable
from typing import Final

from attrs import define, field

from torc_framework.api import AllocationError
from torc_slurm.calls.slurm_commands import TIMEOUT_S, RunningCommand, SlurmCommands
from torc_slurm.processes.reactor import Reactor

TIMEOUT_SLACK_S: Final = 0.1
"""A program that still runs this long after its time limit is killed, seconds."""

OnResult = Callable[[str | None, Exception | None], None]
"""Called once, with the program's standard output or with the reason why there is none."""


@define(eq=False)
class BackgroundCommand:
    """A running program that a reactor watches; made by `run_in_background`."""

    command: RunningCommand
    _reactor: Reactor
    _on_result: OnResult
    _is_watched: bool = field(default=True, init=False)

    def deliver(self) -> None:
        """Pass the result on; the program has ended, or is killed. Later calls do nothing."""
        if self._unwatch():
            try:
                printed = self.command.result()
            except AllocationError as error:
                self._on_result(None, error)
            else:
                self._on_result(printed, None)

    def kill(self) -> None:
        """Kill the program; its result is not delivered."""
        if self._unwatch():
            self.command.kill()

    def detach(self) -> RunningCommand | None:
        """Stop watching and return the running program, for which the caller waits; None if it was delivered."""
        return self.command if self._unwatch() else None

    def _unwatch(self) -> bool:
        """Stop watching; return whether the result had not been delivered yet."""
        was_watched, self._is_watched = self._is_watched, False
        if was_watched:
            self._reactor.unwatch(self.command.fileno())
        return was_watched


def run_in_background(
    slurm: SlurmCommands, reactor: Reactor, *command: str, on_result: OnResult, timeout_s: float = TIMEOUT_S
) -> BackgroundCommand:
    """Start a program; the reactor delivers its result once it has ended, or after ``timeout_s`` seconds.

    Raises:
        AllocationError: it cannot be started, or the circuit breaker blocks calls at present.
        OSError: it cannot be watched; it was killed.
    """
    running = slurm.start(*command, timeout_s=timeout_s)
    background = BackgroundCommand(running, reactor, on_result)
    try:
        reactor.watch(running.fileno(), background.deliver)
    except BaseException:
        running.kill()
        raise
    reactor.after(running.remaining_s + TIMEOUT_SLACK_S, background.deliver)
    return background
