"""Tests of interrupted requests: the rest of a response is not read as the response to a later request."""

import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType
from typing import Any

import httptools
import pytest

from torc_framework import client as client_package
from torc_framework.client import TorcClient
from torc_framework.client.http import event_stream
from torc_framework.client.http.connection import HttpResponse
from torc_framework.client.http.transport import Transport
from torc_framework.models.records import EventRecord

pytestmark = pytest.mark.filterwarnings(
    # Interrupted between the opening of a socket and its first use, the interpreter closes it.
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
PACKAGE = os.path.dirname(client_package.__file__)  # noqa: PTH120 - compared with the file names of frames


class CallersTimeoutError(Exception):
    """What a caller's signal handler may raise."""


class _Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer leaves in one piece

    def do_GET(self) -> None:
        content = self.path.encode()
        self.send_response(200)
        if "chunked" in self.path:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content))
        else:
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Expect clients to hang up."""


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    """URL of a server that answers with the path it was asked for."""
    with _Server(("127.0.0.1", 0), _Echo) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def interrupt_at(line: int, error: type[BaseException]) -> Iterator[Callable[[], bool]]:
    """Raise an exception before the given line, counted from 0, that the client's package executes."""
    left = itertools.count(line, -1)
    raised = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and next(left) == 0:
            raised.append(True)
            raise error
        return trace

    former = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lambda: bool(raised)
    finally:
        sys.settrace(former)


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, CallersTimeoutError])
def test_the_next_request_gets_its_own_answer(echo: str, framing: str, error: type[BaseException]) -> None:
    """For each line that the client executes in a request."""
    client = Transport(echo, timeout=10.0)
    for line in itertools.count():
        client.request("GET", f"/before/{line}")
        came_through = False
        with interrupt_at(line, error) as was_raised:
            try:
                client.request("GET", f"/{framing}/{line}")
            except error:
                came_through = True
        assert came_through == was_raised(), line
        for n in range(2):
            path = f"/after/{line}/{n}"
            assert client.request("GET", path).decode().endswith(path)
        if not was_raised():
            break
    assert line > 20
    client.close()


def test_an_interrupted_event_stream_goes_on(api: TorcClient, workflow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each line: no event comes twice, and none is left out after the one that the stream names as its last."""
    monkeypatch.setattr(event_stream, "FIRST_PAUSE_S", 0.0)
    ids = [api.create(EventRecord(workflow_id=workflow, data={"n": n})).id for n in range(3)]
    for line in itertools.count():
        with api.event_stream(workflow, last_event_id=0) as stream, interrupt_at(line, KeyboardInterrupt) as was_raised:
            seen: list[int | None] = []
            while len(seen) < len(ids):
                try:
                    seen.append(next(stream).id)
                except KeyboardInterrupt:
                    if stream.last_event_id and stream.last_event_id not in seen:
                        seen.append(stream.last_event_id)  # the interrupt came between the note and the return
        assert seen == ids, line
        if not was_raised():
            break
    assert line > 20


def test_a_request_within_a_signal_handler_has_its_own_connection(echo: str) -> None:
    """A handler may ask the server while the interrupted code waits for an answer."""
    client = Transport(echo, timeout=10.0)
    answers: list[bytes] = []
    former = signal.signal(signal.SIGALRM, lambda *_: answers.append(client.request("GET", "/inner")))
    try:
        for n in range(300):
            signal.setitimer(signal.ITIMER_REAL, 0.0001 + (n % 30) * 0.00005)
            assert client.request("GET", f"/outer/{n}").endswith(f"/outer/{n}".encode())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
        client.close()
    assert answers
    assert all(answer.endswith(b"/inner") for answer in answers)


def test_interrupts_by_signals_come_through(echo: str) -> None:
    """Each interrupt is seen by the caller once: none becomes a broken answer that is asked for again."""
    client = Transport(echo, timeout=10.0)
    sent, seen = itertools.count(), itertools.count()

    def interrupt(*_: Any) -> None:
        next(sent)
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        for n in range(300):
            path = f"/chunked/{n}"
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + (n % 30) * 0.00005)
                answer = client.request("GET", path)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                next(seen)
            else:
                assert answer.decode().endswith(path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
        client.close()
    assert next(sent) == next(seen) > 0


def test_a_forked_process_leaves_the_connections_of_its_parent_alone(echo: str) -> None:
    """Both go on asking, each over a connection of its own."""
    client = Transport(echo, timeout=10.0)
    client.request("GET", "/before")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if all(client.request("GET", f"/child/{n}").endswith(b"/%d" % n) for n in range(200)) else 2
        finally:
            os._exit(code)
    for n in range(200):
        assert client.request("GET", f"/parent/{n}").endswith(b"/parent/%d" % n)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    client.close()


def test_the_parser_calls_no_python_code() -> None:
    """A signal's handler may run in any Python code; httptools would swallow what it raises there."""
    called: list[str] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    answer = HttpResponse()
    former = sys.getprofile()
    sys.setprofile(profile)
    try:
        answer._parser.feed_data(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\nhi")
    finally:
        sys.setprofile(former)
    assert called == []
    assert isinstance(answer._parser, httptools.HttpResponseParser)
