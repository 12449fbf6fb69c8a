"""Programs whose optional library is missing name the command that installs it."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from programs import BIN
from terminal_talk import Talk, plain, talk

__all__ = ["talk"]

COMMANDS = {
    "textual": ("tui", ["torc", "tui"]),
    "httpx2": ("dash", ["torc-dash", "--port", "0"]),
    "mcp": ("mcp", ["torc-mcp-server"]),
    "psycopg": ("postgres", ["torc", "--database", "postgresql://localhost/x", "workflows", "list"]),
    "hypothesis": ("testing", ["python", "-c", "import torc_framework.testing"]),
    "pytest": ("testing", ["python", "-c", "import torc_framework.testing"]),
}
"""By module: the extra that installs it, and what needs it."""
WITHOUT_OWN_LIBRARY = {"ai", "dev", "gpu", "k8s", "osmo", "slurm", "ssh", "sysexits"}
"""Extras that are plugins, tools of developers, or without which a measurement is left out (``gpu``)."""


def test_every_extra_is_known() -> None:
    """A new extra with a library needs a line in one of the tables."""
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    known = {extra for extra, _ in COMMANDS.values()} | WITHOUT_OWN_LIBRARY
    assert set(extras["optional-dependencies"]) == known


@pytest.mark.parametrize("module", COMMANDS)
def test_a_missing_library_is_named_with_its_install_line(
    module: str, tmp_path: Path, torc_env: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """The exit code is that of wrong input; nothing is called an internal error."""
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent" / f"{module}.py").write_text(
        f"raise ModuleNotFoundError({f'No module named {module!r}'!r}, name={module!r})\n"
    )
    torc_env["PYTHONPATH"] = str(tmp_path / "absent")
    extra, command = COMMANDS[module]
    if module == "textual":
        run: Talk = request.getfixturevalue("talk")
        code, shown = run(*command[1:])
        said = " ".join(plain(shown).split())
    else:
        program = sys.executable if command[0] == "python" else str(BIN / command[0])
        done = subprocess.run(
            [program, *command[1:]],
            env={**os.environ, **torc_env},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        code, said = done.returncode, done.stderr
    assert code == (1 if command[0] == "python" else 2), said
    assert f"No module named '{module}'" in said
    assert f"pip install 'torc-framework[{extra}]'" in said
    assert "internal error" not in said
