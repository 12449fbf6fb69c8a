"""What a list shows, and how a page of it is read."""

from collections.abc import Callable, Sequence

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.tui.tables.virtual_table import TableRow


@frozen
class ListQuery:
    """What a list shows: a filter, and an order.

    Attributes:
        filter_text: Text of the filter language for jobs; ``field:value`` terms for records.
        sort: A field, ``-`` before it for the reverse order; empty is the list's own.
    """

    filter_text: str = ""
    sort: str = ""


PageReader = Callable[[TorcClient, int, ListQuery, int], tuple[list[TableRow], int]]
"""Reads the page that begins with a row of a list of a workflow; returns its rows and the number of all."""


def filter_values(text: str, filters: Sequence[str]) -> dict[str, str]:
    """Return ``field:value`` terms as the server's list filters; all other words together are for the first."""
    found: dict[str, str] = {}
    words = []
    for term in text.split():
        name, separator, value = term.partition(":")
        if separator and name in filters:
            found[name] = value
        else:
            words.append(term)
    return found | ({filters[0]: " ".join(words)} if words and filters else {})
