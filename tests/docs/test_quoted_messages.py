"""Messages that pages quote are messages of the programs."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest
from doc_pages import DOCS, blocks

ROOT = DOCS.parent
TRANSCRIPTS = (
    *("how-to/recover-from-failures.md", "how-to/recover-on-slurm.md", "how-to/change-and-rerun-a-workflow.md"),
    *("how-to/find-out-why-a-job-does-not-run.md", "how-to/find-out-why-jobs-failed.md"),
    "how-to/collect-and-analyse-logs.md",
)
"""Pages whose blocks show what commands print."""
_VARIABLE = re.compile(r"'[^']*'|\"[^\"]*\"|\$ .*|\(\w+\)|[\d:.,;()<>!|/*+=-]+|\b[A-Z]{2,}\b|\s\.\.\.")
_QUOTED = (
    re.compile(r"^- \*\*`([^`]+)`\*\*", re.MULTILINE),
    re.compile(r"^`([^`]+)`\n: ", re.MULTILINE),
    re.compile(r"^\| `([A-Z][^`]* [^`]*|this [^`]*)` \| ", re.MULTILINE),
)
"""Messages at the start of an item of a list, of a definition and of a row of a table."""
COMPOSED = {
    "missing input files that no job writes",
    "jobs wait for prepare",
    "jobs were canceled because of them",
    "big out of memory",
    "slow out of time",
    "they are ready to run again",
    "others out of memory memory",
}
"""Texts that the programs compose of parts."""
LEAST_WORDS = 4
"""Shorter texts are often composed, so the test does not look for them."""


@cache
def program_texts() -> str:
    """Return all texts of the programs."""
    found = []
    for folder in (ROOT / "torc_framework", ROOT / "plugins"):
        for path in folder.rglob("*.py"):
            if "tests" not in path.parts:
                tree = ast.parse(path.read_text(encoding="utf-8"))
                found += [
                    node.value
                    for node in ast.walk(tree)
                    if isinstance(node, ast.Constant) and isinstance(node.value, str)
                ]
    return " ".join("\n".join(found).split())


def quoted(page: str) -> Iterator[str]:
    """Yield the messages that a page quotes."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for pattern in _QUOTED:
        yield from pattern.findall(text)
    if page in TRANSCRIPTS:
        for block in blocks(page):
            if block.language in {"console", "text"}:
                yield from (line for line in block.text.splitlines() if not re.match(r"\$|torc |ID |\d|time=", line))


def fixed_parts(message: str) -> list[str]:
    """Return the parts of a message that do not vary and have enough words."""
    parts = (" ".join(part.split()) for part in _VARIABLE.split(message))
    return [part for part in parts if len(part.split()) >= LEAST_WORDS and part not in COMPOSED]


@pytest.mark.parametrize("page", sorted(str(path.relative_to(DOCS)) for path in (DOCS / "how-to").glob("*.md")))
def test_quoted_messages_exist(page: str) -> None:
    missing = [part for message in quoted(page) for part in fixed_parts(message) if part not in program_texts()]
    assert missing == []


def test_pages_quote_messages() -> None:
    assert fixed_parts("Authentication failed for user 'bob'") == ["Authentication failed for user"]
    assert "no such message" not in program_texts()
    assert len([message for page in TRANSCRIPTS for message in quoted(page)]) > 30
