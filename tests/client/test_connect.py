"""How a client is made from arguments and environment."""

import base64

import pytest
from scripted_server import OK, answer, scripted

from torc_framework.client import make_api
from torc_framework.errors import ConfigError

NAMES = ("TORC_API_URL", "TORC_PASSWORD", "TORC_TLS_CA", "USER", "USERNAME")


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
    arguments: dict[str, str], environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments come before the environment; a password without a name is the caller's own."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with scripted(answer(OK)) as (url, seen), make_api(url, **arguments) as api:
        api.ping()
    assert b"Authorization: Basic " + base64.b64encode(expected.encode()) in seen[0]
