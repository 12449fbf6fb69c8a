"""Group commit: several changes in one transaction, each in a savepoint of its own.

The durable part of a commit takes as long for a hundred changes as for one. Each change has the outcome that it would
have alone: a change that raises is undone to its savepoint, and the others are committed.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Final

from attrs import define, frozen

from torc_framework.store.database.disk_full import is_disk_full
from torc_framework.store.database.sql import Tx

Change = Callable[[Tx], Any]
"""A change of the database; it may be called again after its first call was rolled back."""

GROUP_S: Final = 0.05
"""Seconds after which a transaction takes no further change, so that the first ones do not wait long for the commit."""


@frozen
class Outcome:
    """What a change returned, or the exception that it raised."""

    value: Any = None
    error: Exception | None = None


@define
class GroupTransaction:
    """One transaction of several changes.

    Attributes:
        translated: Returns the error of the store that an error of the driver means, None if it means none.
        outcomes: The outcomes of the changes that were made so far.
        tx: The transaction; None before it has begun.
        is_ending: All changes were made, and the commit has begun.
    """

    translated: Callable[[Exception], Exception | None]
    outcomes: list[Outcome]
    tx: Tx | None = None
    is_ending: bool = False

    def make(self, whole: Tx, changes: Sequence[Change]) -> None:
        """Make changes until `GROUP_S` is over, the first one in any case; a single one needs no savepoint.

        Args:
            whole: The transaction; it gets what the listeners have to know of the changes that were made.
            changes: The changes, in their order.

        Raises:
            Exception: the database has ended the transaction, or the single change failed; no change is made.
        """
        self.tx = whole
        until = time.monotonic() + GROUP_S
        for change in changes:
            if self.outcomes and time.monotonic() > until:
                break
            self.outcomes.append(Outcome(change(whole)) if len(changes) == 1 else self._in_savepoint(whole, change))
        self.is_ending = True

    def _in_savepoint(self, whole: Tx, change: Change) -> Outcome:
        whole.begin_savepoint(is_first=not self.outcomes)
        try:
            with closing(whole.part()) as tx:
                value = change(tx)
                tx.send_waiting()
        except Exception as error:
            whole.undo_to_savepoint()
            meant = self.translated(error)
            if meant is not None:
                meant.__cause__ = error
            return Outcome(error=meant or error)
        whole.add_notifications(tx)
        return Outcome(value)

    def is_repeatable(self, error: Exception) -> bool:
        """Return whether each change may be made again, alone, after the transaction raised an error.

        A change may have been more than the disk had room for, and others are not. An error during the commit leaves
        open whether the transaction is stored, except for a full disk. After a lost connection the changes would wait
        for a new one, one after the other.
        """
        if self.tx is None or not self.tx.is_connected:
            return False
        return not self.is_ending or is_disk_full(error)
