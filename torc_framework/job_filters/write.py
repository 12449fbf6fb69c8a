"""Writing of filters: texts that `parse_filter` reads as the given values."""

import re
from collections.abc import Iterable
from typing import Final

from torc_framework.job_filters.parser import ESCAPE, QUOTE
from torc_framework.job_filters.values import ANY_TEXT, Presence

_BARE: Final = re.compile(r"[A-Za-z0-9_.#/+][-A-Za-z0-9_.#/+*]*")
_RESERVED: Final = frozenset(each.value for each in Presence)


def quoted_value(text: str, *, keeps_wildcards: bool = False, always: bool = False) -> str:
    """Return a value of a filter for a text, in quotes where they are needed.

    Args:
        text: The text.
        keeps_wildcards: Each ``*`` in it stands for any characters, not for itself.
        always: Put it in quotes, as the whole label of a group needs.
    """
    needs_escape = ANY_TEXT in text and not keeps_wildcards
    if _BARE.fullmatch(text) and text.lower() not in _RESERVED and not needs_escape and not always:
        return text
    special = (ESCAPE, QUOTE) if keeps_wildcards else (ESCAPE, QUOTE, ANY_TEXT)
    return QUOTE + "".join(f"{ESCAPE}{letter}" if letter in special else letter for letter in text) + QUOTE


def filter_text(terms: Iterable[tuple[str, object]]) -> str:
    """Return a filter of terms ``FIELD:VALUE``; the values are texts that are written already, or numbers.

    A value that is None stands for jobs without a value.
    """
    return " ".join(f"{field}:{Presence.NONE.value if value is None else value}" for field, value in terms)
