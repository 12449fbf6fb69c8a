"""Tables as Markdown, and their place in a page: between ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``."""

from collections.abc import Iterable, Sequence
from pathlib import Path


def render(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def replace(page: Path, name: str, table: str) -> None:
    """Put a table between its markers in a page.

    Raises:
        SystemExit: the page lacks the markers.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = page.read_text(encoding="utf-8")
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{page} lacks the markers {begin} and {end}")
    page.write_text(f"{head}{begin}\n{table}\n{end}{tail}", encoding="utf-8")
