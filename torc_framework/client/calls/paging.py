"""The page size of list requests, the place of the next page, and the types of generic responses."""

from collections.abc import Sequence
from typing import Any, Final

from torc_framework.models.responses import CompletionState, Page

__all__ = ["PAGE_SIZE", "CompletionState", "JsonObject", "ListPosition", "Page"]

PAGE_SIZE: Final = 10_000
"""Most records that the server returns in one page."""

JsonObject = dict[str, Any]
"""A response without a class of its own."""


class ListPosition:
    """Where the next page of a list begins: after the last item that was read.

    A server older than the parameter ``after_id`` ignores it and returns the beginning of the list. From then on the
    pages are requested by their offset.

    Args:
        offset: Items to skip at the beginning of the list.
        is_by_id: The list is in the order of its ids.
    """

    def __init__(self, offset: int = 0, *, is_by_id: bool = True) -> None:
        self._offset = self._start = offset
        self._is_by_id = is_by_id
        self._after_id: int | None = 0 if is_by_id and not offset else None
        self._first_id: int | None = None
        self._has_after_id = True

    @property
    def query(self) -> JsonObject:
        """The query parameters of the next page."""
        if self._has_after_id and self._after_id is not None:
            return {"after_id": self._after_id}
        return {"offset": self._offset} if self._offset else {}

    def accepts(self, ids: Sequence[int], total: int) -> bool:
        """Move behind a page; return False if it is the beginning of the list again, to be requested anew.

        Args:
            ids: The ids of its items.
            total: Its ``total_count``.
        """
        if ids and self._has_after_id and self._after_id and self._is_beginning(ids, total):
            self._has_after_id = False
            return False
        self._offset += len(ids)
        if ids:
            self._first_id, self._after_id = ids[0], ids[-1]
        return True

    def _is_beginning(self, ids: Sequence[int], total: int) -> bool:
        if self._is_by_id:
            return ids[0] <= (self._after_id or 0)
        # After an id, the server counts the items of the page, and one more if others follow.
        return total > len(ids) + 1 if self._start else ids[0] == self._first_id


def after_last(keys: Sequence[tuple[int, ...]], after: tuple[int, ...]) -> tuple[int, ...]:
    """Return the ids of the last item of a page, and how many items with these ids have been listed.

    Args:
        keys: The ids of the items of the page, at least one.
        after: What this function returned for the page before.
    """
    last = keys[-1]
    equal = next((number for number, key in enumerate(reversed(keys)) if key != last), len(keys))
    before = after[-1] if equal == len(keys) and after[:-1] == last else 0
    return *last, before + equal
