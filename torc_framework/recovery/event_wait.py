"""Waiting that ends early when a decisive event of a workflow arrives."""

import threading
from types import TracebackType
from typing import Final, Self

from torc_framework.client import TorcClient
from torc_framework.errors import TorcError

DECISIVE: Final = frozenset(
    {
        "compute_node_started",
        "workflow_completed",
        "workflow_canceled",
        "compute_node_stopped",
        "job_pending_failed",
        "job_retried",
    }
)
"""Types of events after which a workflow is examined at once."""


class EventWaiter:
    """Follows a workflow's events in a thread of its own. If the stream of events breaks, `wait` only waits."""

    def __init__(self, client: TorcClient, workflow_id: int) -> None:
        self._arrived = threading.Event()
        self._stream = client.event_stream(workflow_id)
        self._thread = threading.Thread(target=self._listen, name="torc-watch", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def _listen(self) -> None:
        try:
            for event in self._stream:
                if event.event_type in DECISIVE:
                    self._arrived.set()
        except TorcError:
            return  # `wait` ends after its time all the same

    def wait(self, seconds: float) -> None:
        """Wait this long, or until a decisive event has arrived since the last call."""
        self._arrived.wait(seconds)
        self._arrived.clear()
