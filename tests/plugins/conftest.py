"""A project of its own for a test, and its plugin files."""

import textwrap
from pathlib import Path

import pytest
from plugin_files import HEAD, Write
from programs import project_plugin


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a project, which is the present one, with no setting of plugins."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TORC_DISABLE_PLUGINS", raising=False)
    monkeypatch.delenv("TORC_TRACE_PLUGINS", raising=False)
    (tmp_path / "torc_plugins").mkdir()
    return tmp_path


@pytest.fixture
def write(project: Path) -> Write:
    """Write a plugin file of the project."""

    def write(name: str, source: str) -> None:
        project_plugin(project, name, HEAD + textwrap.dedent(source))

    return write
