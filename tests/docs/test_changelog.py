"""The list of changes is in the form that it says: one list for each kind of change and subject."""

import re

from doc_pages import DOCS

KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_every_heading_is_there_once() -> None:
    """Of a version its kinds of changes, of a kind its subjects; each has points."""
    text = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
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
