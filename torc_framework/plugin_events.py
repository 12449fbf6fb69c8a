"""Events for plugins: the hook `torc_on_event` is called with the events that the server has stored.

One process at a time passes the events of a workflow, each in the order of the ids: the one that holds the lock on the
cursor, a file in the output directory with the id of the last event that was passed. The next process continues
there, so that events stored while no process worked, and those that a killed process did not pass, are passed later.
"""

import fcntl
import logging
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from torc_framework.errors import ApiError, ServerUnreachableError, TorcError
from torc_framework.models.records import EventRecord, WorkflowRecord
from torc_framework.plugins.watched_calls import is_stuck
from torc_framework.system.private_files import create_private
from torc_framework.system.processes import start_thread_with_retry

if TYPE_CHECKING:
    from torc_framework.client import TorcClient
    from torc_framework.client.http.event_stream import EventStream, StreamedEvent
    from torc_framework.plugins.manager import PluginManager

_log = logging.getLogger(__name__)
_HOOK: Final = "torc_on_event"
_RUNNER_LEFT: Final = "compute_node_stopped"
LOCK_RETRY_S: Final = 1.0
"""How often a process tries to become the one that passes the events, seconds."""


class PluginEvents:
    """A context in which the events of a workflow are passed to plugins; it costs nothing if no plugin has the hook.

    A thread passes the events as they are stored. At its end the context passes those that are left.

    Args:
        client: The server.
        plugins: The plugins.
        workflow_id: The workflow.
        state_dir: Folder of the cursor.
    """

    def __init__(self, client: "TorcClient", plugins: "PluginManager", workflow_id: int, state_dir: Path) -> None:
        self._client, self._plugins, self._workflow_id, self._state_dir = client, plugins, workflow_id, state_dir
        self._closing = threading.Event()
        self._stream: EventStream | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if any(_HOOK in info.hooks for info in self._plugins.infos()):
            self._thread = threading.Thread(target=self._guarded, args=(self._follow,), name="torc-events", daemon=True)
            start_thread_with_retry(self._thread)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is None:
            return
        self._closing.set()
        if (stream := self._stream) is not None:
            stream.close()
        try:
            self._thread.join()
        except KeyboardInterrupt:
            if not is_stuck(self._thread):
                raise
            return  # a plugin does not return; the next process passes the events that are left
        if not isinstance(error, ServerUnreachableError):
            self._guarded(self._pass_rest)

    def _guarded(self, work: Any) -> None:
        """Call a function; log its error, because events for plugins must not stop the workflow."""
        try:
            work()
        except (TorcError, OSError) as error:
            is_deleted = isinstance(error, ApiError) and error.status == 404
            level = logging.DEBUG if is_deleted or self._closing.is_set() else logging.WARNING
            _log.log(level, "plugins receive no further events of workflow %d: %s", self._workflow_id, error)

    def _follow(self) -> None:
        """Pass events as they are stored, as soon and as long as no other process does, until the context ends."""
        path = self._cursor_path()
        while not self._closing.is_set():
            cursor = _Cursor.locked(path)
            if cursor is None:
                self._closing.wait(LOCK_RETRY_S)
                continue
            with cursor:
                self._pass_events(cursor, None)

    def _pass_rest(self) -> None:
        """Pass the events that are stored by now, unless another process passes them."""
        path = self._cursor_path()
        while (cursor := _Cursor.locked(path)) is not None:
            with cursor:
                self._pass_events(cursor, self._newest_id())
            if self._newest_id() <= cursor.last_id:
                return  # otherwise an event arrived whose process may have found the cursor locked

    def _pass_events(self, cursor: "_Cursor", last_id: int | None) -> None:
        """Pass events until that with the id ``last_id`` was passed; without an id, until the context ends."""
        if cursor.is_new:
            cursor.store(self._newest_id(category=_RUNNER_LEFT))
        if last_id is not None and cursor.last_id >= last_id:
            return
        patience = None if last_id is None else 0.0
        with self._client.event_stream(
            self._workflow_id, last_event_id=cursor.last_id, level="debug", patience=patience
        ) as stream:
            if last_id is None:
                self._stream = stream
                if self._closing.is_set():  # it was set before the stream could be closed
                    return
            for event in stream:
                self._plugins.emit(_as_dict(event))
                cursor.store(event.id)
                if (last_id is None and self._closing.is_set()) or (last_id is not None and event.id >= last_id):
                    return

    def _newest_id(self, **query: str) -> int:
        """Return the id of the newest event, 0 without any."""
        page = self._client.page(
            EventRecord, workflow_id=self._workflow_id, limit=1, sort_by="id", reverse_sort=True, **query
        )
        return next((event.id or 0 for event in page.items), 0)

    def _cursor_path(self) -> Path:
        """Return the path of the cursor; it contains the time of creation, because ids repeat in another database."""
        created = self._client.get(WorkflowRecord, self._workflow_id).timestamp
        return self._state_dir / f"events_wf{self._workflow_id}_{re.sub(r'[^0-9]', '', created or '')}.cursor"


class _Cursor:
    """The locked file that holds the id of the last event that was passed.

    Attributes:
        last_id: That id.
        is_new: The file was empty, and no id has been stored since.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        text = os.pread(file, 32, 0).strip()
        self.is_new, self.last_id = not text.isdigit(), int(text) if text.isdigit() else 0

    @classmethod
    def locked(cls, path: Path) -> "_Cursor | None":
        """Return the cursor of a file that no other process has locked; None if one has."""
        file = create_private(path, os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        except OSError as error:  # a file system without locks: every process passes the events
            _log.debug("no lock on %s: %s", path, error)
        return cls(file)

    def store(self, id_: int) -> None:
        """Store the id of the last event that was passed."""
        self.last_id, self.is_new = id_, False
        os.pwrite(self._file, b"%020d\n" % id_, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)


def _as_dict(event: "StreamedEvent") -> dict[str, Any]:
    """Return an event as plugins receive it, with the fields of the events that the server lists."""
    data = event.data if isinstance(event.data, Mapping) else {"value": event.data}
    return {
        "id": event.id,
        "workflow_id": event.workflow_id,
        "timestamp": event.timestamp,
        "severity": event.severity,
        "data": {"event_type": event.event_type, **data},
    }
