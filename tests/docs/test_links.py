"""The index links every page, and the target of every link exists."""

import re
from pathlib import Path

import pytest
from doc_pages import DOCS

ROOT = DOCS.parent
PAGES = [
    *sorted(DOCS.rglob("*.md")),
    *(
        ROOT / name
        for name in ("README.md", "CHANGELOG.md", "examples/README.md", "benchmarks/README.md", "changes/README.md")
    ),
    *sorted((ROOT / "plugins").glob("*/README.md")),
    *sorted((ROOT / "tests").glob("*/README.md")),
]
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def links(page: Path) -> list[str]:
    """Return the targets of a page's links, except those of the web."""
    found = _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8")))
    return [target for target in found if "://" not in target and not target.startswith("mailto:")]


def anchors(page: Path) -> set[str]:
    """Return the fragments of a page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(text)}


def test_the_index_links_every_page() -> None:
    linked = {(DOCS / target.partition("#")[0]).resolve() for target in links(DOCS / "index.md")}
    pages = {page.resolve() for page in DOCS.rglob("*.md")} - {(DOCS / "index.md").resolve()}
    assert [str(page.relative_to(DOCS.resolve())) for page in sorted(pages - linked)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_targets_of_links_exist(page: Path) -> None:
    for target in links(page):
        name, _, fragment = target.partition("#")
        goal = page.parent / name if name else page
        assert goal.exists(), target
        if fragment:
            assert fragment in anchors(goal), target
