"""Signals to steps by ``scancel``: one call for many steps, repeated while the controller is unavailable."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from torc_framework.api import AllocationError
from torc_slurm.calls.background_command import BackgroundCommand, run_in_background
from torc_slurm.calls.slurm_commands import RunningCommand, SlurmCommands
from torc_slurm.calls.slurm_errors import SlurmUnavailableError
from torc_slurm.processes.reactor import Reactor

RETRY_S: Final = 1.0
"""Shortest time before a call that was not answered is repeated, seconds."""
_LOG: Final = logging.getLogger("torc_framework.slurm")


class StepSignaller:
    """Sends SIGTERM or SIGKILL to steps.

    Args:
        slurm: Access to Slurm's programs.
        reactor: Calls this object back.
        on_unreachable: Called with the steps of a SIGKILL that Slurm did not answer.
    """

    def __init__(self, slurm: SlurmCommands, reactor: Reactor, on_unreachable: Callable[[Iterable[str]], None]) -> None:
        self._slurm, self._reactor, self._on_unreachable = slurm, reactor, on_unreachable
        self._steps_by_force: dict[bool, dict[str, None]] = {False: {}, True: {}}
        self._running: dict[bool, BackgroundCommand] = {}

    def send(self, steps: Iterable[str], *, force: bool) -> None:
        """Send SIGTERM, or SIGKILL with ``force``, to these steps (``JOB.STEP``); return at once."""
        self._steps_by_force[force].update(dict.fromkeys(steps))
        self._scancel(force)

    def forget(self, step: str) -> None:
        """Send no further signal to a step, which is over."""
        for wanted in self._steps_by_force.values():
            wanted.pop(step, None)

    def _scancel(self, force: bool) -> None:
        """Start a call for all wanted steps, unless one for the same signal is running."""
        steps = list(self._steps_by_force[force])
        if not steps or force in self._running:
            return
        self._steps_by_force[force].clear()

        def on_result(_printed: str | None, error: Exception | None) -> None:
            del self._running[force]
            if error is not None:
                self._on_failure(steps, error, force)
            self._scancel(force)

        signal = () if force else ("--signal=TERM",)
        try:
            self._running[force] = run_in_background(
                self._slurm, self._reactor, "scancel", *signal, *steps, on_result=on_result
            )
        except (AllocationError, OSError) as error:
            self._on_failure(steps, error, force)

    def _on_failure(self, steps: list[str], error: Exception, force: bool) -> None:
        """Repeat the call later if Slurm did not answer. A refusal is final, as for steps that have just ended."""
        if not isinstance(error, SlurmUnavailableError):
            _LOG.info("event=scancel_refused reason=%r", str(error))
            return
        _LOG.warning("event=scancel_unanswered steps=%d reason=%r", len(steps), str(error))
        self._steps_by_force[force].update(dict.fromkeys(steps))
        if force:
            self._on_unreachable(steps)
        self._reactor.after(max(RETRY_S, self._slurm.breaker.wait_s(time.monotonic())), lambda: self._scancel(force))

    def close(self) -> None:
        """Wait for running calls."""
        while self._running:
            if (command := self._running.popitem()[1].detach()) is not None:
                wait_for_command(command)


def wait_for_command(command: RunningCommand) -> None:
    """Wait for a command and log its error, if it fails."""
    try:
        command.result()
    except AllocationError as error:
        _LOG.info("event=call_failed reason=%r", str(error))
