"""Files in torc's own folders are readable by their owner only, under any umask."""

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import BIN, Torc, isolated_environment

from torc_framework.system.private_files import make_private, make_private_folder, open_private

pytestmark = pytest.mark.e2e
SPEC = "name: w\njobs: [{name: a, command: 'true'}]\n"


def modes(folder: Path) -> dict[str, str]:
    """Return the modes of all that is in a folder, by path; the folder itself is "."."""
    return {
        str(path.relative_to(folder)): f"{stat.S_IMODE(path.lstat().st_mode):o}"
        for path in (folder, *folder.rglob("*"))
    }


@pytest.fixture(params=[0o000, 0o022, 0o077])
def with_umask(request: pytest.FixtureRequest) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run a command under a umask."""

    def run(*command: object, **how: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(  # type: ignore[call-overload, no-any-return]  # the arguments are in a dictionary
            [str(part) for part in command], umask=request.param, capture_output=True, text=True, check=True, **how
        )

    return run


def test_the_database_is_its_owners_alone(
    with_umask: Callable[..., "subprocess.CompletedProcess[str]"], torc_env: dict[str, str], work: Path
) -> None:
    """From its first moment, and so is what SQLite keeps beside it and what a runner keeps."""
    look = f"ls -l output/.torc_runner > seen; stat -c '%a %n' {torc_env['HOME']}/.local/share/torc/* > db"
    (work / "w.yaml").write_text(json.dumps({"name": "w", "jobs": [{"name": "a", "command": look}]}))
    with_umask(BIN / "torc", "run", "w.yaml", env=torc_env, cwd=work)
    assert modes(Path(torc_env["HOME"], ".local/share/torc")) == {".": "700", "torc.db": "600"}
    beside = (work / "db").read_text().split()
    assert set(beside[::2]) == {"600"}
    assert any(path.endswith("-wal") for path in beside[1::2])
    states = [line.split() for line in (work / "seen").read_text().splitlines()[1:]]
    assert states
    assert {words[0][:10] for words in states} == {"-rw-------"}


def test_what_older_versions_left_open_is_narrowed(torc: Torc, torc_env: dict[str, str], work: Path) -> None:
    """The default place is ours to keep; a database that was named is not."""
    (work / "w.yaml").write_text(SPEC)
    torc("run", "w.yaml")
    place = Path(torc_env["HOME"], ".local/share/torc")
    place.chmod(0o755)
    (place / "torc.db").chmod(0o644)
    torc("workflows", "list")
    assert modes(place) == {".": "700", "torc.db": "600"}
    named = work / "shared"
    torc("--database", named / "x.db", "workflows", "list")
    assert modes(named) == {".": "700", "x.db": "600"}
    (named / "x.db").chmod(0o640)
    named.chmod(0o750)
    torc("--database", named / "x.db", "workflows", "list")
    assert modes(named) == {".": "750", "x.db": "640"}


def test_logs_and_pid_file_of_a_server(
    with_umask: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    """They hold names of users, workflows and addresses."""
    env, logs = isolated_environment(tmp_path / "home"), tmp_path / "new" / "logs"
    pid_file = logs / "server.pid"
    place = ["--database", tmp_path / "data" / "x.db", "--log-dir", logs, "--pid-file", pid_file]
    with_umask(BIN / "torc-server", "run", "--daemon", "--port", "0", *place, env=env)
    try:
        assert modes(logs) == {".": "700", "server.pid": "600", "torc-server.log": "600"}
        assert modes(logs.parent)["."] == "700"
        assert modes(tmp_path / "data")["x.db"] == "600"
    finally:
        os.kill(int(pid_file.read_text()), 15)


def test_the_users_configuration(
    with_umask: Callable[..., "subprocess.CompletedProcess[str]"], torc_env: dict[str, str]
) -> None:
    """It may hold a key of a service."""
    with_umask(BIN / "torc", "config", "init", "--user", env=torc_env)
    assert modes(Path(torc_env["HOME"], ".config/torc")) == {".": "700", "config.toml": "600"}


def test_what_is_anothers_or_a_link_is_left_alone(tmp_path: Path) -> None:
    """A link in our place leads to a file whose mode is not ours to change."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "x").touch()
    other.chmod(0o755)
    (other / "x").chmod(0o644)
    (tmp_path / "link").symlink_to(other)
    make_private_folder(tmp_path / "link")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "torc.db").symlink_to(other / "x")
    make_private(tmp_path / "own" / "torc.db")
    assert modes(other) == {".": "755", "x": "644"}
    os.close(open_private(other / "x", os.O_RDWR))
    assert modes(other) == {".": "755", "x": "644"}
    if os.geteuid() == 0:
        os.chown(other, 12345, 12345)
        make_private_folder(other)
        assert modes(other)["."] == "755"
