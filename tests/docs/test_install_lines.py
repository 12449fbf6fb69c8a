"""Lines that install: they work in a clone, because no distribution of the project is on an index."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "plugins").glob("*/README.md"))]
_LINE = re.compile(r"pip install( [^`\n&]+)")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def lines(page: Path) -> list[str]:
    """Return the arguments of each ``pip install`` of a page."""
    return [match.strip() for match in _LINE.findall(page.read_text())]


@pytest.mark.parametrize("page", [page for page in PAGES if lines(page)], ids=lambda page: page.name)
def test_a_line_installs_folders(page: Path) -> None:
    """Every argument is a folder of the clone, the reader's own folder, or found in a folder of wheels."""
    for line in lines(page):
        words = [word for word in shlex.split(line, comments=True) if not word.startswith("-")]
        if "--find-links" in line:
            continue
        for word in words:
            folder, _, extra = word.partition("[")
            assert (ROOT / folder).is_dir(), f"{page.name}: {line}"
            assert not extra or extra.removesuffix("]") in EXTRAS, f"{page.name}: {line}"


def test_every_plugin_and_extra_has_its_line() -> None:
    """The page on installation names each of them once."""
    page = (ROOT / "docs/how-to/install-torc.md").read_text()
    for path in ROOT.glob("plugins/*/pyproject.toml"):
        assert f"plugins/{path.parent.name}" in page
    wanted = {"postgres", "mcp", "gpu", "testing"}
    assert wanted <= set(EXTRAS)
    for extra in wanted:
        assert f"`pip install -e '.[{extra}]'`" in page
