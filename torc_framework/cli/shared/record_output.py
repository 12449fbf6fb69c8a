"""Output of one or many records: tables, name-value lists and JSON."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from torc_framework.cli.shared.output import (
    Column,
    blocks_of,
    plain_table_parts,
    print_json,
    print_json_list,
    print_pairs,
    print_parts,
    table_text,
    with_end,
)
from torc_framework.cli.shared.session import Session
from torc_framework.models.records import Record, field_names
from torc_framework.models.resources import parse_duration, parse_memory
from torc_framework.text.quantities import duration_text, exact_duration_text, exact_size_text, percent_text, size_text
from torc_framework.text.terminal import print_line


def show_many(session: Session, key: str | None, title: str, columns: Sequence[Column], records: Iterable[Any]) -> None:
    """Print records: a titled table, or JSON wrapped in ``key`` (None: a bare array).

    Of a long list, only a part is in memory at a time, unless it is a bare array.
    """
    if session.wants_json:
        print_json([*records]) if key is None else print_json_list(key, records)
        return
    blocks = blocks_of(records)
    first, second = next(blocks, None), next(blocks, None)
    if first is None:
        print(f"No {title} found.")
        return
    heading = f"{title[:1].upper()}{title[1:]}:\n"
    if second is None:
        parts = iter([f"{heading}{table_text(columns, first)}Total: {len(first)}\n"])
    else:
        counted = CountedBlocks(chain([first, second], blocks))
        table = chain([heading], plain_table_parts(columns, counted))
        parts = with_end(table, lambda: f"Total: {counted.count}\n")
    print_parts(parts, may_page=session.wants_pager)


class CountedBlocks:
    """Blocks of records, and the number of records that have been taken from them."""

    def __init__(self, blocks: Iterable[Sequence[Any]]) -> None:
        self._blocks = blocks
        self.count = 0

    def __iter__(self) -> Iterator[Sequence[Any]]:
        for block in self._blocks:
            self.count += len(block)
            yield block


def show_one(session: Session, title: str, record: Record, **more: Any) -> None:
    """Print one record: its fields line by line, or as a JSON object; ``more`` joins them."""
    values = {name: getattr(record, name) for name in field_names(type(record))} | more
    if session.wants_json:
        print_json(values)
    else:
        print_pairs(f"{title}:", dict(_shown(name, value) for name, value in values.items()))


_AMOUNTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "_bytes": size_text,
    "_gb": lambda gib: size_text(gib * 1024**3),
    "_minutes": lambda minutes: duration_text(minutes * 60),
    "_seconds": duration_text,
    "_percent": percent_text,
}
"""Endings of fields with a number that name its unit, and the text of such a number."""
_REQUESTS: Final[Mapping[str, Callable[[str], str]]] = {
    "memory": lambda text: exact_size_text(parse_memory(text)),
    "runtime": lambda text: exact_duration_text(parse_duration(text)),
}
"""Fields with a requested amount, and what people read for it."""


def _shown(name: str, value: Any) -> tuple[str, Any]:
    """Return the label of a field and its value, an amount with its unit."""
    if name in _REQUESTS and isinstance(value, str):
        return _label(name), _REQUESTS[name](value)
    ending = next((each for each in _AMOUNTS if name.endswith(each)), None)
    if ending is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return _label(name), value
    return _label(name.removesuffix(ending)), _AMOUNTS[ending](value)


def _label(name: str) -> str:
    return " ".join(word.upper() if word in {"id", "cpus", "gpus"} else word.capitalize() for word in name.split("_"))


def show_created(session: Session, what: str, record: Record) -> None:
    """Print the record that was created."""
    if session.wants_json:
        show_one(session, what, record)
        return
    shown = {_label(name): getattr(record, name) for name in ("id", "workflow_id", "name") if hasattr(record, name)}
    print_pairs(f"Successfully created {what}:", shown)


def show_deleted(session: Session, what: str, record: Record) -> None:
    """Print that a record was deleted."""
    if session.wants_json:
        show_one(session, what, record)
    else:
        name = getattr(record, "name", None)
        print_line(f"Deleted {what} {getattr(record, 'id', '')}{f' ({name})' if name else ''}")
