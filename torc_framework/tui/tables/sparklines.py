"""Values over time as one line of blocks, and as a plot of several lines, against what was requested."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from torc_framework.tui.tables.looks import Cell, fitted, has_unicode

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_ASCII_BLOCKS: Final = "_.-=+*%#"
OVER: Final = "red"
"""Style of values beyond the limit."""

Values = Sequence[float | None]


def sparkline(values: Values, width: int, limit: float | None) -> list[Cell]:
    """Return values as one line of at most ``width`` blocks; the highest block is the limit, or the largest value.

    Args:
        values: Oldest first; None was not measured. More values than blocks are joined, and their largest is shown.
        width: Most blocks.
        limit: What was requested; values beyond it have their own style.
    """
    shown = joined(values, width)
    top = limit or max((each for each in shown if each is not None), default=0.0)
    blocks = _BLOCKS if has_unicode() else _ASCII_BLOCKS
    cells: list[Cell] = []
    for each in shown:
        if each is None:
            cells.append((" ", ""))
            continue
        is_over = limit is not None and each > limit
        place = 7 if is_over or not top else min(7, int(8 * max(0.0, each) / top))
        cells.append((blocks[place], OVER if is_over else "cyan"))
    return cells


def joined(values: Values, most: int) -> list[float | None]:
    """Return at most so many values: of each run of neighbours the largest one."""
    if len(values) <= most:
        return list(values)
    edges = [round(place * len(values) / most) for place in range(most + 1)]
    parts = (values[begin:end] for begin, end in pairwise(edges))
    return [max((each for each in part if each is not None), default=None) for part in parts]


def plot_lines(
    values: Values, size: tuple[int, int], limit: float | None, text_of: Callable[[float], str]
) -> list[list[Cell]]:
    """Return a plot: bars from the left to the right, a line at the limit, an axis with texts at the left.

    Args:
        values: Oldest first, one for each column; None was not measured.
        size: Columns of the plot with its axis, and its lines.
        limit: What was requested or offered; a dashed line. Values beyond it have their own style.
        text_of: Returns a value as a text of at most nine characters.
    """
    width, height = max(1, size[0] - 11), max(2, size[1])
    shown = _stretched(values, width)
    largest = max((each for each in shown if each is not None), default=0.0)
    top = max(largest, limit or 0.0) or 1.0
    limit_line = None if limit is None else min(height - 1, max(0, height - 1 - int(height * limit / top - 1e-9)))
    labels = {0: text_of(top), height - 1: text_of(0.0)}
    if limit_line is not None and limit is not None and limit < top:
        labels[limit_line] = text_of(limit)
    lines = []
    for line in range(height):
        cells: list[Cell] = [
            (fitted(labels.get(line, ""), 9, is_right=True), "dim"),
            (" │" if has_unicode() else " |", "dim"),
        ]
        cells += [_bar_cell(each, line, height, top, limit, is_limit=line == limit_line) for each in shown]
        lines.append(cells)
    return lines


def _stretched(values: Values, width: int) -> list[float | None]:
    """Return exactly ``width`` values."""
    if not values:
        return [None] * width
    if len(values) >= width:
        return joined(values, width)
    return [values[place * len(values) // width] for place in range(width)]


def _bar_cell(value: float | None, line: int, height: int, top: float, limit: float | None, *, is_limit: bool) -> Cell:
    """Return one character of a plot: a part of a bar, the line of the limit, or nothing."""
    filled = 0.0 if value is None else height * max(0.0, value) / top - (height - 1 - line)
    if filled <= 0 or value is None:
        dash = "┄" if has_unicode() else "-"
        return (dash, "yellow") if is_limit else (" ", "")
    style = OVER if limit is not None and value > limit else "cyan"
    if not has_unicode():
        return ("#", style)
    return (_BLOCKS[min(7, int(8 * filled))], style)
