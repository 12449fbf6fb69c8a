"""Whole specs that the pages show: each is valid with the plugins of this repository."""

from pathlib import Path

import pytest
from doc_pages import DOCS, blocks

from torc_framework.plugins.manager import PluginManager
from torc_framework.spec import LoadOptions, inspect

OWN_PLUGINS = "how-to/write-a-plugin.md"
"""The page whose spec needs the plugins that it shows; its own test runs it."""
SPECS = [
    (str(path.relative_to(DOCS)), number, block.text)
    for path in sorted(DOCS.rglob("*.md"))
    for number, block in enumerate(blocks(str(path.relative_to(DOCS))))
    if block.language == "yaml" and block.text.startswith("name:") and path != DOCS / OWN_PLUGINS
]


@pytest.mark.parametrize(("page", "number", "text"), SPECS, ids=lambda value: str(value)[:40])
def test_a_spec_of_a_page_is_valid(page: str, number: int, text: str, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(text)
    assert inspect(spec, options=LoadOptions.of_plugins(PluginManager.load())).findings == []
