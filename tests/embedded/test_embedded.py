"""A server of one's own: nobody else on the machine can use it."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from people import Person

from torc_framework.client import TorcClient
from torc_framework.embedded import EmbeddedServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A running server of one's own."""
    with EmbeddedServer(tmp_path_factory.mktemp("own") / "torc.db") as server:
        yield server


def token_of(server: EmbeddedServer) -> str:
    """Return the secret in a server's URL."""
    return urlsplit(server.url).path.split("/")[1].removeprefix("~")


def test_the_url_is_all_that_is_needed(server: EmbeddedServer) -> None:
    """The client and any other program get through with the URL alone."""
    with TorcClient(server.url) as client:
        assert client.ping() == {"status": "ok"}
    with urllib.request.urlopen(f"{server.url}/ping") as answer:
        assert json.loads(answer.read()) == {"status": "ok"}


@pytest.mark.parametrize(
    "path", ["/torc-service/v1/ping", "/~/torc-service/v1/ping", "/~guess/torc-service/v1/workflows", "/", "/metrics"]
)
def test_without_the_token_nothing_is_told(server: EmbeddedServer, path: str) -> None:
    """No path is served to whoever does not know the token, nor with a wrong or a longer one."""
    stranger = Person(server.url)
    assert stranger.call("GET", f"/{path}").status == 403
    assert stranger.call("GET", f"//~{token_of(server)}x/torc-service/v1/ping").status == 403
    assert stranger.call("GET", f"//~{token_of(server)[:-1]}/torc-service/v1/ping").status == 403


def test_a_web_page_gets_nothing(server: EmbeddedServer) -> None:
    """Even a page that knew the URL would have to come from this machine."""
    assert Person(server.url, more={"Host": "evil.example"}).call("GET", "/ping").status == 403
    assert Person(server.url, more={"Origin": "https://evil.example"}).call("POST", "/workflows").status == 403


def test_the_token_is_no_argument_and_is_not_shown(server: EmbeddedServer) -> None:
    """Other users see the arguments of processes; messages end up in logs."""
    assert server.pid is not None
    assert token_of(server) not in " ".join(psutil.Process(server.pid).cmdline())
    with TorcClient(server.url) as client:
        assert token_of(server) not in client.url
        assert client.environment == {"TORC_API_URL": server.url}


def test_jobs_call_their_server(torc: Any, work: Path) -> None:
    """A job reaches it with torc and with plain HTTP; nothing that is printed or logged holds the token."""
    code = "import os, urllib.request as u; print(u.urlopen(os.environ['TORC_API_URL'] + '/ping').read())"
    (work / "ask.py").write_text(code)
    command = f"torc -f json workflows list && {sys.executable} ask.py && printenv TORC_API_URL > url && ps -ef > all"
    (work / "flow.yaml").write_text(json.dumps({"name": "w", "jobs": [{"name": "j", "command": command}]}))
    done: subprocess.CompletedProcess[str] = torc("run", "flow.yaml", "--output-dir", "out")
    assert done.returncode == 0, (done.stdout, done.stderr)
    token = urlsplit((work / "url").read_text().strip()).path.split("/")[1]
    assert token.startswith("~")
    assert len(token) > 40
    written = [file.read_bytes() for file in (work / "out").rglob("*") if file.is_file()]
    assert token.encode() not in b"".join([*written, done.stdout.encode(), done.stderr.encode()])
    assert token not in (work / "all").read_text()
