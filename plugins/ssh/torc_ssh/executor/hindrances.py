"""Why attempts cannot begin on a host at present, in words for people."""

import time
from collections.abc import Callable
from typing import Any, Final

from torc_framework.api import duration_text

DISK_PAUSE_S: Final = 60.0
"""For so long a host whose disk was full gets no attempts."""
DISK_PATIENCE_S: Final = 300.0
"""When a disk has been full for so long, and no other host works, attempts that need room on it fail."""


class LinkHindrances:
    """What hinders one host.

    Args:
        host: Name of the host.
        lost_after_s: After this time without an answer the host has lost its attempts.
        others_work: Returns whether another host of the run works on attempts.
    """

    def __init__(self, host: str, lost_after_s: float, others_work: Callable[[], bool] = lambda: False) -> None:
        self._host, self._lost_after_s, self._others_work = host, lost_after_s, others_work
        self._since: float | None = None
        """When the connection was lost, seconds since the epoch; None if there is one."""
        self._reason = ""
        self._is_lost = False
        self._disk_since: float | None = None
        self._disk_until = 0.0
        self._disk_reason = ""
        self._helper_reason = ""

    def disconnected(self, reason: str) -> None:
        """Note that the connection was lost."""
        self._since, self._reason, self._is_lost = time.time(), reason, False

    def not_connected(self, reason: str) -> None:
        """Note why the last attempt to connect failed."""
        self._reason = reason

    def connected(self) -> None:
        """Note that there is a connection again."""
        self._since, self._is_lost = None, False

    def lost(self) -> str:
        """Note that the host is taken for lost; return the reason."""
        self._is_lost = True
        return f"host {self._host} has not answered for {duration_text(self._lost_after_s)} ({self._reason})"

    def disk_full(self, reason: str) -> bool:
        """Note that the host could not write a file of an attempt; return whether the attempt is to be tried again.

        It is as long as other hosts work, which may have room for it, and for `DISK_PATIENCE_S` without any.
        """
        now = time.monotonic()
        if self._disk_since is None:
            self._disk_since = now
        if now - self._disk_since >= DISK_PATIENCE_S and not self._others_work():
            return False
        self._disk_until, self._disk_reason = now + DISK_PAUSE_S, reason
        return True

    def has_room(self) -> None:
        """Note that the host could write the files of an attempt."""
        self._disk_since = None

    def of_helper(self, reason: Any) -> None:
        """Note why the host cannot start processes; None if it can."""
        self._helper_reason = str(reason) if reason else ""

    @property
    def is_accepting(self) -> bool:
        """Whether the host can be given attempts."""
        return self._since is None and time.monotonic() >= self._disk_until

    def text(self) -> str | None:
        """Return what hinders the host and what happens next; None if nothing does."""
        if self._since is not None:
            clock = time.strftime("%H:%M:%S", time.localtime(self._since))
            until = time.strftime("%H:%M:%S", time.localtime(self._since + self._lost_after_s))
            happens = "its jobs run elsewhere" if self._is_lost else f"its jobs run elsewhere after {until}"
            return f"host {self._host} does not answer since {clock} ({self._reason}); torc reconnects; {happens}"
        if (left_s := self._disk_until - time.monotonic()) > 0:
            again = duration_text(max(1, round(left_s)))
            return f"host {self._host}: {self._disk_reason}; it gets jobs again in {again}, {self._meanwhile()}"
        return f"host {self._host}: {self._helper_reason}" if self._helper_reason else None

    def _meanwhile(self) -> str:
        """Return what happens while the disk is full."""
        if self._disk_since is None or self._others_work():
            return "others run them meanwhile"
        left_s = self._disk_since + DISK_PATIENCE_S - time.monotonic()
        until = time.strftime("%H:%M:%S", time.localtime(time.time() + max(0.0, left_s)))
        return f"and those that find no room after {until} fail; make room there"
