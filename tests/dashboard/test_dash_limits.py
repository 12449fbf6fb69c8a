"""What one person may use at once: other people's requests, events and log-ins go on meanwhile."""

import select
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx2
import pytest
from dash_bench import DashProgram, DashReader, Listener, running_dash
from people import guarded_server, password_of
from waiting import eventually

from torc_framework.dashboard.http.limits import (
    API_REQUESTS_OF_PERSON,
    FEEDS,
    FEEDS_OF_PERSON,
    WORKFLOWS_OF_STREAM,
)

pytestmark = pytest.mark.e2e
SESSIONS_OF_EVE = 8
GUESSERS = 40


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashProgram]:
    """A dashboard in front of a server with access control, for ben and eve."""
    folder = tmp_path_factory.mktemp("limits")
    (folder / "dash").mkdir()
    with (
        guarded_server(folder, ["ben", "eve"]) as server,
        running_dash(folder / "dash", "--api-url", server.url) as program,
    ):
        yield program


def entered(program: DashProgram, name: str) -> DashReader:
    """Return a browser in which a person has logged in."""
    return program.reader().log_in(name, password_of(name))


def send(reader: DashReader, head: str) -> socket.socket:
    """Send the beginning of a request with a reader's cookie; return the open connection, which is not read."""
    connection = socket.create_connection(("127.0.0.1", urlsplit(reader.base).port or 0))
    cookies = "; ".join(f"{name}={value}" for name, value in reader.http.cookies.items())
    csrf = reader.http.headers["X-Torc-CSRF"]
    connection.sendall(f"{head}\r\nHost: localhost\r\nCookie: {cookies}\r\nX-Torc-CSRF: {csrf}\r\n".encode())
    return connection


def test_a_person_with_many_sessions_has_no_more_requests_at_once(guarded: DashProgram) -> None:
    """Eve sends bodies that do not end in eight sessions; Ben's requests are answered, hers no longer."""
    ben, eves = entered(guarded, "ben"), [entered(guarded, "eve") for _ in range(SESSIONS_OF_EVE)]
    body = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"
    with ExitStack() as connections:
        opened = []
        for eve in eves:
            for _ in range(API_REQUESTS_OF_PERSON):
                connection = connections.enter_context(send(eve, "POST /api/workflows HTTP/1.1"))
                connection.sendall(body.encode())
                opened.append(connection)
        # A request of Eve's that is answered meanwhile would count as one of her 32, and one body less would be held.
        refused = len(opened) - API_REQUESTS_OF_PERSON
        eventually(lambda: len(select.select(opened, [], [], 1)[0]) == refused, "not all other bodies are refused")
        assert eves[0].http.get("api/workflows").status_code == 429
        assert ben.http.get("api/workflows").status_code == 200
    eventually(lambda: eves[0].http.get("api/workflows").status_code == 200, "Eve is refused afterwards")


def test_a_person_has_a_part_of_the_feeds_only(guarded: DashProgram) -> None:
    """Eve follows more workflows than there are feeds; Ben follows his."""
    ben, eve = entered(guarded, "ben"), entered(guarded, "eve")
    ids = [eve.http.post("api/workflows", json={"name": "e", "user": "eve"}).json()["id"] for _ in range(FEEDS + 1)]
    parts = [ids[begin : begin + WORKFLOWS_OF_STREAM] for begin in range(0, len(ids), WORKFLOWS_OF_STREAM)]
    with ExitStack() as connections:
        statuses = []
        for part in parts:
            stream = f"GET /dash/events?workflows={','.join(map(str, part))} HTTP/1.1"
            connection = connections.enter_context(send(eve, stream))
            connection.sendall(b"\r\n")
            statuses.append(connection.recv(12))
        assert Counter(statuses)[b"HTTP/1.1 200"] == FEEDS_OF_PERSON // WORKFLOWS_OF_STREAM
        assert statuses[-1] == b"HTTP/1.1 429"
        id_ = ben.http.post("api/workflows", json={"name": "b", "user": "ben"}).json()["id"]
        Listener(ben, id_).wait_for_state("live")


@pytest.mark.parametrize(
    "workflows", ["", "x", "1,,2", "-1", "1" * 19, ",".join(map(str, range(WORKFLOWS_OF_STREAM + 1)))]
)
def test_a_stream_of_no_list_of_workflows_is_refused(guarded: DashProgram, workflows: str) -> None:
    ben = entered(guarded, "ben")
    assert ben.http.get("dash/events", params={"workflows": workflows}).status_code == 400
    assert ben.http.get("dash/events?workflows=1&last_event_id=1=2,x").status_code == 400


def test_a_person_logs_in_while_another_guesses_passwords(guarded: DashProgram) -> None:
    """Both come from one address, as behind a proxy, and the answers to guesses are delayed."""
    stopped, statuses = threading.Event(), Counter[int]()

    def guess() -> None:
        with httpx2.Client(base_url=guarded.base, timeout=90, trust_env=False) as client:
            while not stopped.is_set():
                statuses[client.post("login", json={"username": "eve", "password": "guess"}).status_code] += 1

    guessers = [threading.Thread(target=guess, daemon=True) for _ in range(GUESSERS)]
    for guesser in guessers:
        guesser.start()
    eventually(lambda: statuses[401] > 3, "no guess is refused")
    entered(guarded, "ben")
    entered(guarded, "eve")
    stopped.set()
    assert set(statuses) <= {401, 429}
