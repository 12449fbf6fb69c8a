"""Running the installed programs as a user would; for tests and their fixtures.

This is no conftest.py: there are several, and importing one by its name gives any of them.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from torc_framework.plugins.project_folders import PROJECT_FOLDER, read_project_folder
from torc_framework.plugins.trusted_folders import trust_folder

BIN = Path(sys.executable).parent
Torc = Callable[..., "subprocess.CompletedProcess[str]"]


def isolated_environment(home: Path) -> dict[str, str]:
    """Return an environment without any setting of the user who runs the tests, at home in ``home``.

    This machine is no login node in it, also where Slurm is installed. The tests of a process have one cache folder,
    because the first command with a new one takes a second more.
    """
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "USER": "tester",
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "SLURM_CONF": os.devnull,
    }


def project_plugin(project: Path, name: str, source: str) -> None:
    """Write a plugin file of a project, whose folder this process then trusts; a command has a list of its own."""
    (project / PROJECT_FOLDER).mkdir(exist_ok=True)
    (project / PROJECT_FOLDER / f"{name}.py").write_text(source)
    folder = read_project_folder(project)
    assert folder is not None
    trust_folder(folder.project, folder.digest, folder.names)


@contextmanager
def running_server(folder: Path, *options: str) -> Iterator[str]:
    """Run a real server with these options on a fresh database in ``folder``; yield its base URL."""
    command = [str(BIN / "torc-server"), "run", "--host", "127.0.0.1", "--port", "0", "--log-level", "warning"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--database", str(folder / "torc.db"), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=isolated_environment(folder / "home"),
        )
        assert process.stdout is not None
        try:
            line = process.stdout.readline().decode()
            assert line.startswith("TORC_SERVER_PORT="), (folder / "server.log").read_text()
            yield f"http://127.0.0.1:{int(line.partition('=')[2])}/torc-service/v1"
        finally:
            process.terminate()
            process.wait(20)
            process.stdout.close()
