"""Tests of the HTTP transport against servers that misbehave in every way that the network allows."""

import io
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from scripted_server import OK, answer, hang_up, json_answer, scripted

from torc_framework.client import TorcClient, make_url
from torc_framework.client.http.transport import Transport
from torc_framework.errors import ApiError, ConfigError, ServerUnreachableError


@contextmanager
def transport(url: str, timeout: float = 10.0) -> Iterator[Transport]:
    client = Transport(url, timeout=timeout, username=None, password=None)
    yield client
    client.close()


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "http://host:8080",
        "http://host:8080/",
        "http://host:8080/torc-service/v1",
        "http://host:8080/torc-service/v1/",
    ],
)
def test_a_url_may_have_the_path_or_not(text: str) -> None:
    """People paste either; TORC_API_URL holds the long form."""
    assert make_url(text) == "http://host:8080/torc-service/v1"


@pytest.mark.parametrize("text", ["", "host:8080", "ftp://host", "http://", "http://host:99999", "http://[::1"])
def test_what_is_no_url_is_refused_with_an_example(text: str) -> None:
    """The message shows what was given and what a URL looks like."""
    with pytest.raises(ConfigError, match=r"write for example http://localhost:8080"):
        make_url(text)


def test_credentials_of_the_url_become_a_header_and_are_never_shown() -> None:
    """Neither the client's URL, which jobs get, nor an error holds the password."""
    with scripted(answer(OK)) as (url, seen), TorcClient(url.replace("//", "//ann:s%40crt@")) as client:
        assert client.ping() == {"status": "ok"}
        assert client.url == f"{url}/torc-service/v1"
    assert b"Authorization: Basic YW5uOnNAY3J0" in seen[0]


# --- connections ----------------------------------------------------------------------------------


def test_a_connection_is_kept_and_reused() -> None:
    """Two requests, one accept."""
    with scripted(answer(OK), answer(OK)) as (url, seen), transport(url) as client:
        client.request("GET", "/ping")
        client.request("GET", "/ping")
    assert len(seen) == 2


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_connection_that_the_server_closed_is_replaced(method: str) -> None:
    """Whatever the request: it was never sent on the dead connection."""
    with scripted(answer(OK, then_close=True), answer(OK)) as (url, seen), transport(url) as client:
        client.request("GET", "/ping")
        _wait_until_closed(client)
        assert client.request(method, "/x", body=b"{}" if method == "POST" else None) == b'{"status":"ok"}'
    assert len(seen) == 2


def test_a_request_without_harm_is_sent_again_once() -> None:
    """The server took it on a kept connection and closed without an answer."""
    with scripted(answer(OK), hang_up, answer(OK)) as (url, seen), transport(url) as client:
        client.request("GET", "/ping")
        assert client.request("GET", "/jobs") == b'{"status":"ok"}'
    assert [request.split()[1] for request in seen[1:]] == [b"/torc-service/v1/jobs"] * 2


def test_a_post_is_never_sent_twice() -> None:
    """It may have been carried out."""
    with scripted(answer(OK), hang_up, answer(OK)) as (url, seen), transport(url) as client:
        client.request("GET", "/ping")
        with pytest.raises(ServerUnreachableError):
            client.request("POST", "/jobs", body=b"{}")
    assert len(seen) == 2


def test_a_body_is_saved_as_it_arrives() -> None:
    """A refusal that a repetition may overcome is repeated before the first byte; the headers are returned."""
    busy = b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 2\r\n\r\n{}"
    whole = b"HTTP/1.1 200 OK\r\nTorc-Record-Counts: jobs=2,files=0\r\nContent-Length: 5\r\n\r\nabcde"
    file = io.BytesIO()
    with scripted(answer(busy, then_close=True), answer(whole)) as (url, seen):
        client = Transport(url, timeout=10.0, patience=10.0)
        response = client.save("/workflows/1/export", query={"include_events": False}, write=file.write, timeout=10.0)
    assert file.getvalue() == b"abcde"
    assert response.header(b"torc-record-counts") == b"jobs=2,files=0"
    assert [request.split(b" HTTP")[0] for request in seen] == [
        b"GET /torc-service/v1/workflows/1/export?include_events=false"
    ] * 2


def test_an_incomplete_body_is_an_error() -> None:
    """The server is gone in the middle: the request is not repeated, because bytes of it are in the file."""
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"
    file = io.BytesIO()
    with (
        scripted(answer(half, then_close=True)) as (url, seen),
        transport(url) as client,
        pytest.raises(ServerUnreachableError, match="closed the connection"),
    ):
        client.save("/workflows/1/export", query=None, write=file.write, timeout=10.0)
    assert file.getvalue() == b"abc"
    assert len(seen) == 1


def test_a_refused_save_tells_the_reason() -> None:
    gone = b'HTTP/1.1 404 Not Found\r\nContent-Length: 23\r\n\r\n{"errorMessage":"none"}'
    file = io.BytesIO()
    with scripted(answer(gone)) as (url, _), transport(url) as client, pytest.raises(ApiError, match="none"):
        client.save("/workflows/7/export", query=None, write=file.write, timeout=10.0)
    assert file.getvalue() == b""


def test_nobody_listens() -> None:
    """The message names the URL, the reason and what to look at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with transport(f"http://127.0.0.1:{port}") as client, pytest.raises(ServerUnreachableError) as caught:
        client.request("GET", "/ping")
    assert str(caught.value) == (
        f"no Torc server answers at http://127.0.0.1:{port}/torc-service/v1: Connection refused; "
        "check that it runs ('torc-server run' starts one), and --url or TORC_API_URL"
    )


def test_a_server_that_says_nothing_is_given_up() -> None:
    """After the time-out, and not tried again: it may be at work on it."""
    silence = threading.Event()

    def wait(_: socket.socket, __: bytes) -> bool:
        silence.wait(20)
        return False

    with scripted(wait) as (url, seen), transport(url, timeout=1.0) as client:
        with pytest.raises(ServerUnreachableError, match="no answer in time"):
            client.request("GET", "/ping")
        silence.set()
    assert len(seen) == 1


def test_threads_do_not_share_a_connection() -> None:
    """A long poll of one thread does not hold up a report of another."""
    release = threading.Event()

    def slow(connection: socket.socket, _: bytes) -> bool:
        release.wait(20)
        connection.sendall(OK)
        return True

    with scripted(slow) as (url, seen), transport(url) as client:
        waiting = threading.Thread(target=client.request, args=("GET", "/slow"))
        waiting.start()
        while not seen:
            waiting.join(0.01)
        idle = list(client._idle)
        release.set()
        waiting.join(20)
        assert len(client._idle) == 1
    assert (idle, len(seen)) == ([], 1)


def _wait_until_closed(client: Transport) -> None:
    """Wait for the server's end of file to arrive on the kept connection."""
    import select

    sock = client._idle[-1].sock
    assert sock is not None
    readable, _, _ = select.select([sock], [], [], 20)
    assert readable


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "Job not found with ID: 7"}}', "Job not found with ID: 7"),
        (b'{"error": "NotFound", "code": 404}', "NotFound"),
        (b'{"errorMessage": "no"}', "no"),
        (b'{"detail": "nothing here"}', "nothing here"),
        (b'{"detail": [{"loc": ["body"]}]}', '{"detail": [{"loc": ["body"]}]}'),
        (b"[]", "[]"),
        (b"Not Found\n", "Not Found"),
        (b"", "HTTP 404 X"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_the_servers_reason_is_found_in_any_shape(body: bytes, message: str) -> None:
    """An error has status and reason for error bodies of servers and proxies."""
    with (
        scripted(answer(json_answer(404, body))) as (url, _),
        transport(url) as client,
        pytest.raises(ApiError) as caught,
    ):
        client.request("GET", "/jobs/7")
    assert (caught.value.status, str(caught.value)) == (404, message)


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"[1]", b'"text"', b"\xff"])
def test_a_server_of_another_kind_is_recognised(body: bytes) -> None:
    """Something answers, but no Torc server does: one message, no traceback of a parser."""
    with (
        scripted(answer(json_answer(200, body))) as (url, _),
        TorcClient(url) as client,
        pytest.raises(ApiError, match="did not answer as a Torc server does"),
    ):
        client.ping()


def test_garbage_instead_of_http_is_an_unreachable_server() -> None:
    """So is a connection that ends in the middle of an answer."""
    for garbage in (b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"):
        with (
            scripted(answer(garbage, then_close=True)) as (url, _),
            transport(url) as client,
            pytest.raises(ServerUnreachableError),
        ):
            client.request("POST", "/x", body=b"")


def test_query_values_are_spelled_for_http() -> None:
    """Absent values are left out, truth is lower case, text is quoted."""
    with scripted(answer(OK)) as (url, seen), transport(url) as client:
        client.request("GET", "/x", query={"a": None, "b": True, "c": "x &y", "d": ["1", "2"], "e": 0})
    assert seen[0].split()[1] == b"/torc-service/v1/x?b=true&c=x%20%26y&d=1&d=2&e=0"
