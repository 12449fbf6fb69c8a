"""Lists without a frame: a header in capitals, columns that fit the terminal, names shortened in the middle."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from attrs import frozen

from torc_framework.text.colours import painted, uses_unicode
from torc_framework.text.quantities import count_text
from torc_framework.text.terminal import one_line
from torc_framework.text.widths import ELLIPSIS, padded_text, shortened, text_width

GAP: Final = "  "
"""What separates two columns."""
LEAST_WIDTH: Final = 8
"""Least width to which a column is shortened."""


@frozen
class ListColumn:
    """One column of a list.

    Attributes:
        heading: Its heading, in capitals.
        cell: Returns the text of a row; None or "" for an empty cell. A column of empty cells is left out.
        right: It is aligned to the right, as numbers are.
        shrinks: Its texts may be shortened: ``middle`` of names, ``end`` of sentences; None is never.
        colour: Returns the colour of a row's text, a name of `torc_framework.text.colours.CODES`.
    """

    heading: str
    cell: Callable[[Any], str | None]
    right: bool = False
    shrinks: str | None = None
    colour: Callable[[Any], str] | None = None


def output_width() -> int | None:
    """Return the columns that lists may take: those of the terminal, or of ``COLUMNS``; None without a limit."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return None


def list_text(columns: Sequence[ListColumn], records: Iterable[Any], *, indent: str = "", width: int | None = 0) -> str:
    """Return a list with one line for each record, below a header.

    Args:
        columns: The columns; those whose cells are all empty are left out.
        records: What the cells are made from.
        indent: What every line begins with.
        width: Most columns of a line; None without a limit; 0 stands for `output_width`.
    """
    rows = list(records)
    layout = ListLayout(columns, rows, indent=indent, width=width)
    return layout.header + layout.lines(rows)


def list_parts(columns: Sequence[ListColumn], blocks: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield a list in parts; the width of each column is that of its cells in the first block.

    If there are several blocks, columns of empty cells are not left out.
    """
    left = iter(blocks)
    first, second = next(left, ()), next(left, None)
    layout = ListLayout(columns, first, leaves_out=second is None)
    yield layout.header + layout.lines(first)
    if second is not None:
        yield from map(layout.lines, chain([second], left))


class ListLayout:
    """The columns of a list and their widths, made from some of its rows.

    Args:
        columns: The columns.
        rows: The rows.
        indent: What every line begins with.
        width: As in `list_text`.
        leaves_out: Leave out columns whose cells are all empty.
    """

    def __init__(
        self,
        columns: Sequence[ListColumn],
        rows: Sequence[Any],
        *,
        indent: str = "",
        width: int | None = 0,
        leaves_out: bool = True,
    ) -> None:
        texts = [[one_line(column.cell(row) or "") for row in rows] for column in columns]
        kept = [index for index, cells in enumerate(texts) if any(cells) or not leaves_out]
        self._columns = [columns[index] for index in kept]
        self._indent = indent
        widths = [max(text_width(columns[n].heading), *map(text_width, texts[n]), 0) for n in kept]
        limit = output_width() if width == 0 else width
        if limit is not None:
            widths = _fitted(self._columns, widths, limit - len(indent) - len(GAP) * (len(kept) - 1))
        self._widths = widths

    @property
    def header(self) -> str:
        """The line with the headings; empty without columns."""
        header = _line([column.heading for column in self._columns], self._columns, self._widths)
        return f"{self._indent}{header}".rstrip() + "\n" if header else ""

    def lines(self, rows: Iterable[Any]) -> str:
        """Return the lines of rows."""
        made = []
        for row in rows:
            texts = [one_line(column.cell(row) or "") for column in self._columns]
            colours = [column.colour(row) if column.colour else "" for column in self._columns]
            made.append(f"{self._indent}{_line(texts, self._columns, self._widths, colours)}".rstrip() + "\n")
        return "".join(made)


def _fitted(columns: Sequence[ListColumn], widths: Sequence[int], room: int) -> list[int]:
    """Return widths whose sum fits the room, as far as columns may be shortened; the widest are shortened first."""
    fitted = list(widths)
    may_shrink = [index for index, column in enumerate(columns) if column.shrinks]
    while (excess := sum(fitted) - room) > 0:
        open_ = sorted((index for index in may_shrink if fitted[index] > LEAST_WIDTH), key=lambda index: -fitted[index])
        if not open_:
            break
        next_width = fitted[open_[1]] if len(open_) > 1 else LEAST_WIDTH
        fitted[open_[0]] -= min(excess, max(1, fitted[open_[0]] - max(next_width, LEAST_WIDTH)))
    return fitted


def _line(
    texts: Sequence[str], columns: Sequence[ListColumn], widths: Sequence[int], colours: Sequence[str] | None = None
) -> str:
    ellipsis = ELLIPSIS if uses_unicode() else "..."
    parts = []
    for index, (text, column, width) in enumerate(zip(texts, columns, widths, strict=True)):
        fits = shortened(text, width, ellipsis=ellipsis, at_end=column.shrinks == "end") if column.shrinks else text
        parts.append(padded_text(painted(fits, colours[index] if colours else ""), width, right=column.right))
    return GAP.join(parts)


def omitted_text(shown: int, total: int, how: str = "--limit 0 shows all") -> str:
    """Return the last line of a list of which rows are left out; empty if none are."""
    return f"Showing {count_text(shown)} of {count_text(total)}; {how}\n" if shown < total else ""


def names_text(names: Sequence[str], total: int | None = None, most: int = 5) -> str:
    """Return names such as ``train_4, train_5 and 35 others``, at most five of them.

    Args:
        names: The names, or the first of them.
        total: How many there are; by default those that are given.
        most: Most names that are shown.
    """
    count = len(names) if total is None else total
    shown = list(names[:most])
    if (more := count - len(shown)) > 0:
        return f"{', '.join(shown)} and {count_text(more, 'other')}"
    return ", ".join(shown)
