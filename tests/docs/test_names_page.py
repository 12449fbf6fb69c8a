"""The page of names has every room, every command group, every record and every list of the spec."""

import re
import tomllib

import pytest
from attrs import fields
from doc_pages import DOCS

from torc_framework.cli.programs.command_tree import CORE_COMMANDS
from torc_framework.models import records
from torc_framework.spec.language.model import WorkflowSpec

PAGE = (DOCS / "explanation" / "names.md").read_text(encoding="utf-8")
LAYERS = tomllib.loads((DOCS.parent / "tests/architecture/rooms.toml").read_text(encoding="utf-8"))["layers"]
ROOMS = [room for layer in LAYERS for room in layer["rooms"]]
RECORDS = [name for name in vars(records) if name.endswith("Record") and name != "Record"]
SPEC_LISTS = [field.name for field in fields(WorkflowSpec) if "list[" in str(field.type)]
NO_TERM = {
    "WorkflowStatusRecord": "the state of a workflow, which is no term of its own",
    "ping": "a check of the server, which is no term",
}
"""Names without an entry, each with the reason."""


@pytest.mark.parametrize("name", [*ROOMS, *RECORDS, *SPEC_LISTS])
def test_a_name_of_code_or_spec_is_explained(name: str) -> None:
    assert name in NO_TERM or f"`{name}`" in PAGE or f"`{name}/`" in PAGE


@pytest.mark.parametrize("command", CORE_COMMANDS)
def test_a_command_group_is_explained(command: str) -> None:
    assert command in NO_TERM or f"`torc {command}" in PAGE


def test_every_word_is_explained_once() -> None:
    words = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| **")]
    assert len(words) == len(set(words)) > 60


def test_files_folders_and_classes_exist() -> None:
    """The column of places names files and folders below ``torc_framework`` and classes of the tree."""
    package = DOCS.parent / "torc_framework"
    words = {word for line in PAGE.splitlines() if line.startswith("| **") for word in re.findall(r"`([^`]+)`", line)}
    paths = {word for word in words if re.fullmatch(r"[a-z]\w*(/\w+)*(/|/?\w+\.py)", word)}
    assert [path for path in paths if not (package / path).exists() and not [*package.rglob(path)]] == []
    sources = "\n".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    defined = set(re.findall(r"^(?:class )?([A-Z]\w+)\b(?=[(:]| = )", sources, flags=re.MULTILINE))
    classes = {word.partition(".")[0] for word in words if re.fullmatch(r"[A-Z][a-z]\w+(\.\w+)?", word)}
    assert classes - defined == set()
