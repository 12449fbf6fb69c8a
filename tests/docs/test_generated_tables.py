"""Tables of pages that are made from docstrings: every row is about one field and has its meaning."""

import re

import pytest
from doc_pages import DOCS

from torc_framework import api

ROW = re.compile(r"^\| `([^`]+)` \|(.*)\|$", re.MULTILINE)
ENDINGS = (DOCS / "reference" / "endings.md").read_text().partition("## Keys of failure rules")[0]
CLASSES = (DOCS / "reference" / "plugin-classes.md").read_text()


@pytest.mark.parametrize("page", [ENDINGS, CLASSES], ids=["endings", "plugin-classes"])
def test_each_row_is_about_one_field(page: str) -> None:
    """A continued line of a docstring belongs to the field above it, and quotes are those of Markdown."""
    for name, cells in ROW.findall(page):
        assert re.fullmatch(r"\w+", name), name
        assert cells.rpartition(" | ")[2].strip(), f"{name} has no meaning"
    assert "``" not in page


@pytest.mark.parametrize(
    "name", ["Attempt", "AttemptEnded", "Adoption", "LaunchSite", "Capabilities", "Launcher", "Allocator"]
)
def test_the_classes_of_executors_are_on_their_page(name: str) -> None:
    """Each has a section with its fields or methods."""
    section = CLASSES.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
    members = [member for member in vars(getattr(api, name)) if not member.startswith("_")]
    assert members
    for member in members:
        assert f"`{member}" in section, member
