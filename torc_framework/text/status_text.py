"""Statuses as text: glyph, word and colour of each, so that no status is told from another by its colour alone."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from torc_framework.text.colours import painted, uses_unicode


@frozen
class StatusLook:
    """How a status is shown.

    Attributes:
        glyph: One character.
        ascii: The same for streams that take ASCII only.
        colour: Name of a colour of `torc_framework.text.colours.CODES`.
        word: What a person reads; it is the status in JSON, with spaces.
    """

    glyph: str
    ascii: str
    colour: str
    word: str


STATUS_LOOKS: Final[Mapping[str, StatusLook]] = {
    "running": StatusLook("▶", ">", "cyan", "running"),
    "pending": StatusLook("…", ":", "cyan", "pending"),
    "ready": StatusLook("○", "o", "", "ready"),
    "blocked": StatusLook("□", "=", "dim", "blocked"),
    "uninitialized": StatusLook("·", ".", "dim", "uninitialized"),
    "completed": StatusLook("✓", "+", "green", "completed"),
    "failed": StatusLook("✗", "x", "red", "failed"),
    "terminated": StatusLook("■", "#", "red", "terminated"),
    "pending_failed": StatusLook("?", "?", "magenta", "pending failed"),
    "canceled": StatusLook("⊘", "/", "yellow", "canceled"),
    "disabled": StatusLook("–", "-", "dim", "disabled"),
}
"""All statuses of jobs, by their label in JSON, in the order in which summaries list them."""

RUNNER_LOOKS: Final[Mapping[str, StatusLook]] = {
    "works": StatusLook("▶", ">", "green", "works"),
    "drains": StatusLook("◌", "o", "yellow", "drains"),
    "silent": StatusLook("⚠", "!", "red", "silent"),
    "lost": StatusLook("✗", "x", "red", "lost"),
    "ended": StatusLook("■", "#", "dim", "ended"),
}
"""What runners do, as `models.runner_states` tells it; lost is one whose process does not exist on this machine."""


def status_glyph(label: str, stream: Any = None) -> str:
    """Return the glyph of a status in its colour; the stream is by default standard output."""
    look = STATUS_LOOKS[label]
    return painted(look.glyph if uses_unicode(stream) else look.ascii, look.colour, stream)


def status_text(label: str, stream: Any = None) -> str:
    """Return glyph and word of a status in its colour, such as ``✓ completed``; an unknown status is unchanged."""
    look = STATUS_LOOKS.get(label)
    if look is None:
        return label
    glyph = look.glyph if uses_unicode(stream) else look.ascii
    return painted(f"{glyph} {look.word}", look.colour, stream)


def symbol(unicode: str, ascii_: str, stream: Any = None) -> str:
    """Return a character, or its replacement for a stream that takes ASCII only."""
    return unicode if uses_unicode(stream) else ascii_
