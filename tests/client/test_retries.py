"""Tests of retries: which failed requests are repeated, and after which pauses."""

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import OK, Handler, answer, hang_up, json_answer, scripted

from torc_framework.client.http.retries import LAST_PAUSE_S, Backoff, FailedRequest, RetryRule, retry_after_seconds
from torc_framework.client.http.transport import Transport
from torc_framework.errors import ApiError, ServerUnreachableError, TorcError


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the client made, without making them."""
    made: list[float] = []
    monkeypatch.setattr("torc_framework.client.http.transport.time.sleep", made.append)
    return made


def patient(url: str, patience: float = 3600.0) -> Transport:
    return Transport(url, timeout=10.0, patience=patience)


def refusal(status: int, *headers: bytes) -> Handler:
    lines = b"".join(header + b"\r\n" for header in headers)
    return answer(b"HTTP/1.1 %d X\r\nContent-Length: 4\r\n%s\r\nbusy" % (status, lines))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_that_never_left_is_sent_when_somebody_listens(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any request is repeated if it was not sent."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(OK)

        def come_up(_: float) -> None:
            listener.listen()
            threading.Thread(target=serve, daemon=True).start()

        monkeypatch.setattr("torc_framework.client.http.transport.time.sleep", come_up)
        client = patient(f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert client.request(method, "/x", body=b"{}") == b'{"status":"ok"}'
        client.close()


@pytest.mark.parametrize(
    ("method", "handler"),
    [
        ("GET", refusal(502)),
        ("PUT", refusal(503)),
        ("DELETE", refusal(504)),
        ("POST", refusal(429, b"Retry-After: 0")),
        ("POST", refusal(503, b"Retry-After: 1")),
        ("GET", hang_up),
    ],
)
def test_what_does_no_harm_is_sent_again(method: str, handler: Handler, pauses: list[float]) -> None:
    """Twice refused or lost, and answered at last."""
    with scripted(handler, handler, answer(OK)) as (url, seen):
        client = patient(url)
        assert client.request(method, "/x", body=b"{}") == b'{"status":"ok"}'
        client.close()
    assert (len(seen), len(pauses)) == (3, 2)


def test_a_post_that_is_declared_repeatable_is_sent_again(pauses: list[float]) -> None:
    with scripted(hang_up, answer(OK)) as (url, seen):
        client = patient(url)
        assert client.request("POST", "/x", body=b"{}", repeatable=True) == b'{"status":"ok"}'
        client.close()
    assert (len(seen), len(pauses)) == (2, 1)


@pytest.mark.parametrize(
    ("method", "handler", "error", "message"),
    [
        ("POST", hang_up, ServerUnreachableError, "this POST may have been carried out, so it was not sent again"),
        ("POST", refusal(502), ApiError, "busy"),
        ("POST", refusal(503), ApiError, "busy"),
        ("GET", answer(json_answer(500, b"oops")), ApiError, "oops"),
        ("GET", answer(json_answer(404, b"gone")), ApiError, "gone"),
    ],
)
def test_what_may_do_harm_or_cannot_help_is_raised_at_once(
    method: str, handler: Handler, error: type[TorcError], message: str, pauses: list[float]
) -> None:
    with scripted(handler, answer(OK)) as (url, seen):
        client = patient(url)
        with pytest.raises(error, match=message):
            client.request(method, "/x", body=b"{}")
        client.close()
    assert (len(seen), pauses) == (1, [])


def test_the_server_says_when_to_come_back(pauses: list[float]) -> None:
    with scripted(refusal(429, b"Retry-After: 7"), answer(OK)) as (url, _):
        client = patient(url)
        client.request("POST", "/x", body=b"{}")
        client.close()
    assert pauses == [7.0]


def test_a_server_that_wants_more_time_than_there_is_patience_is_left_alone(pauses: list[float]) -> None:
    with scripted(refusal(429, b"Retry-After: 7")) as (url, _):
        client = patient(url, patience=5.0)
        with pytest.raises(ApiError, match="busy"):
            client.request("GET", "/x")
        client.close()
    assert pauses == []


@given(total=st.floats(0, 10_000), wanted=st.lists(st.floats(0, 100), max_size=300))
def test_all_pauses_stay_within_the_bound(total: float, wanted: list[float]) -> None:
    """On a clock that only the pauses move; each pause is at least what the server wanted."""

    clock = [0.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torc_framework.client.http.retries.time.monotonic", lambda: clock[0])
        patience = Backoff(total)
        for after_s in wanted:
            failure = FailedRequest(TorcError(), RetryRule.ALWAYS, after_s=after_s)
            pause = patience.pause_before_retry(failure, is_idempotent=False)
            if pause is None:
                break
            assert after_s <= pause <= max(after_s, LAST_PAUSE_S)
            clock[0] += pause
    assert clock[0] <= total


@pytest.mark.parametrize(
    ("header", "check"),
    [
        ("12", lambda value: value == 12),
        ("Fri, 31 Dec 1999 23:59:59 GMT", lambda value: value == 0),
        ("Fri, 31 Dec 2199 23:59:59 GMT", lambda value: value > 1e9),
        ("soon", lambda value: value == 0),
        ("", lambda value: value == 0),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str, check: Callable[[float], Any]) -> None:
    assert check(retry_after_seconds(header))
