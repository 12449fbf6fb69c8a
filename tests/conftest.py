"""What many tests share: a real server, and the installed program run as a user would run it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from postgres_server import PostgresServer, running_postgres

BIN = Path(sys.executable).parent
Torc = Callable[..., "subprocess.CompletedProcess[str]"]


def isolated_environment(home: Path) -> dict[str, str]:
    """Return an environment without any setting of whoever runs the tests, at home in ``home``."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "USER": "tester", "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of a real server on a fresh database, one for each test module."""
    with running_server(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, one for each process that runs tests."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def torc_env(tmp_path: Path) -> dict[str, str]:
    """Environment of a user with an empty home."""
    return isolated_environment(tmp_path / "home")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Folder that the user works in."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def torc(torc_env: dict[str, str], work: Path) -> Torc:
    """Run the installed ``torc`` in the user's folder; the last argument's environment joins the user's."""

    def call(
        *arguments: str | Path | int, env: dict[str, str] | None = None, cwd: Path | None = None, timeout: float = 120
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(BIN / "torc"), *(str(argument) for argument in arguments)],
            cwd=cwd or work,
            env={**torc_env, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return call
