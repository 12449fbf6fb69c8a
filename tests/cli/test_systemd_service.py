"""``torc-server service``: units that systemd accepts, and what systemctl is asked for."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pytest

from torc_framework.cli.programs import systemd_service
from torc_framework.cli.programs.torc_server import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any settings, in which a user's units live."""
    for name in list(os.environ):
        if name.startswith(("TORC_", "XDG_")) or name in ("RUST_LOG", "DATABASE_URL"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(systemd_service, "SYSTEM_FOLDER", tmp_path / "system")
    return tmp_path


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A machine with a systemctl that notes what it is asked; return that.

    A real manager would be the test machine's own.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "systemctl"
    program.write_text(f"""#!/bin/sh
echo "$@" >> {tmp_path}/asked
case "$*" in
*show*) printf "LoadState=loaded\\nActiveState=%s\\nSubState=%s\\nUnitFileState=enabled\\nMainPID=%s\\n" \
    $(cat {tmp_path}/state) ;;
*start*) test ! -e {tmp_path}/broken || {{ echo no such luck >&2; exit 5; }} ;;
esac
""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setattr(systemd_service, "BOOTED", tmp_path)

    def lines() -> list[str]:
        return (tmp_path / "asked").read_text().splitlines()

    return lines


SETTINGS = ["--host=0.0.0.0", "--port=9000", "--json-logs", "--admin-user=eve", "--admin-user=o'neill"]


@pytest.mark.parametrize(
    "more",
    [
        [],
        [*SETTINGS, "--run-as", "torc", "--database", "odd $HOME/100% 'x'/t.db"],
        ["--auth-file", "100% 'of' users", "--tls-cert", "c.pem", "--tls-key", "k.pem", "--https"],
    ],
)
@pytest.mark.parametrize("scope", [[], ["--user"]])
def test_systemd_accepts_the_unit(tmp_path: Path, capsys: Captured, scope: list[str], more: list[str]) -> None:
    """It complains of nothing in it."""
    if which("systemd-analyze") is None:
        assert os.environ.get("CI") != "true", "systemd-analyze is missing: install the package systemd"
        pytest.skip("systemd-analyze is not installed")
    for word in more:
        if word.endswith((".pem", "users")):
            (tmp_path / word).touch()
    if scope:
        more = [word for word in more if word not in ("--run-as", "torc")]
    assert main(["service", "install", "--dry-run", *scope, *more]) == 0
    unit = tmp_path / systemd_service.UNIT
    unit.write_text(capsys.readouterr().out)
    done = subprocess.run(
        ["systemd-analyze", *scope, "--man=no", "--recursive-errors=no", "verify", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "SYSTEMD_LOG_COLOR": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if systemd_service.UNIT in line]) == (0, [])


def test_flags_are_passed_through_and_paths_are_absolute(tmp_path: Path, capsys: Captured) -> None:
    """Nothing that a shell or systemd would expand is left as it is."""
    assert main(["service", "install", "--user", "--dry-run", *SETTINGS, "--database", "a $b/50%.db"]) == 0
    (command,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("ExecStart="))
    program, run, flags = command.removeprefix("ExecStart=").split(" ", 2)
    assert (Path(program).name, run) == ("torc-server", "run")
    expected = [
        "--host=0.0.0.0",
        "--port=9000",
        "--json-logs",
        "--admin-user=eve",
        '"--admin-user=o\'neill"',
        f'"--database={tmp_path}/a $$b/50%%.db"',
        f"--log-dir={tmp_path}/.local/state/torc/log",
    ]
    assert all(f" {flag} " in f" {flags} " for flag in expected)
    assert len(flags) == len(" ".join(expected))


@pytest.mark.parametrize(("scope", "is_copied"), [([], True), (["--run-as", "torc"], True), (["--user"], False)])
def test_files_with_secrets_are_passed_as_credentials(
    tmp_path: Path, capsys: Captured, scope: list[str], is_copied: bool
) -> None:
    """The service's user has no access to root's file; a user's own service reads the file itself."""
    install = ["service", "install", *scope, "--dry-run", "--auth-file", "users"]
    assert main(install) == 2
    assert f"--auth-file: there is no file '{tmp_path}/users'" in capsys.readouterr().err
    (tmp_path / "users").touch(0o600)
    assert main(install) == 0
    unit = capsys.readouterr().out
    assert (f"\nLoadCredential=auth_file:{tmp_path}/users\n" in unit) == is_copied
    assert (" --auth-file=%d/auth_file\n" in unit) == is_copied
    assert (f" --auth-file={tmp_path}/users " in unit) != is_copied


@pytest.mark.parametrize("scope", [[], ["--user"]])
@pytest.mark.parametrize("url", ["postgresql://me:secret@host/db", "postgresql://host/db?user=me&password=secret"])
def test_a_password_in_a_url_is_refused_with_the_way_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, scope: list[str], url: str
) -> None:
    """As a flag and from the environment; the service reads a file of variables, which the unit does not repeat."""
    variables = tmp_path / ".config" / "torc" / "server.env"
    monkeypatch.setattr(systemd_service, "SYSTEM_VARIABLES", variables)
    install = ["service", "install", *scope, "--dry-run"]
    monkeypatch.setenv("DATABASE_URL", url)
    for more in ([], ["--database", url]):
        assert main([*install, *more]) == 2
        said = capsys.readouterr().err
        assert f"write the line DATABASE_URL=URL into {variables}" in said
        assert "secret" not in said
    variables.parent.mkdir(parents=True)
    variables.write_text(f"# of the server\nDATABASE_URL={url}\n")
    assert main(install) == 0
    unit = capsys.readouterr().out
    assert f"\nEnvironmentFile=-{variables}\n" in unit
    assert "--database" not in unit
    assert "secret" not in unit


def test_a_unit_that_systemd_refuses_is_not_installed(
    tmp_path: Path, asked: Callable[[], list[str]], capsys: Captured
) -> None:
    """Its words are passed on."""
    analyze = tmp_path / "bin" / "systemd-analyze"
    analyze.write_text('#!/bin/sh\necho "$5:1: Refusing." >&2\nexit 1\n'.replace("$5", "$(eval echo \\${$#})"))
    analyze.chmod(0o755)
    assert main(["service", "install", "--user"]) == 1
    said = capsys.readouterr().err
    assert "systemd does not accept the unit, and nothing was installed" in said
    assert "Refusing." in said
    assert not (tmp_path / ".config").exists()
    assert not (tmp_path / "asked").exists()


def test_the_unit_names_what_the_service_would_not_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Those of the environment and the working directory; the service reads the user's file itself."""
    monkeypatch.setenv("TORC_SERVER__LOG_LEVEL", "debug")
    (tmp_path / "torc.toml").write_text("server.port = 9001")
    (tmp_path / ".config" / "torc").mkdir(parents=True)
    (tmp_path / ".config" / "torc" / "config.toml").write_text("server.database = 'mine.db'\nserver.port = 1")
    assert main(["service", "install", "--user", "--dry-run"]) == 0
    unit = capsys.readouterr().out
    assert "--log-level=debug" in unit
    assert "--port=9001" in unit
    assert "--database" not in unit
    assert main(["service", "install", "--dry-run"]) == 2  # the machine's service does not read it
    assert f"but not to {tmp_path}; name a user who may with --run-as" in capsys.readouterr().err


def test_install_start_status_stop_uninstall(tmp_path: Path, asked: Callable[[], list[str]], capsys: Captured) -> None:
    """In a user's own folder; systemctl is called after every change."""
    unit = tmp_path / ".config" / "systemd" / "user" / systemd_service.UNIT
    for command in ("start", "stop", "uninstall"):
        assert main(["service", command, "--user"]) == 2
        assert "'torc-server service install --user' writes it" in capsys.readouterr().err
    assert main(["service", "install", "--user"]) == 0
    assert unit.exists()
    assert main(["service", "start", "--user"]) == 0
    capsys.readouterr()
    (tmp_path / "state").write_text("active running 77")
    assert main(["service", "status", "--user", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "unit": str(unit),
        "is_installed": True,
        "is_enabled": True,
        "state": "active (running)",
        "pid": 77,
    }
    assert main(["service", "stop", "--user"]) == 0
    (tmp_path / "state").write_text("inactive dead 0")
    capsys.readouterr()
    assert main(["service", "status", "--user"]) == 3
    assert "state: inactive (dead)" in capsys.readouterr().out
    assert main(["service", "uninstall", "--user"]) == 0
    assert not unit.exists()
    assert asked() == [
        "--user daemon-reload",
        f"--user enable {systemd_service.UNIT}",
        f"--user start {systemd_service.UNIT}",
        f"--user show --property=LoadState,ActiveState,SubState,UnitFileState,MainPID {systemd_service.UNIT}",
        f"--user stop {systemd_service.UNIT}",
        f"--user show --property=LoadState,ActiveState,SubState,UnitFileState,MainPID {systemd_service.UNIT}",
        f"--user disable --now {systemd_service.UNIT}",
        "--user daemon-reload",
    ]


def test_what_systemctl_refuses_is_passed_on(tmp_path: Path, asked: Callable[[], list[str]], capsys: Captured) -> None:
    """In its words, with the command."""
    assert main(["service", "install"]) == 0
    assert (tmp_path / "system" / systemd_service.UNIT).exists()
    (tmp_path / "broken").touch()
    assert main(["service", "start"]) == 1
    assert capsys.readouterr().err == f"Error: systemctl start {systemd_service.UNIT}: no such luck\n"
    assert len(asked()) == 3


@pytest.mark.parametrize("command", ["install", "status"])
def test_without_systemd_there_is_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, command: str
) -> None:
    """It is named."""
    monkeypatch.setattr(systemd_service, "BOOTED", tmp_path / "no")
    assert main(["service", command, "--user"]) == 1
    assert "systemd does not manage this machine; 'torc-server run --daemon" in capsys.readouterr().err
    assert not (tmp_path / ".config").exists()


def test_a_user_service_runs_as_its_user(capsys: Captured) -> None:
    assert main(["service", "install", "--user", "--run-as", "eve", "--dry-run"]) == 2
    assert "--run-as is for a service of the machine" in capsys.readouterr().err
