"""Attempts that wait for one other attempt, and start in its place when it has ended with exit code 0."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torc_framework.supervision.supervisor import AttemptOrder, Key


class Followers:
    """The orders of waiting followers, each by the attempt that it waits for.

    A follower may itself be waited for, so that the orders form chains.
    """

    def __init__(self) -> None:
        self._orders: dict[Key, AttemptOrder] = {}
        self._waiting: set[Key] = set()

    def __len__(self) -> int:
        return len(self._orders)

    def __contains__(self, key: object) -> bool:
        """Return whether an attempt is a waiting follower."""
        return key in self._waiting

    def add(self, predecessor: Key, order: AttemptOrder) -> None:
        """Let an attempt wait for ``predecessor``, instead of any other that waited for it."""
        self.drop_behind(predecessor)
        self._orders[predecessor] = order
        self._waiting.add(order.key)

    def take(self, predecessor: Key) -> AttemptOrder | None:
        """Remove and return the order of the attempt that waits for ``predecessor``; those behind it stay."""
        order = self._orders.pop(predecessor, None)
        if order is not None:
            self._waiting.discard(order.key)
        return order

    def drop_behind(self, predecessor: Key) -> None:
        """Remove the whole chain that waits for ``predecessor``."""
        while (order := self.take(predecessor)) is not None:
            predecessor = order.key

    def clear(self) -> None:
        """Remove all."""
        self._orders.clear()
        self._waiting.clear()
