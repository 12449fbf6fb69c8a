"""Tests of limits: clients that stall, flood, lie or disconnect get an error, and other clients are served."""

import contextlib
import json
import select
import socket
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path

import pytest
from server_child import ServerChild

from torc_framework.client import TorcClient
from torc_framework.models.records import UserDataRecord, WorkflowRecord

PREFIX = "/torc-service/v1"
FLAGS = ("--stall-secs", "0.5", "--body-mib", "1", "--header-kib", "16", "--connections-per-address", "20")


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerChild]:
    """A server with small limits, which has to be well at the end."""
    with ServerChild(tmp_path_factory.mktemp("impatient"), *FLAGS, "--log-level", "warning") as child:
        yield child
        assert child.stop() == 0
        assert "level=error" not in child.log


@pytest.fixture
def line(impatient: ServerChild) -> Iterator[socket.socket]:
    """A bare connection; afterwards the server still serves others."""
    with socket.create_connection(("127.0.0.1", impatient.port), 30) as sock:
        yield sock
    with TorcClient(impatient.url) as client:
        assert client.ping() == {"status": "ok"}


def answer(line: socket.socket) -> tuple[int, str]:
    """Return status and reason of the answer that comes."""
    response = HTTPResponse(line)
    try:
        response.begin()
        content = json.loads(response.read())
        return response.status, content["error"]["message"] if "error" in content else ""
    finally:
        response.close()


def is_closed(line: socket.socket) -> bool:
    """Wait for the end of the connection."""
    try:
        while line.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def head(path: str, *headers: str, method: str = "POST") -> bytes:
    """Return the head of a request."""
    return "".join(
        f"{text}\r\n" for text in (f"{method} {PREFIX}{path} HTTP/1.1", "Host: localhost", *headers, "")
    ).encode()


@pytest.mark.parametrize("sent", [b"", b"GET", head("/ping", method="GET")[:-2]])
def test_a_head_that_stalls(line: socket.socket, sent: bytes) -> None:
    """Is answered 408, also on a connection on which nothing ever comes."""
    line.sendall(sent)
    assert answer(line) == (408, "the head of a request did not arrive within 0.5 s")
    assert is_closed(line)


def test_a_second_head_that_stalls(line: socket.socket) -> None:
    """A connection that was good once gets no more patience."""
    line.sendall(head("/ping", method="GET"))
    assert answer(line)[0] == 200
    line.sendall(b"GET /")
    assert answer(line)[0] == 408


@pytest.mark.parametrize("coding", ["Content-Length: 100", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("path", ["/files", "/workflows/from_plan", "/workflows/1/exchange"])
def test_a_body_that_stalls(line: socket.socket, path: str, coding: str) -> None:
    """Is answered 408 with how far it came, and the connection is closed."""
    part = b'5\r\n{"nam\r\n' if "chunked" in coding else b'{"nam'
    line.sendall(head(path, coding) + part)
    assert answer(line) == (408, "nothing of the request's body arrived for 0.5 s, after 5 bytes")
    assert is_closed(line)


def test_a_body_that_trickles_in(line: socket.socket) -> None:
    """Is answered 408 although it never stalls."""
    line.sendall(head("/files", "Content-Length: 100000"))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while not select.select([line], [], [], 0.1)[0]:
            line.sendall(b" ")
    status, message = answer(line)
    assert (status, message.partition(",")[0]) == (408, "the request's body arrived too slowly")


def test_a_length_that_is_a_lie(line: socket.socket) -> None:
    """More than was announced is the next request, which is none; less is a stall."""
    line.sendall(head("/files", "Content-Length: 2") + b"{}" + b"and more\r\n\r\n")
    assert answer(line)[0] == 400
    assert is_closed(line)


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Length: -5"],
        ["Content-Length: many"],
        ["Content-Length: 99999999999999999999999999"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: gzip"],
        ["No colon"],
    ],
)
def test_headers_that_make_no_sense(line: socket.socket, headers: list[str]) -> None:
    """Are a bad request, and nothing of it is done."""
    line.sendall(head("/files", *headers) + b"{}")
    data = line.recv(65536)
    assert data.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 408 ", b"HTTP/1.1 413 ", b"HTTP/1.1 411 ")), data


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200, b"\x00" * 500, b"HELO x\r\n\r\n"]
)
def test_another_protocol(line: socket.socket, sent: bytes) -> None:
    """Is a bad request."""
    line.sendall(sent)
    assert line.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert is_closed(line)


def flood(line: socket.socket, block: bytes, times: int) -> None:
    """Send until the other side has had enough."""
    try:
        for _ in range(times):
            line.sendall(block)
    except (BrokenPipeError, ConnectionResetError):
        return


def test_a_head_without_end(line: socket.socket) -> None:
    """Is cut off at its greatest length; nothing is kept of it."""
    line.sendall(head("/ping", method="GET")[:-2])
    line.sendall(b"X-Long: " + b"x" * 17_000)
    assert answer(line) == (431, "the head of the request is longer than 16384 bytes")
    flood(line, b"x" * 65536, 100)
    assert is_closed(line)


def test_a_path_without_end(line: socket.socket) -> None:
    """The same holds for the first line."""
    line.sendall(b"GET /" + b"x" * 17_000)
    assert answer(line)[0] == 431


def test_a_body_that_floods(line: socket.socket) -> None:
    """The server refuses it as soon as it is too large, for any declared length."""
    line.sendall(head("/files", "Transfer-Encoding: chunked"))
    block = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    flood(line, block, 17)
    assert answer(line) == (413, "the request is larger than 1 MiB")


def test_a_body_that_is_announced_too_large(line: socket.socket) -> None:
    """Is refused before any of it is read."""
    line.sendall(head("/files", f"Content-Length: {2**20 + 1}"))
    assert answer(line) == (413, "the request is larger than 1 MiB")


@pytest.mark.parametrize("path", ["/files", "/workflows/from_plan"])
def test_a_client_that_leaves_in_the_middle(impatient: ServerChild, path: str) -> None:
    """Is forgotten without a word in the log."""
    with socket.create_connection(("127.0.0.1", impatient.port), 30) as sock:
        sock.sendall(head(path, "Content-Length: 100") + b"{")
    with TorcClient(impatient.url) as client:
        client.ping()
    assert "level=error" not in impatient.log


def test_connections_of_one_address_are_limited(impatient: ServerChild) -> None:
    """The connection beyond the limit is refused with the reason; after others are closed, a new one is accepted."""
    held = [socket.create_connection(("127.0.0.1", impatient.port), 30) for _ in range(25)]
    refused = []
    for sock in held:
        sock.sendall(head("/ping", method="GET"))
        response = HTTPResponse(sock)
        response.begin()
        refused += [response.read()] if response.status == 429 else []
        response.close()
    for sock in held:
        sock.close()
    assert len(refused) == 5
    assert "20 connections are open from 127.0.0.1 already" in json.loads(refused[0])["error"]["message"]
    with TorcClient(impatient.url, patience=30) as client:
        assert client.ping() == {"status": "ok"}


def test_a_reader_that_takes_nothing_is_cut_off(tmp_path: Path) -> None:
    """After the time of a stall; what it does not take is not kept for ever."""
    with ServerChild(tmp_path, "--stall-secs", "0.5") as child, TorcClient(child.url) as client:
        workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
        for n in range(20):
            client.create(UserDataRecord(workflow_id=workflow_id, name=f"u{n}", data="x" * 2**20))
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", child.port))
            sock.sendall(head(f"/user_data?workflow_id={workflow_id}", method="GET"))
            poller = select.poll()
            poller.register(sock, 0)
            assert poller.poll(30_000), "the connection is still there"
        assert client.ping() == {"status": "ok"}
