"""Reaction to a system without free processes or memory for attempts: wait, and run fewer attempts at a time."""

from __future__ import annotations

import os
import select
from time import monotonic

from torc_framework.supervision.supervisor import CONTROL_FD, encode_message
from torc_framework.supervision.supervisor.spawning import SHORTAGE_ERRNOS

FIRST_PAUSE_S = 0.05
LAST_PAUSE_S = 1.0
"""The pause between two tries doubles from `FIRST_PAUSE_S` to `LAST_PAUSE_S`."""
RAISE_S = 10.0
"""After this time without a refusal one more attempt may run at a time."""
PATIENCE_S = 60.0
"""How long starts are tried while no attempt runs; then an attempt fails."""
LIMITS = "ulimit -u, or pids.max of the control group"
FIX = f"raise the limit on processes ({LIMITS}), or end other programs"


class ProcessShortage:
    """Limit of running attempts after the system has refused to start a process."""

    def __init__(self) -> None:
        self.max_running: int | None = None
        """Largest number of attempts at a time; None without a limit."""
        self.is_refused = False
        """The last start was refused."""
        self._reason = ""
        self._since = self._retry_at = self._raise_at = 0.0
        self._pause = FIRST_PAUSE_S
        self._reported = ""

    def record_refusal(self, error: OSError, running: int) -> bool:
        """Take note of a failed start; return whether to try again later, False if the attempt has to fail.

        Args:
            error: The error of the start.
            running: Number of running attempts.
        """
        if error.errno not in SHORTAGE_ERRNOS:
            return False
        now = monotonic()
        if not self.is_refused:
            self.is_refused, self._since, self._pause = True, now, FIRST_PAUSE_S
        self.max_running = max(1, running // 2)
        self._reason = _reason(error)
        if not running and now - self._since > PATIENCE_S:
            error.strerror = f"{error.strerror} for {now - self._since:.0f} s, while nothing runs; {FIX}"
            error.filename = None
            return False
        if running:
            self._since = now
        self._retry_at, self._raise_at = now + self._pause, now + RAISE_S
        self._pause = min(2 * self._pause, LAST_PAUSE_S)
        return True

    def record_start(self) -> None:
        """Take note of a started attempt."""
        self.is_refused = False
        if self.max_running is not None and (now := monotonic()) > self._raise_at:
            self.max_running, self._raise_at = self.max_running + 1, now + RAISE_S

    def is_full(self, running: int) -> bool:
        """Return whether no attempt may start now."""
        if self.max_running is None:
            return False
        return running >= self.max_running or (self.is_refused and monotonic() < self._retry_at)

    def wait_s(self, running: int) -> float | None:
        """Return the time until the next try, in seconds; None if an attempt has to end first."""
        if self.max_running is not None and running >= self.max_running:
            return None
        return max(0.001, self._retry_at - monotonic())

    def change(self, waiting: int) -> str | None:
        """Return the hindrance to report to the runner, "" if there is none any more; None if nothing has changed."""
        if self.max_running is None:
            return None
        state = f"{self._reason}: {self.max_running} at a time; raise {LIMITS}" if waiting else ""
        if bool(state) == bool(self._reported):
            return None
        self._reported = state
        return state


def fork() -> int:
    """Fork this process. While the system has no free process, try again and report the hindrance to the runner.

    Raises:
        OSError: the fork was not possible within `PATIENCE_S`, or the runner is gone.
    """
    deadline, is_reported = monotonic() + PATIENCE_S, False
    runner = select.poll()
    runner.register(CONTROL_FD, select.POLLRDHUP)
    while True:
        try:
            child = os.fork()
        except OSError as error:
            if error.errno not in SHORTAGE_ERRNOS:
                raise
            if monotonic() > deadline:
                raise OSError(error.errno, f"{error.strerror}; {FIX}") from None
            if not is_reported:
                _report(f"{_reason(error)}; raise {LIMITS}")
                is_reported = True
            if runner.poll(LAST_PAUSE_S * 1000):
                raise
            continue
        if child and is_reported:
            _report("")
        return child


def _reason(error: OSError) -> str:
    return f"no more processes can be started ({error.strerror})"


def _report(hindrance: str) -> None:
    """Report to the runner why attempts wait, "" if they wait no longer; without effect if the runner is gone."""
    try:
        os.write(CONTROL_FD, encode_message(("reports", [("B", 0, 0, hindrance)])))
    except OSError:
        return
