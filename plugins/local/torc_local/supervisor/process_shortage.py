"""What to do when the system has no more processes or memory for attempts: wait, and run fewer at a time."""

import os
import select
from time import monotonic

from torc_local.supervisor import CONTROL_FD, encode_message
from torc_local.supervisor.spawning import SHORTAGE_ERRNOS

FIRST_PAUSE_S = 0.05
LAST_PAUSE_S = 1.0
"""The pause between two tries doubles from the first to the last."""
RAISE_S = 10.0
"""After so long without a refusal one more attempt may run at a time."""
PATIENCE_S = 60.0
"""How long nothing may run and nothing may begin before an attempt fails."""
LIMITS = "ulimit -u, or pids.max of the control group"
FIX = f"raise the limit on processes ({LIMITS}), or end other programs"


class ProcessShortage:
    """Refusals of the system to begin a process, and what follows from them."""

    def __init__(self) -> None:
        self.most: int | None = None
        """Attempts at a time; None is no limit of ours."""
        self.is_refused = False
        """The last try was refused."""
        self._reason = ""
        self._since = self._retry_at = self._raise_at = 0.0
        self._pause = FIRST_PAUSE_S
        self._told = ""

    def refuses(self, error: OSError, running: int) -> bool:
        """Take note of a failed try; return whether to wait, False if the attempt is to fail.

        Args:
            running: Attempts that run.
        """
        if error.errno not in SHORTAGE_ERRNOS:
            return False
        now = monotonic()
        if not self.is_refused:
            self.is_refused, self._since, self._pause = True, now, FIRST_PAUSE_S
        self.most = max(1, running // 2)
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

    def has_begun(self) -> None:
        """Take note of an attempt that was begun."""
        self.is_refused = False
        if self.most is not None and (now := monotonic()) > self._raise_at:
            self.most, self._raise_at = self.most + 1, now + RAISE_S

    def is_full(self, running: int) -> bool:
        """Say whether nothing is to be begun now."""
        if self.most is None:
            return False
        return running >= self.most or (self.is_refused and monotonic() < self._retry_at)

    def wait_s(self, running: int) -> float | None:
        """Return how long to wait before the next try; None if an attempt has to end first."""
        if self.most is not None and running >= self.most:
            return None
        return max(0.001, self._retry_at - monotonic())

    def news(self, waiting: int) -> str | None:
        """Return what the runner is to be told: why attempts wait, "" if none waits any more; None if it knows."""
        if self.most is None:
            return None
        state = f"{self._reason}: {self.most} at a time; raise {LIMITS}" if waiting else ""
        if bool(state) == bool(self._told):
            return None
        self._told = state
        return state


def fork() -> int:
    """Fork this process, again and again while the system has none left; tell the runner that attempts wait meanwhile.

    Raises:
        OSError: it cannot be forked within `PATIENCE_S`, or the runner has gone.
    """
    deadline, is_told = monotonic() + PATIENCE_S, False
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
            if not is_told:
                _tell(f"{_reason(error)}; raise {LIMITS}")
                is_told = True
            if runner.poll(LAST_PAUSE_S * 1000):
                raise
            continue
        if child and is_told:
            _tell("")
        return child


def _reason(error: OSError) -> str:
    return f"no more processes can be begun ({error.strerror})"


def _tell(hindrance: str) -> None:
    """Tell the runner why attempts wait, "" if none waits any more; nothing to a runner that has gone."""
    try:
        os.write(CONTROL_FD, encode_message(("news", [("B", 0, 0, hindrance)])))
    except OSError:
        return
