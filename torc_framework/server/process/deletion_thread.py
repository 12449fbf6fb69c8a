"""The thread that continues, when a server starts, the deletion of workflows that an earlier server began."""

import logging
import threading
from typing import Final

from torc_framework.store.database.base import Database
from torc_framework.store.errors import StoreError
from torc_framework.store.workflows.deletion import finish_deletions, unfinished_deletions

_log = logging.getLogger("torc.server")
_LEFT: Final = "the rows of deleted workflows stay until the next start of the server: %s"


class DeletionThread:
    """Runs `finish_deletions` once.

    Args:
        database: The database; it must stay open until `close` has returned.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="deletions", daemon=True)

    def start(self) -> None:
        """Start the thread if an earlier server left rows.

        Without room for another thread the rows stay until the next start.
        """
        if not unfinished_deletions(self._database):
            return
        try:
            self._thread.start()
        except RuntimeError as error:
            _log.error(_LEFT, error)

    def close(self) -> None:
        """Stop after the present transaction; wait for its end."""
        self._is_stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            finish_deletions(self._database, self._is_stopping.is_set)
        except StoreError as error:
            _log.error(_LEFT, error)
