"""Why attempts cannot begin on a host at present, in words for people."""

import time
from typing import Any, Final

from torc_framework.api import duration_text

DISK_PAUSE_S: Final = 60.0
"""For so long a host whose disk was full gets no attempts."""


class LinkHindrances:
    """What hinders one host.

    Args:
        host: Name of the host.
        lost_after_s: After this time without an answer the host has lost its attempts.
    """

    def __init__(self, host: str, lost_after_s: float) -> None:
        self._host, self._lost_after_s = host, lost_after_s
        self._since: float | None = None
        """When the connection was lost, seconds since the epoch; None if there is one."""
        self._reason = ""
        self._is_lost = False
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

    def disk_full(self, reason: str) -> None:
        """Note that the host could not write a file."""
        self._disk_until, self._disk_reason = time.monotonic() + DISK_PAUSE_S, reason

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
            return f"host {self._host}: {self._disk_reason}; it gets jobs again in {again}, others run them meanwhile"
        return f"host {self._host}: {self._helper_reason}" if self._helper_reason else None
