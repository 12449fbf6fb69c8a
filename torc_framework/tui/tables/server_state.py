"""Whether the server answers, and how old what is shown is."""

import time

from attrs import define

from torc_framework.text.quantities import duration_text
from torc_framework.tui.tables.looks import Cell


@define
class ServerContact:
    """The last answer, and since when there is none.

    Attributes:
        answered_at: Time of the last answer, seconds since the epoch; None before the first.
        away_since: Time since which no request was answered; None while the server answers.
        error: Why.
        is_live: The event stream is connected.
    """

    answered_at: float | None = None
    away_since: float | None = None
    error: str = ""
    is_live: bool = False

    def answered(self) -> bool:
        """Note an answer; return whether that is news."""
        was_away, self.away_since = self.away_since is not None, None
        self.answered_at = time.time()
        return was_away

    def failed(self, error: str) -> None:
        """Note that the server did not answer."""
        self.away_since = self.away_since or time.time()
        self.error = error

    def cells(self) -> list[Cell]:
        """Return the state as texts."""
        if self.away_since is not None:
            age = "" if self.answered_at is None else f", data is {duration_text(time.time() - self.answered_at)} old"
            return [(f"could not connect{age}: {self.error} ", "red")]
        if self.answered_at is None:
            return [("connecting ... ", "yellow")]
        return [("[SSE Live] ", "green")] if self.is_live else [("not live ", "yellow")]
