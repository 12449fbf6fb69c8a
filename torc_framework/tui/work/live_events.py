"""The event stream of the workflow that is shown, in a thread that connects again when the connection breaks."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from torc_framework.errors import ApiError, TorcError

if TYPE_CHECKING:
    from torc_framework.client import TorcClient
    from torc_framework.client.http.event_stream import EventStream

PAUSE_S: Final = 2.0
"""Seconds between two attempts to connect."""


class LiveEvents:
    """Tells that something happened in one workflow.

    Args:
        client: Returns the client for the server of now.
        on_event: Called in the thread for each event.
        on_state: Called in the thread with whether the stream is connected.
    """

    def __init__(
        self, client: "Callable[[], TorcClient]", on_event: Callable[[], None], on_state: Callable[[bool], None]
    ) -> None:
        self._client, self._on_event, self._on_state = client, on_event, on_state
        self._wanted: int | None = None
        self._stream: EventStream | None = None
        self._changed = threading.Event()
        self._is_closed = False
        threading.Thread(target=self._work, name="torc-tui-events", daemon=True).start()

    def follow(self, workflow_id: int | None) -> None:
        """Follow this workflow from now on."""
        if workflow_id == self._wanted:
            return
        self._wanted = workflow_id
        self._leave_stream()

    def reconnect(self) -> None:
        """Connect anew, such as after a move to another server."""
        self._leave_stream()

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._leave_stream()

    def _leave_stream(self) -> None:
        self._changed.set()
        if (stream := self._stream) is not None:
            stream.close()

    def _work(self) -> None:
        last: tuple[int, int | None] = (0, None)
        while not self._is_closed:
            self._changed.clear()
            wanted = self._wanted
            if wanted is None:
                self._changed.wait()
                continue
            since = last[1] if last[0] == wanted else None
            try:
                self._stream = self._client().event_stream(wanted, last_event_id=since, level="debug", patience=0)
                if not self._changed.is_set():  # else another workflow was chosen while it connected
                    self._on_state(True)
                    for _ in self._stream:
                        self._on_event()
            except (TorcError, ApiError, OSError):
                pass
            stream, self._stream = self._stream, None
            if stream is not None:
                last = (wanted, stream.last_event_id)
                stream.close()
            self._on_state(False)
            if not self._changed.is_set():
                self._changed.wait(PAUSE_S)
