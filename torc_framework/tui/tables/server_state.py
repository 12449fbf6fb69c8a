"""Whether the server answers, and how old what is shown is."""

import time
from typing import Final

from attrs import define

from torc_framework.text.quantities import duration_text
from torc_framework.tui.tables.looks import Cell

SILENT_S: Final = 4.0
"""Seconds after the last answer after which the server is asked for another one."""
SLOW_S: Final = 3.0
"""Seconds without an answer after which that is shown, with the age of what is on the screen."""


@define
class ServerContact:
    """The last answer, and since when there is none.

    Attributes:
        answered_at: Time of the last answer, seconds since the epoch; None before the first.
        away_since: Time since which no request was answered; None while the server answers.
        error: Why.
        is_live: The event stream is connected.
        silent_s: Seconds for which the oldest request under way has had no answer.
    """

    answered_at: float | None = None
    away_since: float | None = None
    error: str = ""
    is_live: bool = False
    silent_s: float = 0.0

    def answered(self) -> bool:
        """Note an answer; return whether that is news."""
        was_away, self.away_since = self.away_since is not None, None
        self.answered_at = time.time()
        return was_away

    def failed(self, error: str) -> None:
        """Note that the server did not answer."""
        self.away_since = self.away_since or time.time()
        self.error = error

    @property
    def is_silent(self) -> bool:
        """Whether the server answers, and the last answer is so old that it should be asked whether it still does."""
        is_old = self.answered_at is not None and time.time() - self.answered_at >= SILENT_S
        return is_old and self.away_since is None

    @property
    def is_slow(self) -> bool:
        """Whether a request has had no answer for so long that it is shown."""
        return self.silent_s >= SLOW_S

    def cells(self, *, has_server: bool) -> list[Cell]:
        """Return the state as texts.

        Args:
            has_server: There is a server that may answer.
        """
        if not has_server:
            return [(f"no server{self._age()}: S starts one, u takes a URL ", "yellow")]
        if self.away_since is not None:
            return [(f"could not connect{self._age()}: {self.error} ", "red")]
        if self.is_slow:
            return [(f"no answer for {duration_text(self.silent_s, exact=True)}{self._age()} ", "yellow")]
        if self.answered_at is None:
            return [("connecting ... ", "yellow")]
        return [("[SSE Live] ", "green")] if self.is_live else [("not live ", "yellow")]

    def _age(self) -> str:
        """Return how old what is shown is, as a clause; empty before the first answer."""
        return (
            ""
            if self.answered_at is None
            else f", data is {duration_text(time.time() - self.answered_at, exact=True)} old"
        )
