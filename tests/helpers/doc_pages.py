"""Pages of the docs as programs: files to save, commands to run, text to see."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

DOCS = Path(__file__).parents[2] / "docs"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SAVE = re.compile(r"[Ss]ave as\s+`([^`]+)`:\s*$")


@frozen
class Block:
    """One fenced block: its language, its text, and the file that the line before tells to save it as."""

    language: str
    text: str
    file: str | None


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        saved = _SAVE.search(text[: match.start()])
        yield Block(match[1], match[2], saved[1] if saved else None)


def executor_of_the_docs() -> Any:
    """Return the executor that "Write a plugin" shows."""
    (source,) = (block.text for block in blocks("how-to/write-a-plugin.md") if "class NiceLauncher" in block.text)
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(source, "write-a-plugin.md", "exec"), names)
    return names["NiceLauncher"]
