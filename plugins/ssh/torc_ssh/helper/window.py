"""How many bytes of files may be on the way in one direction of a connection."""

from __future__ import annotations

import collections
import time

LEAST_BYTES = 512 << 10
MOST_BYTES = 8 << 20
DELAY_S = 0.3
"""How long a message may wait behind pieces of files, where the line carries more than `LEAST_BYTES` in that time."""


class Window:
    """Limits the bytes that are sent and not acknowledged to what the line carries in `DELAY_S` plus a round trip."""

    def __init__(self) -> None:
        self._size = LEAST_BYTES
        self._sent: dict[int, collections.deque[tuple[float, int]]] = {}
        """Time and size of the pieces of each stream that are not acknowledged, oldest first."""
        self._on_way = 0
        self._round_trip_s = DELAY_S
        self._acknowledged: collections.deque[tuple[float, int]] = collections.deque()

    @property
    def is_open(self) -> bool:
        """A further piece may be sent."""
        return self._on_way < self._size

    def record_sent(self, stream: int, size: int) -> None:
        """Take note of a piece that is sent."""
        self._sent.setdefault(stream, collections.deque()).append((time.monotonic(), size))
        self._on_way += size

    def record_ack(self, stream: int, size: int) -> None:
        """Take note of an acknowledgement; what was not sent is ignored."""
        now = time.monotonic()
        pieces = self._sent.get(stream)
        taken = 0
        while pieces and taken + pieces[0][1] <= size:
            at, piece = pieces.popleft()
            taken += piece
            self._round_trip_s = min(self._round_trip_s, now - at)
        if not taken:
            return
        self._on_way -= taken
        span = DELAY_S + self._round_trip_s
        self._acknowledged.append((now, taken))
        while self._acknowledged[0][0] < now - span:
            self._acknowledged.popleft()
        self._size = min(max(sum(each for _, each in self._acknowledged), LEAST_BYTES), MOST_BYTES)

    def forget(self, stream: int) -> None:
        """Take a stream's pieces as acknowledged: it has ended."""
        self._on_way -= sum(size for _, size in self._sent.pop(stream, ()))
