"""Settings: where they come from and who wins."""

import re
from pathlib import Path

import pytest

from torc_framework.config import Config, config_files, default_database, settings
from torc_framework.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's configuration folder, the system's file beside it, no variables set."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(settings, "SYSTEM_FILE", tmp_path / "etc.toml")
    (tmp_path / "home" / "torc").mkdir(parents=True)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.write_text(text)


def test_later_files_win_and_the_environment_wins_over_files(home: Path) -> None:
    """System, user, project, then variables; what nobody sets is None."""
    write(home / "etc.toml", 'client.api_url = "http://system"\nclient.run.num_cpus = 1\nclient.log_level = "info"')
    write(home / "home" / "torc" / "config.toml", 'client.api_url = "http://user"\nclient.run.num_cpus = 2')
    write(home / "torc.toml", 'client.api_url = "http://project"')
    config = Config.load({}, home)
    assert config.get("client.api_url", str) == "http://project"
    assert config.get("client.run.num_cpus", int) == 2
    assert config.get("client.log_level", str) == "info"
    assert config.get("client.run.num_gpus", int) is None
    assert Config.load({"TORC_CLIENT__RUN__NUM_CPUS": "3"}, home).get("client.run.num_cpus", int) == 3
    assert len(config_files({}, home)) == 3


def test_the_short_variable_of_the_url(home: Path) -> None:
    """TORC_API_URL is what jobs get and people set; the regular name wins over it."""
    assert Config.load({"TORC_API_URL": "http://short"}, home).get("client.api_url", str) == "http://short"
    both = {"TORC_API_URL": "http://short", "TORC_CLIENT__API_URL": "http://long"}
    assert Config.load(both, home).get("client.api_url", str) == "http://long"
    assert Config.load({"TORC_API_URL": ""}, home).get("client.api_url", str) is None


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (bool, "yes", True),
        (bool, "False", False),
        (bool, "0", False),
        (int, "12", 12),
        (float, "1.5", 1.5),
        (float, "2", 2.0),
        (str, "x", "x"),
    ],
)
def test_texts_of_the_environment_are_read_as_what_is_wanted(kind: type, text: str, value: object) -> None:
    """The text "False" is not true."""
    found = Config({"TORC_EXECUTOR__LOCAL__X": text}, []).get("executor.local.x", kind)
    assert (found, type(found)) == (value, kind)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, "1.5", "a whole number"),
        (int, "true", "a whole number"),
        (bool, '"maybe"', "true or false"),
        (float, "[]", "a number"),
    ],
)
def test_a_wrong_value_names_file_key_and_expectation(home: Path, kind: type, value: str, expected: str) -> None:
    """A bad value is never dropped and never taken for a default."""
    write(home / "torc.toml", f"client.run.x = {value}")
    with pytest.raises(
        ConfigError, match=rf"{re.escape(str(home / 'torc.toml'))}: client.run.x is .*; expected {expected}"
    ):
        Config.load({}, home).get("client.run.x", kind)


@pytest.mark.parametrize("content", [b"client = ", b"\xff\xfe", b"[client\n"])
def test_a_broken_file_is_named(home: Path, content: bytes) -> None:
    """With line and column where the parser knows them."""
    (home / "torc.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"cannot read the configuration file .*torc\.toml"):
        Config.load({}, home)


def test_where_the_embedded_database_lives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the user's data folder, unless the environment names a file."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_database({}) == tmp_path / "torc" / "torc.db"
    assert default_database({"TORC_DATABASE": "/x/y.db"}) == Path("/x/y.db")
