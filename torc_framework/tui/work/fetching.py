"""Requests in threads, so that no key waits for the network: of the requests of one kind that wait, the newest wins."""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

from attrs import define

Deliver = Callable[[Callable[[], None]], None]
"""Calls a function in the thread of the screens."""


@define
class _Slot:
    """The requests of one kind: one under way, and the newest of those that came since.

    Attributes:
        begun_at: Monotonic time at which the one under way began, seconds.
    """

    is_busy: bool = False
    begun_at: float = 0.0
    waiting: "tuple[Callable[[], Any], Callable[[Any], None], Callable[[Exception], None]] | None" = None


class Fetcher:
    """Carries out requests, one of each kind at a time; of those that wait meanwhile only the newest is carried out.

    An answer under way is delivered although a newer request waits, or steady changes would hold all answers back;
    its receiver checks that the answer is about what is shown.

    Threads are daemons, so that a server that does not answer holds up no end of the program.

    Args:
        deliver: How answers reach the screens.
    """

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._lock = threading.Lock()
        self._slots: dict[Hashable, _Slot] = {}
        self._is_closed = False

    def fetch(
        self,
        kind: Hashable,
        request: Callable[[], Any],
        on_answer: Callable[[Any], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        """Carry out a request in a thread, after the one of its kind that is under way."""
        with self._lock:
            slot = self._slots.setdefault(kind, _Slot())
            slot.waiting = (request, on_answer, on_error)
            if slot.is_busy:
                return
            slot.is_busy, slot.begun_at = True, time.monotonic()
        threading.Thread(target=self._work, args=(kind, slot), name=f"torc-tui-{kind}", daemon=True).start()

    def longest_s(self) -> float:
        """Return for how many seconds the oldest request under way has had no answer; 0 if none is under way."""
        with self._lock:
            begun = [slot.begun_at for slot in self._slots.values() if slot.is_busy]
        return time.monotonic() - min(begun) if begun else 0.0

    def close(self) -> None:
        """Deliver nothing more."""
        self._is_closed = True

    def _work(self, kind: Hashable, slot: _Slot) -> None:
        while True:
            with self._lock:
                wanted, slot.waiting = slot.waiting, None
                if wanted is None or self._is_closed:
                    slot.is_busy = False
                    self._slots.pop(kind, None)
                    return
                slot.begun_at = time.monotonic()
            request, on_answer, on_error = wanted
            try:
                answer = request()
            except Exception as error:  # the screens show it, of any kind
                self._answer(on_error, error)
            else:
                self._answer(on_answer, answer)

    def _answer(self, function: Callable[[Any], None], value: Any) -> None:
        def deliver() -> None:
            if not self._is_closed:
                function(value)

        self._deliver(deliver)
