"""The changelog has the form of Keep a Changelog, and each fragment in ``changes/`` fits into it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from doc_pages import DOCS

ROOT = DOCS.parent
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
FRAGMENTS = sorted(path for path in (ROOT / "changes").iterdir() if path.name not in {"README.md", "template.md.jinja"})


def test_every_heading_is_there_once() -> None:
    """A version has each kind of change once, a kind has each subject once, and each subject has entries."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert versions[0].startswith("[Unreleased]\n")
    for version in versions:
        kinds = re.split(r"^### ", version, flags=re.MULTILINE)[1:]
        names = [kind.partition("\n")[0] for kind in kinds]
        assert len(set(names)) == len(names)
        assert set(names) <= KINDS
        for kind in kinds:
            subjects = re.split(r"^#### ", kind, flags=re.MULTILINE)[1:]
            assert len({subject.partition("\n")[0] for subject in subjects}) == len(subjects)
            assert all("\n- " in subject for subject in subjects or [kind])


def test_the_configuration_has_the_kinds_of_keep_a_changelog() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    assert {kind["name"] for kind in configuration["type"]} == KINDS
    assert all(kind["directory"] == kind["name"].lower() for kind in configuration["type"])
    assert configuration["start_string"] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_is_well_formed(fragment: Path) -> None:
    """Its name is ``subject.kind.md``; its text is one paragraph of sentences without a heading or a list."""
    kinds = "|".join(sorted(kind.lower() for kind in KINDS))
    assert re.fullmatch(rf"[a-z0-9]+(-[a-z0-9]+)*\.({kinds})\.md", fragment.name)
    text = fragment.read_text(encoding="utf-8")
    assert re.fullmatch(r"[^\s#*-](.|\n(?!\n))*[.:)`]\n", text), "one paragraph that ends with a full stop"


def test_towncrier_collects_every_fragment() -> None:
    """The draft of the next section has one entry for each fragment."""
    pytest.importorskip("towncrier", reason="towncrier is not installed (pip install -e .[dev])")
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "999.0.0"]
    draft = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert draft.startswith("## [999.0.0] - ")
    assert draft.count("\n- ") == len(FRAGMENTS)
