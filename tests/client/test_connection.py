"""Tests of responses in every framing that HTTP/1.1 allows, in pieces of every size."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.client.http.connection import BrokenResponseError, HttpResponse

FRAMINGS = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
    "until the end of the connection": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello",
}


@pytest.mark.parametrize("framing", FRAMINGS)
@given(cuts=st.lists(st.integers(min_value=1, max_value=90), max_size=5))
def test_an_answer_reads_the_same_however_it_is_cut(framing: str, cuts: list[int]) -> None:
    text = FRAMINGS[framing]
    edges = [0, *sorted({cut for cut in cuts if cut < len(text)}), len(text)]
    answer = HttpResponse()
    for start, end in itertools.pairwise(edges):
        answer.feed(text[start:end])
    if not answer.is_complete:
        answer.feed(b"")
    assert (answer.status, answer.reason, answer.content) == (200, "OK", b"hello")
    assert answer.keeps_alive == (framing != "until the end of the connection")


@pytest.mark.parametrize("text", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", b"HTTP/1.1 200 OK\r\nConte"])
def test_a_connection_closed_too_early_is_an_error(text: bytes) -> None:
    answer = HttpResponse()
    if text:
        answer.feed(text)
    with pytest.raises(BrokenResponseError, match="without a response"):
        answer.feed(b"")


def test_what_is_no_http_is_an_error() -> None:
    with pytest.raises(BrokenResponseError, match="not HTTP"):
        HttpResponse().feed(b"SSH-2.0-OpenSSH_9.2\r\n")


def test_a_second_answer_to_one_request_is_an_error() -> None:
    """It must not be taken for the answer to the next request."""
    with pytest.raises(BrokenResponseError, match="not HTTP"):
        HttpResponse().feed(FRAMINGS["length"] * 2)


def test_a_change_of_protocol_is_an_error() -> None:
    with pytest.raises(BrokenResponseError, match="not HTTP"):
        HttpResponse().feed(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
