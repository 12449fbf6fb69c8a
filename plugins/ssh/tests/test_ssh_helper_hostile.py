"""A host that sends what a helper never would: the session ends with a reason, and nothing else happens."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from helper_sessions import run
from hypothesis import given
from hypothesis import strategies as st
from torc_ssh.connection import ConnectError
from torc_ssh.helper.wire import FrameReader, WireError, encode_message, piece_header
from torc_ssh.session import HelperError, HostFacts, HostSession, SessionLost
from torc_ssh.session.helper_requests import HelperRequests, clean_text

FACTS: dict[str, Any] = {
    "python": "/usr/bin/python3",
    "version": "3.11.2",
    "hostname": "h1",
    "boot_id": "b",
    "user": "u",
    "uid": 1,
    "home": "/h",
    "pid": 2,
    "cpus": 4,
    "memory_bytes": 1 << 30,
    "gpus": ["0"],
    "time": 1.5,
}


class ScriptedChannel:
    """A host whose answers are written by the test."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[bytes] = asyncio.Queue()
        self.sent = FrameReader()
        self.requests: list[dict[str, Any]] = []

    async def read(self, n: int) -> bytes:
        return await self.incoming.get()

    def write(self, data: bytes) -> None:
        self.requests += [frame for frame in self.sent.feed(data) if isinstance(frame, dict)]

    async def drain(self) -> None:
        return

    def write_eof(self) -> None:
        return

    async def exit_status(self) -> int | None:
        return None

    def stderr_tail(self) -> str:
        return ""

    def close(self) -> None:
        self.incoming.put_nowait(b"")

    def answer(self, number: int, **answer: Any) -> None:
        self.incoming.put_nowait(encode_message({"id": number, **answer}))


def scripted() -> tuple[ScriptedChannel, HelperRequests, list[dict[str, Any]]]:
    """Return a host, the requests to it, and its events."""
    channel, events = ScriptedChannel(), list[dict[str, Any]]()
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    requests = HelperRequests(channel, lost, events.append)
    requests.start(b"")
    return channel, requests, events


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"M\xff\xff\xff\xff",
        b"D\xff\xff\xff\xff",
        b"D\0\0\0\1x",
        b"M\0\0\0\2[]",
        b"M\0\0\0\3\xff\xfe\xfd",
        b"M\0\0\x03\xe8" + b"[" * 1000,
    ],
)
def test_what_is_no_frame_ends_the_session(data: bytes) -> None:
    async def story() -> None:
        channel, requests, _ = scripted()
        pending = requests.begin("ping")
        channel.incoming.put_nowait(data)
        with pytest.raises(SessionLost, match="no answer of the helper"):
            await pending.answer
        await requests.close()

    run(story())


def test_messages_without_meaning_are_ignored() -> None:
    async def story() -> None:
        channel, requests, events = scripted()
        pending = requests.begin("ping")
        for message in (
            {},
            {"id": None},
            {"id": "1", "ok": 1},
            {"id": 99, "ok": 1},
            {"id": [1], "ok": 1},
            {"id": {}, "error": 3},
            {"event": 3},
            {"event": "ack"},
            {"event": "ack", "stream": [], "bytes": {}},
            {"event": "ack", "stream": 1, "bytes": -5},
            {"event": "ack", "stream": 1, "bytes": 10**30},
        ):
            channel.incoming.put_nowait(encode_message(message))
        channel.incoming.put_nowait(piece_header(99, 3) + b"abc")
        channel.answer(pending.number, ok="yes")
        channel.answer(pending.number, error={"kind": "failed"})
        assert await pending.answer == "yes"
        assert events == []
        await requests.close()

    run(story())


def test_an_event_that_cannot_be_taken_does_not_end_the_session() -> None:
    async def story() -> None:
        channel, lost = ScriptedChannel(), asyncio.get_running_loop().create_future()
        taken: list[Any] = []

        def take(event: dict[str, Any]) -> None:
            taken.append(event["reports"][0])

        requests = HelperRequests(channel, lost, take)
        requests.start(b"")
        pending = requests.begin("ping")
        channel.incoming.put_nowait(encode_message({"event": "attempts"}))
        channel.incoming.put_nowait(encode_message({"event": "attempts", "reports": [1]}))
        channel.answer(pending.number, ok="yes")
        assert await pending.answer == "yes"
        assert taken == [1]
        await requests.close()

    run(story())


def test_an_error_is_one_printable_line() -> None:
    async def story() -> None:
        channel, requests, _ = scripted()
        pending = requests.begin("ping")
        channel.answer(pending.number, error={"kind": ["x"] * 1000, "text": "\x1b[31m\nno\x07\u202e" + "x" * 10_000})
        with pytest.raises(HelperError) as caught:
            await pending.answer
        assert caught.value.text.startswith("?[31m no??xxx")
        assert len(caught.value.text) <= 500
        assert len(caught.value.kind) <= 20
        await requests.close()

    run(story())


def test_an_endless_answer_ends_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torc_ssh.session.helper_requests.MOST_ANSWER_BYTES", 1 << 20)

    async def story() -> None:
        channel, requests, _ = scripted()
        pending = requests.begin("list", path=".")
        part = encode_message({"id": pending.number, "part": [["x" * 1000]] * 100})
        for _ in range(20):
            channel.incoming.put_nowait(part)
        with pytest.raises(SessionLost, match="bytes"):
            await pending.answer
        await requests.close()

    run(story())


def test_an_endless_file_ends_the_session() -> None:
    async def story() -> None:
        channel, requests, _ = scripted()
        pending = requests.begin("get", path="x")
        piece = piece_header(pending.number, 256 << 10) + bytes(256 << 10)
        for _ in range(200):
            channel.incoming.put_nowait(piece)
        with pytest.raises(SessionLost, match="window"):
            await pending.answer
        await requests.close()

    run(story())


class ScriptedSession(HostSession):
    """A session over a scripted channel."""

    def __init__(self) -> None:
        self.host, self.sent, _ = scripted()
        super().__init__(self.sent, self.host)


@pytest.mark.parametrize(
    ("part", "answer"),
    [
        (None, {"sha256": "0" * 64}),
        ({"size": 3, "mode": 0o644, "mtime_ns": 1}, {"sha256": "0" * 64}),
        ({"size": "3", "mode": 0o644, "mtime_ns": 1}, None),
        ([], "text"),
    ],
)
def test_a_file_whose_answer_is_wrong_does_not_get_its_name(tmp_path: Path, part: Any, answer: Any) -> None:
    async def story() -> None:
        session = ScriptedSession()
        task = asyncio.ensure_future(session.get_file("x", tmp_path / "x"))
        while not session.host.requests:
            await asyncio.sleep(0.01)
        if part is not None:
            session.host.answer(1, part=part)
        session.host.incoming.put_nowait(piece_header(1, 3) + b"abc")
        session.host.answer(1, ok=answer)
        with pytest.raises(HelperError) as caught:
            await task
        assert caught.value.kind == "changed"
        await session.close()

    run(story())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [None, [], [None], [{"kind": "file"}, None], [{"kind": "file", "size": "3"}, {}], ["x", "y"], [None, {"kind": 3}]],
)
def test_an_answer_about_files_is_checked(answer: Any) -> None:
    async def story() -> None:
        session = ScriptedSession()
        task = asyncio.ensure_future(session.stat(["a", "b"]))
        while not session.host.requests:
            await asyncio.sleep(0.01)
        session.host.answer(1, ok=answer)
        with pytest.raises(HelperError):
            await task
        await session.close()

    run(story())


@pytest.mark.parametrize("name", list(FACTS))
@pytest.mark.parametrize("value", [None, "x" * 100_000, -1, [1], {"a": 1}, 10**30, float("nan"), float("inf"), True])
def test_facts_are_checked(name: str, value: Any) -> None:
    with pytest.raises(HelperError, match=name):
        HostFacts.from_answer({**FACTS, name: value})


def test_facts() -> None:
    found = HostFacts.from_answer(FACTS)
    assert (found.cpus, found.gpus) == (4, ("0",))


@given(st.binary(max_size=300))
def test_frames_of_any_bytes(data: bytes) -> None:
    reader = FrameReader()
    try:
        for frame in reader.feed(data):
            assert isinstance(frame, dict | tuple)
    except WireError:
        pass


@given(st.lists(st.one_of(st.dictionaries(st.text(), st.text()), st.binary(max_size=50)), max_size=8), st.data())
def test_frames_arrive_in_portions_of_any_size(frames: list[Any], data: st.DataObject) -> None:
    wire = b"".join(
        encode_message(each) if isinstance(each, dict) else piece_header(7, len(each)) + each for each in frames
    )
    reader, found = FrameReader(), list[Any]()
    while wire:
        size = data.draw(st.integers(1, len(wire)))
        found += reader.feed(wire[:size])
        wire = wire[size:]
    assert found == [each if isinstance(each, dict) else (7, each) for each in frames]


def test_a_message_that_is_too_large_is_not_sent() -> None:
    async def story() -> None:
        _, requests, _ = scripted()
        with pytest.raises(HelperError, match="larger"):
            requests.begin("run", stdin="x" * (17 << 20))
        await requests.close()

    run(story())


def test_a_text_is_shown_as_one_line() -> None:
    assert clean_text("a\r\n\tb\x00\x9b") == "a b??"
    assert clean_text(json.loads('"\\ud800"')) == "?"
    assert issubclass(ConnectError, Exception)
