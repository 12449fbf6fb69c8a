"""A user whom the system does not know, without a home: what a container's ``-u 1234`` makes of a process."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torc_framework.errors import ConfigError
from torc_framework.system.user import expand_home, user_folder, user_name

STRANGER = 54321
"""A user id without an entry."""
Run = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return what runs a program of ours as the stranger, who may read everything as in an image of a container."""
    work = tmp_path / "work"
    work.mkdir()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    work.chmod(0o777)
    (work / "w.yaml").write_text("name: w\njobs: [{name: a, command: 'id -u'}]\n")
    words = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
    words += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]

    def call(program: str, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        path = Path(sys.executable).with_name(program)
        environment = {"PATH": os.environ["PATH"], "TMPDIR": str(temporary), **variables}
        call = [*words, str(path), *arguments]
        return subprocess.run(call, cwd=work, env=environment, capture_output=True, text=True, check=False)

    return call


@pytest.mark.parametrize("home", [None, "/", "/root", "/no/such/folder"])
def test_a_stranger_runs_workflows(run: Run, tmp_path: Path, home: str | None) -> None:
    """The database is in a folder of its own, which is named once; the workflow's owner is the number."""
    variables = {} if home is None else {"HOME": home}
    first = run("torc", "run", "w.yaml", **variables)
    folder = tmp_path / "tmp" / f"torc-{STRANGER}"
    assert (first.returncode, first.stderr.count("Note: ")) == (0, 1), first.stderr
    assert str(folder) in first.stderr
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    second = run("torc", "workflows", "list", "-f", "json", **variables)
    assert (second.returncode, second.stderr) == (0, "")
    assert f'"user": "{STRANGER}"' in second.stdout
    assert not [path for path in (tmp_path / "work").rglob("*") if "~" in path.name]


@pytest.mark.parametrize("variable", ["HOME", "XDG_DATA_HOME"])
def test_a_folder_that_is_given_is_used(run: Run, tmp_path: Path, variable: str) -> None:
    """Nothing is said, and nothing is made elsewhere."""
    given = tmp_path / "given"
    given.mkdir()
    os.chown(given, STRANGER, STRANGER)
    done = run("torc", "run", "w.yaml", **{variable: str(given)})
    assert (done.returncode, "Note" in done.stderr) == (0, False), done.stderr
    assert list(given.rglob("torc.db"))
    assert not list((tmp_path / "tmp").glob("torc-*"))


@pytest.mark.parametrize("trap", ["folder", "link", "open"])
def test_what_others_laid_out_is_refused(run: Run, tmp_path: Path, trap: str) -> None:
    """A folder of another user, a link, or one that others may use: nothing is read or written there."""
    place = tmp_path / "tmp" / f"torc-{STRANGER}"
    if trap == "link":
        (tmp_path / "mine").mkdir(mode=0o700)
        os.chown(tmp_path / "mine", STRANGER, STRANGER)
        place.symlink_to(tmp_path / "mine")
    else:
        place.mkdir(mode=0o700)
    if trap == "open":
        os.chown(place, STRANGER, STRANGER)
        place.chmod(0o777)
    done = run("torc", "run", "w.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert f"{place} is not a folder that this user alone can use; set HOME" in line


def test_the_server_and_the_password_tool_need_no_user_either(run: Run, tmp_path: Path) -> None:
    """Neither looks for a name that is not there."""
    hashed = run("torc-htpasswd", "add", "--file", "users", "--password", "secret word", "me")
    assert hashed.returncode == 0, hashed.stderr
    assert run("torc", "config", "show").returncode == 0
    assert run("torc", "plugins", "list").returncode == 0
    wrong = run("torc", "run", "w.yaml", "--database", "~/x.db")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "cannot tell which folder '~' of '~/x.db' is; write the whole path" in wrong.stderr


def test_names_and_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``USER`` before ``USERNAME`` before the system; ``~`` of a user who does not exist is an error."""
    monkeypatch.setenv("USERNAME", "second")
    monkeypatch.setenv("USER", "first")
    assert user_name() == "first"
    monkeypatch.delenv("USER")
    assert user_name() == "second"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expand_home("~/a") == tmp_path / "a"
    with pytest.raises(ConfigError, match="'~nobody_of_that_name'"):
        expand_home("~nobody_of_that_name/a")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert user_folder("config") == tmp_path / ".config" / "torc"
