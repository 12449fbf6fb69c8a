"""Signals to steps: with ``scancel``, for all that are wanted at once, again while the controller is ill."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from torc_framework.api import AllocationError
from torc_slurm.calls.background_command import BackgroundCommand, run_in_background
from torc_slurm.calls.slurm_commands import RunningCommand, SlurmCommands, SlurmUnavailableError
from torc_slurm.processes.reactor import Reactor

RETRY_S: Final = 1.0
_LOG: Final = logging.getLogger("torc_framework.slurm")


class StepSignaller:
    """Sends SIGTERM or SIGKILL to steps.

    Args:
        door: The way to Slurm.
        reactor: What it waits with.
        in_vain: Called with steps that were to be killed and that Slurm was not reached about.
    """

    def __init__(self, door: SlurmCommands, reactor: Reactor, in_vain: Callable[[Iterable[str]], None]) -> None:
        self._door, self._reactor, self._in_vain = door, reactor, in_vain
        self._wanted: dict[bool, dict[str, None]] = {False: {}, True: {}}
        self._pending: dict[bool, BackgroundCommand] = {}

    def send(self, steps: Iterable[str], *, force: bool) -> None:
        """Let these steps (``JOB.STEP``) get SIGTERM, or SIGKILL with ``force``."""
        self._wanted[force].update(dict.fromkeys(steps))
        self._ask(force)

    def forget(self, step: str) -> None:
        """A step is over."""
        for wanted in self._wanted.values():
            wanted.pop(step, None)

    def _ask(self, force: bool) -> None:
        """Begin a call, unless one of this kind is under way already."""
        steps = list(self._wanted[force])
        if not steps or force in self._pending:
            return
        self._wanted[force].clear()

        def deliver(_printed: str | None, error: Exception | None) -> None:
            del self._pending[force]
            if error is not None:
                self._failed(steps, error, force)
            self._ask(force)

        signal = () if force else ("--signal=TERM",)
        try:
            self._pending[force] = run_in_background(
                self._door, self._reactor, "scancel", *signal, *steps, deliver=deliver
            )
        except (AllocationError, OSError) as error:
            self._failed(steps, error, force)

    def _failed(self, steps: list[str], error: Exception, force: bool) -> None:
        """Try again if Slurm was not reached; it says no of steps that have just ended, too."""
        if not isinstance(error, SlurmUnavailableError):
            _LOG.info("event=scancel_refused reason=%r", str(error))
            return
        _LOG.warning("event=scancel_unanswered steps=%d reason=%r", len(steps), str(error))
        self._wanted[force].update(dict.fromkeys(steps))
        if force:
            self._in_vain(steps)
        self._reactor.after(max(RETRY_S, self._door.breaker.wait_s(time.monotonic())), lambda: self._ask(force))

    def close(self) -> None:
        """Let calls that are under way end by themselves."""
        while self._pending:
            if (question := self._pending.popitem()[1].release()) is not None:
                wait_for_command(question)


def wait_for_command(question: RunningCommand) -> None:
    """Wait for a call that changes something, and take no notice of its answer."""
    try:
        question.answer()
    except AllocationError as error:
        _LOG.info("event=call_failed reason=%r", str(error))
