"""Values that are kept in memory between requests, by database and key; the least recently used ones are dropped."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from torc_framework.store.database.sql import Tx

_V = TypeVar("_V")


class KeptValues(Generic[_V]):
    """Values up to a total weight.

    A value that is heavier than that is not kept.

    Args:
        most_weight: Largest sum of the weights of kept values, for each database.
        weight: Returns the weight of a value.
    """

    def __init__(self, most_weight: int, weight: Callable[[_V], int]) -> None:
        self._most, self._weight = most_weight, weight
        self._kept: weakref.WeakKeyDictionary[Any, OrderedDict[Hashable, _V]] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        self.making = threading.Lock()
        """Held while a value is made, so that equal requests at the same time make it once."""

    def get(self, tx: Tx, key: Hashable) -> _V | None:
        """Return the value of a key in the database of a transaction; None if there is none."""
        with self._lock:
            kept = self._kept.get(tx.connection.engine)
            if kept is None or key not in kept:
                return None
            kept.move_to_end(key)
            return kept[key]

    def keep(self, tx: Tx, key: Hashable, value: _V) -> None:
        """Keep a value, and drop those that were not used for the longest time."""
        with self._lock:
            kept = self._kept.setdefault(tx.connection.engine, OrderedDict())
            kept.pop(key, None)
            kept[key] = value
            while kept and sum(map(self._weight, kept.values())) > self._most:
                kept.popitem(last=False)
