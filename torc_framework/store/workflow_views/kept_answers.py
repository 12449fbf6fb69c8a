"""Answers that are kept for all who ask the same of a workflow that has not changed."""

import threading
from collections.abc import Callable, Hashable
from typing import Any, Final

from attrs import define, field

from torc_framework.store.database.sql import Tx
from torc_framework.store.workflow_views.kept_values import KeptValues

_MOST_ANSWERS: Final = 32
"""Answers that are kept for a database; one has up to about a megabyte."""


@define
class _KeptAnswer:
    tag: str = ""
    content: Any = None
    lock: threading.Lock = field(factory=threading.Lock, repr=False, eq=False)


class KeptAnswers:
    """The newest answer to each of the last questions."""

    def __init__(self) -> None:
        self._kept = KeptValues[_KeptAnswer](_MOST_ANSWERS, lambda _kept: 1)

    def made_once(self, tx: Tx, key: Hashable, tag: str, make: Callable[[], Any]) -> Any:
        """Return the kept answer to a question if it has this tag; otherwise make and keep one.

        Of several callers who ask the same at once, one makes it and the others wait.
        """
        with self._kept.making:
            kept = self._kept.get(tx, key)
            if kept is None:
                kept = _KeptAnswer()
                self._kept.keep(tx, key, kept)
        with kept.lock:
            if kept.tag != tag:
                kept.content = make()
                kept.tag = tag
            return kept.content


ANSWERS: Final = KeptAnswers()
"""The answers of this process."""
