"""Fixtures that many tests share: a real server, and the installed program run as a user would run it."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_order import beside_other_cluster
from hypothesis import HealthCheck, settings
from postgres_server import PostgresServer, running_postgres
from programs import BIN, Torc, isolated_environment, running_server

# Tests judge no durations. In a new clone the first text that hypothesis draws takes a second, for its tables.
settings.register_profile("torc", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("torc")


def pytest_configure() -> None:
    """Let signals have their usual effect on what tests start, also when the tests run in the background or by nohup.

    A shell lets such processes ignore SIGINT, nohup SIGHUP, and what is ignored stays so in every process they start.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests on clusters an order in which they wait less for each other."""
    items[:] = beside_other_cluster(items)


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests trust and what their commands find out apart from that of the person who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


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
def own_server(tmp_path: Path, torc_env: dict[str, str]) -> Iterator[str]:
    """Base URL of a real server of this test's own, which the user's commands use instead of starting one each."""
    folder = tmp_path / "own_server"
    folder.mkdir()
    with running_server(folder) as url:
        torc_env["TORC_API_URL"] = url
        yield url


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
