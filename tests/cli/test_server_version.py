"""The comparison of the server's version with that of the program, before the first request of a command."""

import json

import pytest
from scripted_server import OK, Handler, answer, json_answer, scripted

from torc_framework.cli.shared.session import Session
from torc_framework.errors import UserError
from torc_framework.models.api_version import API_VERSION, version_text


def version(text: str) -> Handler:
    return answer(json_answer(200, json.dumps(text).encode()))


def session(url: str, **options: object) -> Session:
    made = Session()
    for name, value in {"url": url, **options}.items():
        made.set_option(name, value)
    return made


def test_the_same_version_says_nothing_and_is_asked_for_once(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(version(version_text("99.0.0")), answer(OK), answer(OK)) as (url, seen), session(url) as mine:
        assert mine.client.ping() == mine.client.ping() == {"status": "ok"}
    assert [request.split()[1].rpartition(b"/")[2] for request in seen] == [b"version", b"ping", b"ping"]
    assert capsys.readouterr() == ("", "")


def test_an_older_server_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(version(f"{API_VERSION} (torc-framework 0.0.1)"), answer(OK)) as (url, _), session(url) as mine:
        mine.client.ping()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Warning: the server is torc-framework 0.0.1, older than this program")


def test_another_major_version_is_refused_unless_told_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        scripted(version("9.0.0 (torc-framework 9.0.0)")) as (url, _),
        session(url) as mine,
        pytest.raises(UserError, match=r"offers version 9\.0\.0 of the HTTP API.* or pass --skip-version-check"),
    ):
        mine.client.ping()
    with scripted(answer(OK)) as (url, seen), session(url, skip_version_check=True) as mine:
        mine.client.ping()
    assert len(seen) == 1
    assert capsys.readouterr() == ("", "")


def test_a_server_without_an_answer_is_left_to_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(answer(json_answer(404, b"{}")), answer(OK)) as (url, _), session(url) as mine:
        assert mine.client.ping() == {"status": "ok"}
    assert capsys.readouterr() == ("", "")
