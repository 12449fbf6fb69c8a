"""Waiting that ends as soon as something decisive happens to a workflow."""

import threading
from types import TracebackType
from typing import Final, Self

from torc_framework.client import TorcClient
from torc_framework.errors import TorcError

DECISIVE: Final = frozenset(
    {"workflow_completed", "workflow_canceled", "compute_node_stopped", "job_pending_failed", "job_retried"}
)
"""Types of events after which a workflow is worth a look."""


class EventWaiter:
    """Follows a workflow's events in a thread of its own; without a stream, waiting is just waiting."""

    def __init__(self, client: TorcClient, workflow_id: int) -> None:
        self._rang = threading.Event()
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
                    self._rang.set()
        except TorcError:
            return  # looking now and then goes on

    def wait(self, seconds: float) -> None:
        """Wait so long, or until something decisive has happened since the last wait."""
        self._rang.wait(seconds)
        self._rang.clear()
