"""Output for terminals and for scripts: tables with rounded boxes, name-value lists, JSON."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any, Final

import attrs

from torc_framework.models.resources import parse_duration, parse_memory
from torc_framework.text.colours import terminal_sequences
from torc_framework.text.quantities import duration_text, exact_duration_text, exact_size_text, size_text
from torc_framework.text.terminal import cleaned, print_line

RICH_ROWS: Final = 1000
"""Rows of the longest table that is drawn with boxes by rich; longer ones are plain columns, which are faster."""
RECORDS_AT_ONCE: Final = 1000
"""Records of a long list that are made JSON at once."""
BLOCK_ROWS: Final = 10_000
"""Rows of a long table that are made text at once."""
PIPE_WIDTH: Final = 10_000
"""Width in characters of a table that does not go to a terminal."""

Column = tuple[str, str | Callable[[Any], Any]]
"""The heading of a column, and the field, the mapping's key or the function that gives its cells."""


def print_json(value: Any) -> None:
    """Print one JSON document: records as objects with all their fields."""
    print(_json_lines(value))


def print_json_list(
    key: str,
    records: Iterable[Any],
    *,
    before: Mapping[str, Any] | None = None,
    after: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """Print a JSON object with a list, as `print_json` does, without ever having all records in memory.

    Args:
        key: Name of the list.
        records: The list.
        before: Other fields, which precede it.
        after: Returns other fields, which follow it; called when all records have been printed.
    """
    left = iter(records)
    first = _json_lines(before)[1:-2] + ",\n" if before else "\n"
    opening = f'{{{first}  "{key}": ['
    is_empty = True
    while part := list(islice(left, RECORDS_AT_ONCE)):
        sys.stdout.write(opening + _json_lines(part)[1:-2].replace("\n", "\n  "))
        opening, is_empty = ",", False
    rest = after()
    end = f",{_json_lines(rest)[1:]}" if rest else "\n}"
    print(f"{opening}]{end}" if is_empty else f"\n  ]{end}")


def _json_lines(value: Any) -> str:
    """Return a value as JSON with an indent."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(_json_value(value)), indent=2).decode()


def json_line(value: Any) -> str:
    """Return a record as JSON on one line, for streams of records."""
    import msgspec

    return msgspec.json.encode(_json_value(value)).decode()


_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def _json_value(value: Any) -> Any:
    """Return JSON values; the fields of records keep the order of their declaration."""
    if type(value) in _SCALARS:
        return value
    if names := _field_names(type(value)):  # type: ignore[arg-type]  # mypy does not know that classes are hashable
        value = {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return {
            key if type(key) is str else str(key): item if type(item) in _SCALARS else _json_value(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    return value


@cache
def _field_names(kind: type) -> list[str]:
    """Return the names of the fields of a class of records; empty for another class."""
    return [attribute.name for attribute in attrs.fields(kind)] if attrs.has(kind) else []


def print_paged(text: str) -> None:
    """Print a text; one that is longer than the terminal is shown by ``PAGER``, by default ``less``."""
    import shutil

    text = cleaned(text)
    pager = _pager() if text.count("\n") >= shutil.get_terminal_size().lines else []
    _print_to_pager(pager, [text]) if pager else sys.stdout.write(text)


def print_parts(parts: Iterable[str], *, may_page: bool) -> None:
    """Print a text whose parts are made while it is printed.

    Args:
        parts: The text.
        may_page: Show it as `print_paged` does.
    """
    left = iter(parts)
    first, second = next(left, ""), next(left, None)
    if not may_page:
        sys.stdout.writelines(chain([first, second or ""], left))
    elif second is None:
        print_paged(first)
    else:
        pager, cleaned_parts = _pager(), map(cleaned, chain([first, second], left))
        _print_to_pager(pager, cleaned_parts) if pager else sys.stdout.writelines(cleaned_parts)


def _pager() -> list[str]:
    """Return the command of the pager; empty if there is none, or the output is not a terminal."""
    import os
    import shutil

    pager = os.environ.get("PAGER", "less").split() if sys.stdout.isatty() else []
    return pager if pager and shutil.which(pager[0]) else []


def with_end(parts: Iterable[str], end: Callable[[], str]) -> Iterator[str]:
    """Yield the parts of a text, the last one with an end, which is made when all others have been taken."""
    last = None
    for part in parts:
        if last is not None:
            yield last
        last = part
    if last is not None:
        yield last + end()


def _print_to_pager(pager: list[str], parts: Iterable[str]) -> None:
    import os
    import subprocess

    environment = {"LESS": "FRSX", **os.environ}
    with (
        contextlib.suppress(BrokenPipeError),  # the user left the pager before its end
        subprocess.Popen(pager, stdin=subprocess.PIPE, text=True, encoding="utf-8", env=environment) as shown,
    ):
        assert shown.stdin is not None
        shown.stdin.writelines(map(terminal_sequences, parts))


def print_table(columns: Sequence[Column], records: Iterable[Any]) -> None:
    """Print records as a table with one row for each."""
    sys.stdout.write(table_text(columns, records))


def table_text(columns: Sequence[Column], records: Iterable[Any]) -> str:
    """Return a table with one row for each record."""
    rows = [[_cell(record, source) for _, source in columns] for record in records]
    headings = [heading for heading, _ in columns]
    if len(rows) > RICH_ROWS:
        return _plain_table(headings, rows)
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings, box=box.ROUNDED)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(color_system=None, width=None if sys.stdout.isatty() else PIPE_WIDTH, soft_wrap=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def plain_table_parts(columns: Sequence[Column], blocks: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield a table without boxes in parts; the width of each column is that of its cells in the first block."""
    widths: list[int] = []
    for block in blocks:
        rows = [[_cell(record, source) for _, source in columns] for record in block]
        if not widths:
            headings = [heading for heading, _ in columns]
            widths = _widths(headings, rows)
            yield _plain_lines([headings], widths)
        yield _plain_lines(rows, widths)


def _plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return _plain_lines([headings, *rows], _widths(headings, rows))


def _widths(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[index]) for row in (headings, *rows)) for index in range(len(headings))]


def _plain_lines(rows: Iterable[Sequence[str]], widths: Sequence[int]) -> str:
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(line.rstrip() + "\n" for line in lines)


def blocks_of(records: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield records in lists of `BLOCK_ROWS`."""
    left = iter(records)
    while block := [*islice(left, BLOCK_ROWS)]:
        yield block


def _field(record: Any, name: str) -> Any:
    return record[name] if isinstance(record, Mapping) else getattr(record, name)


def _cell(record: Any, source: str | Callable[[Any], Any]) -> str:
    value = source(record) if callable(source) else _field(record, source)
    return "" if value is None else cleaned(str(value)).replace("\n", " ")


def print_pairs(title: str, pairs: Mapping[str, Any]) -> None:
    """Print a title and name-value lines below it; values that are None are left out."""
    print_line(title)
    for name, value in pairs.items():
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            print(f"  {name}: " + text.replace("\n", "\n    | "))


def memory_text(size_bytes: float | None) -> str | None:
    """Return a size such as ``73.8 MiB``; None for None."""
    return None if size_bytes is None else size_text(size_bytes)


def peak_memory_text(result: Any) -> str | None:
    """Return the peak memory of a result record, such as ``9.6 MiB``; ``<9.6 MiB`` where only a bound is known."""
    observation = result.observation if isinstance(result.observation, dict) else {}
    bound = observation.get("raw", {}).get("peak_memory_below_bytes")
    if result.peak_memory_bytes is None and bound is not None:
        return f"<{memory_text(bound)}"
    return memory_text(result.peak_memory_bytes)


def seconds_text(seconds: float | None) -> str | None:
    """Return a duration such as ``20 ms``, ``12 s``, ``4 min 05 s`` or ``2 h 03 min``; None for None."""
    return None if seconds is None else duration_text(seconds)


def requested_memory_text(record: Any) -> str:
    """Return the requested memory of a record or mapping, such as ``1600 MiB``: exactly what was asked for."""
    return exact_size_text(parse_memory(_field(record, "memory")))


def requested_runtime_text(record: Any) -> str:
    """Return the requested run time of a record or mapping, such as ``2 h 05 min``: exactly what was asked for."""
    return exact_duration_text(parse_duration(_field(record, "runtime")))
