"""The screen that is shown once its content has come from the server, and how it is given up."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torc_framework.client import TorcClient


class Ask(Protocol):
    """Carries out a request in a thread."""

    def __call__(
        self,
        kind: Hashable,
        request: "Callable[[TorcClient], Any]",
        on_answer: Callable[[Any], None],
        on_failure: Callable[[], None] = ...,
    ) -> None:
        """Carry out a request; call one of the two functions with its outcome in the thread of the screens."""


class AwaitedScreen:
    """At most one screen waits for its content: the one that was asked for last.

    It is given up by Escape and when another screen is shown, so that a key that is meant for that one reaches no
    question that came late.

    Args:
        ask: How its content is asked for.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._awaited: object | None = None

    def request(
        self, kind: Hashable, request: "Callable[[TorcClient], Any]", on_content: Callable[[Any], None]
    ) -> None:
        """Ask for the content of a screen; call ``on_content``, which shows it, unless it was given up before."""
        self._awaited = asked = object()

        def take(content: Any) -> None:
            if self._awaited is asked:
                self._awaited = None
                on_content(content)

        def fail() -> None:
            if self._awaited is asked:
                self._awaited = None

        self._ask(kind, request, take, fail)

    def give_up(self) -> bool:
        """Show no screen any more whose content has not come; return whether there was one."""
        was_awaited, self._awaited = self._awaited is not None, None
        return was_awaited
