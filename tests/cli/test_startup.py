"""Start-up is a feature: what the program imports before it knows what it is asked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "alembic",
    "attr",
    "http",
    "httpx",
    "jsonschema",
    "msgspec",
    "pydantic",
    "rich",
    "sqlalchemy",
    "sqlmodel",
    "starlette",
    "torc_local",
    "torc_recovery_oom",
    "uvicorn",
    "yaml",
}
ROOMS = {"builtin", "client", "embedded", "plugins", "runner", "server", "spec", "store"}


def imported(*arguments: str) -> set[str]:
    """Return the modules that a call of the program imports."""
    code = "import sys; from torc_framework.cli.programs.torc import main; main(sys.argv[1:])"
    call = [sys.executable, "-X", "importtime", "-c", code, *arguments]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


def test_help_imports_no_plugin_server_or_database() -> None:
    """The list of commands needs the names of commands and nothing else."""
    modules = imported("--help")
    assert HEAVY & {name.partition(".")[0] for name in modules} == set()
    assert ROOMS & {name.split(".")[1] for name in modules if name.startswith("torc_framework.")} == set()


def test_the_version_imports_hardly_anything() -> None:
    """It is answered before even the command line library is there."""
    ours = {name for name in imported("--version") if name.startswith(("torc_", "typer"))}
    ours -= {"torc_framework", "torc_framework.errors", "torc_framework.cli", "torc_framework.cli.programs"}
    assert ours == {"torc_framework.cli.programs.torc"}


@pytest.mark.parametrize("group", ["run", "workflows", "jobs", "results", "plugins"])
def test_the_help_of_a_group_imports_no_server_and_no_plugin(group: str) -> None:
    """Neither does the help of a command that will need them when it is called."""
    modules = imported(group, "--help")
    tops = {name.partition(".")[0] for name in modules}
    assert tops & (HEAVY - {"attr", "http", "msgspec"}) == set()


def test_nothing_heavy_is_imported_before_the_server_of_a_run_starts(tmp_path: Path) -> None:
    """The server imports its own modules meanwhile, which takes longer than those of the command."""
    code = """
import sys
import torc_framework.embedded.process as process

class Started(BaseException): pass

def start(self): raise Started

process.EarlyServerProcess.__init__ = start
from torc_framework.cli.programs.torc import main
sys.argv = ["torc", "run", "workflow.yaml"]
try:
    main()
except Started:
    print(*sys.modules)
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORC", "XDG"))}
    environment["HOME"] = str(tmp_path)  # where no configuration names a server
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    modules = set(done.stdout.split())
    assert "torc_framework.cli.programs.early_start" in modules
    assert HEAVY & modules == set()
