"""Keys of screens and lists."""

from typing import Protocol, runtime_checkable

from textual.binding import Binding


def bound(keys: str, action: str) -> Binding:
    """Return the binding of some keys to an action, which is carried out before the next key is dealt with.

    Without priority textual passes a key to the focused widget's own queue. Of keys that arrive together, as they do
    from a slow line, a later one would then act before an earlier one, or on the screen that the earlier one leaves.
    """
    return Binding(keys, action, show=False, priority=True)


@runtime_checkable
class ShowsMessage(Protocol):
    """A screen with a message that stays until the next key."""

    def drop_message(self) -> None:
        """Show the message no longer."""
