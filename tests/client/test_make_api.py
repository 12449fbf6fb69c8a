"""Tests of `make_api`: a client is made from arguments and environment variables."""

import base64
import os
import re
from pathlib import Path
from typing import Any

import pytest
from scripted_server import OK, answer, scripted

from torc_framework.client import make_api
from torc_framework.client.http.password_file import read_password
from torc_framework.errors import ConfigError

NAMES = ("TORC_API_URL", "TORC_PASSWORD", "TORC_PASSWORD_FILE", "TORC_USERNAME", "TORC_TLS_CA", "USER", "USERNAME")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_without_a_url_it_asks_for_one() -> None:
    with pytest.raises(ConfigError, match="set TORC_API_URL"):
        make_api()


def test_the_environment_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(answer(OK)) as (url, seen):
        monkeypatch.setenv("TORC_API_URL", url)
        with make_api() as api:
            assert api.ping() == {"status": "ok"}
            assert api.url == f"{url}/torc-service/v1"
    assert b"Authorization" not in seen[0]


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        ({"username": "ann", "password": "x"}, {}, "ann:x"),
        ({"username": "ann"}, {"TORC_PASSWORD": "y"}, "ann:y"),
        ({}, {"TORC_PASSWORD": "y", "USER": "bob"}, "bob:y"),
        ({"password": "z"}, {"TORC_PASSWORD": "y", "USERNAME": "bob"}, "bob:z"),
    ],
)
def test_who_asks(
    arguments: dict[str, Any], environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments come before the environment; a password without a name is the caller's own."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with scripted(answer(OK)) as (url, seen), make_api(url, **arguments) as api:
        api.ping()
    assert b"Authorization: Basic " + base64.b64encode(expected.encode()) in seen[0]


def _file(path: Path, content: bytes = b"from-file\n", mode: int = 0o600) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        ({}, {}, "from-file"),
        ({}, {"TORC_PASSWORD": ""}, "from-file"),
        ({}, {"TORC_PASSWORD": "y"}, "y"),
        ({"password": "z"}, {}, "z"),
    ],
)
def test_a_file_gives_the_password_unless_it_is_given_otherwise(
    arguments: dict[str, Any],
    environment: dict[str, str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Processes that are started get the way by which the password came, never the password of a file."""
    path = _file(tmp_path / "password")
    for name, value in {"TORC_PASSWORD_FILE": path, "USER": "bob", **environment}.items():
        monkeypatch.setenv(name, value)
    with scripted(answer(OK)) as (url, seen), make_api(url, **arguments) as api:
        api.ping()
        told = dict(api.environment)
    assert b"Authorization: Basic " + base64.b64encode(f"bob:{expected}".encode()) in seen[0]
    way = {"TORC_PASSWORD_FILE": path} if expected == "from-file" else {"TORC_PASSWORD": expected}
    assert told == {"TORC_API_URL": told["TORC_API_URL"], "TORC_USERNAME": "bob", **way}


@pytest.mark.parametrize(
    ("content", "password"),
    [(b"one line", "one line"), (b" s p \r\n", " s p "), ("pässword\n".encode(), "pässword"), (b"x\\n", "x\\n")],
)
def test_the_line_break_at_the_end_is_no_part_of_the_password(content: bytes, password: str, tmp_path: Path) -> None:
    assert read_password(_file(tmp_path / "password", content)) == password


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        (b"x\n", 0o640, "is open to other users (mode 0640)"),
        (b"x\n", 0o604, "is open to other users (mode 0604)"),
        (b"x\n", 0o620, "is open to other users (mode 0620)"),
        (b"", 0o600, "is empty"),
        (b"\n", 0o600, "is empty"),
        (b"a\nb\n", 0o600, "holds more than one line"),
        (b"a\0b\n", 0o600, "holds more than one line"),
        (b"\xff\n", 0o600, "does not hold UTF-8 text"),
        (b"x" * 5000, 0o600, "holds more than 4096 bytes"),
    ],
)
def test_a_password_file_that_cannot_be_trusted_is_refused(
    content: bytes, mode: int, reason: str, tmp_path: Path
) -> None:
    path = _file(tmp_path / "password", content, mode)
    with pytest.raises(ConfigError, match=re.escape(f"the password file {path} (TORC_PASSWORD_FILE) {reason}")):
        read_password(path)


def test_what_is_no_file_of_ones_own_holds_no_password(tmp_path: Path) -> None:
    """A pipe does not keep the program waiting."""
    with pytest.raises(ConfigError, match="No such file"):
        read_password(tmp_path / "none")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_password(tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="not a regular file"):
        read_password(tmp_path / "pipe")
    if os.geteuid() == 0:
        path = _file(tmp_path / "others")
        os.chown(path, 4321, 4321)
        with pytest.raises(ConfigError, match=r"belongs to another user \(uid 4321\)"):
            read_password(path)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("TORC_API_URL", "", "is empty; give it a value, or unset it"),
        ("TORC_API_URL", "localhost", "'localhost' is not the URL of a Torc server"),
        ("TORC_USERNAME", "", "is empty"),
        ("TORC_PASSWORD_FILE", "", "is empty"),
        ("TORC_TLS_CA", "", "is empty"),
    ],
)
def test_a_useless_variable_is_named(name: str, text: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORC_API_URL", "http://localhost:8080")
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigError, match=f"environment variable {name}: {told}"):
        make_api()
