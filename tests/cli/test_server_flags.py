"""Flags of ``torc-server run``: what they mean beside files and environment."""

import os
import re
from pathlib import Path

import pytest
from attrs import evolve

from torc_framework.cli.programs.torc_server import _parser, _settings
from torc_framework.models.settings import setting_entries
from torc_framework.server.settings import ServerSettings

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A present folder and a home without any settings."""
    for name in list(os.environ):
        if name.startswith(("TORC_", "XDG_")) or name in ("RUST_LOG", "DATABASE_URL"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(*flags: str) -> ServerSettings:
    """Return what a server would be started with."""
    return _settings(_parser().parse_args(["run", *flags]))


def test_a_flag_wins_over_the_file_also_when_it_says_the_default(home: Path) -> None:
    """What is not given is left to the file."""
    (home / "torc.toml").write_text(
        "[server]\nport = 9000\nhttps = true\nurl = '0.0.0.0'\nadmin_users = ['x']\n"
        "[server.logging]\njson_logs = true\n"
    )
    found = settings("--port", "8080", "--no-https", "--admin-user", "eve,bob", "--admin-user", "ann")
    assert (found.port, found.https, found.url) == (8080, False, "0.0.0.0")
    assert found.admin_users == ("eve", "bob", "ann")
    assert found.logging.json_logs is True
    assert settings("--no-json-logs").logging.json_logs is False


def test_without_anything_there_are_the_defaults() -> None:
    assert evolve(settings(), token=None) == ServerSettings()


def test_short_variables_of_the_server(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """As Torc's users know them."""
    monkeypatch.setenv("TORC_LOG_DIR", str(home / "logs"))
    monkeypatch.setenv("RUST_LOG", "warn")
    monkeypatch.setenv("DATABASE_URL", "sqlite:jobs.db")
    monkeypatch.setenv("TORC_COMPLETION_CHECK_INTERVAL_SECS", "5")
    found = settings()
    assert (found.logging.log_dir, found.log_level, found.database) == (home / "logs", "warn", "sqlite:jobs.db")
    assert found.completion_check_interval_secs == 5


def test_a_server_that_belongs_to_a_command_reads_no_settings_of_the_users(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """Those are for a shared server."""
    (home / "torc.toml").write_text("server.https = true\nserver.nonsense = 1")
    monkeypatch.setenv("TORC_SERVER__PORT", "many")
    found = settings("--parent-fd", "3", "--port", "0", "--database", "x.db", "--log-level", "warning")
    assert (found.https, found.port, found.parent_fd) == (False, 0, 3)


def test_every_setting_is_a_flag_with_help(capsys: Captured) -> None:
    """The default is shown."""
    with pytest.raises(SystemExit) as end:
        _parser().parse_args(["run", "--help"])
    assert end.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    for leaf in setting_entries(ServerSettings):
        assert any(flag in shown for flag in leaf.facts.flags or ("--" + leaf.path[-1].replace("_", "-"),))
        assert leaf.facts.doc[:15] in shown
    assert "Port; 0 takes a free one and prints it. [default: 8080]" in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--port", "70000"], "-p/--port: '70000' is not allowed; expected at most 65535"),
        (["--port", "x"], "-p/--port: 'x' is not allowed; expected a whole number"),
        (["--log-level", "loud"], "'loud' is not allowed; expected one of error, warn, warning, info, debug, trace"),
        (["--threads", "0"], "-t/--threads: '0' is not allowed; expected at least 1"),
        (["--log-dir", ""], "--log-dir: '' is not allowed; expected a path"),
    ],
)
def test_a_wrong_value_names_the_flag(capsys: Captured, flags: list[str], message: str) -> None:
    """Exit code 2."""
    with pytest.raises(SystemExit) as end:
        settings(*flags)
    assert end.value.code == 2
    assert re.search(re.escape(message), " ".join(capsys.readouterr().err.split()))
