"""Requests to a helper over a channel, with their answers, events, and pieces of files."""

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Any, Final

from attrs import define, field

from torc_framework.api import TorcError
from torc_ssh.connection import Channel
from torc_ssh.helper.window import MOST_BYTES, Window
from torc_ssh.helper.wire import FrameReader, WireError, encode_message, piece_header

_LOG: Final = logging.getLogger("torc_framework.ssh")
READ_BYTES: Final = 1 << 18
MOST_ANSWER_BYTES: Final = 256 << 20
"""How large an answer in parts may become."""
MOST_UNACKNOWLEDGED_BYTES: Final = 4 * MOST_BYTES
"""A host that sends more of its files without acknowledgement does not obey the protocol."""
MOST_TEXT: Final = 500
REASON_PATIENCE_S: Final = 0.5
"""How long to wait, after the end of the channel, for the reason why the connection is lost."""


class SessionLost(TorcError):  # noqa: N818 - it is a state, as in ConnectionLost of asyncssh
    """The session with the helper is lost, or was closed; the text is the reason, one line."""


class HelperError(TorcError):
    """The helper could not do what was requested.

    Args:
        kind: ``no_space``, ``denied``, ``not_found``, ``exists``, ``changed``, ``invalid`` or ``failed``.
        text: One line for a person; it names the path.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text


@define(eq=False)
class PendingRequest:
    """A request that is not answered.

    Attributes:
        number: Its id, which is the number of its stream too.
        answer: Gets the value, or a `HelperError` or `SessionLost`.
        parts: The parts of the answer so far.
        parts_bytes: Their size.
        changed: Is set when a part, a piece or the answer arrives.
        pieces: Pieces of the file that it gets, oldest first.
    """

    number: int
    answer: asyncio.Future[Any]
    parts: list[Any] = field(factory=list)
    parts_bytes: int = 0
    changed: asyncio.Event = field(factory=asyncio.Event)
    pieces: list[bytes] = field(factory=list)


class HelperRequests:
    """Writes requests to a channel and reads what comes back; nothing that comes is trusted.

    Args:
        channel: The channel, on which frames are exchanged.
        connection_lost: Gets the reason when the connection of the channel is lost.
        on_event: Called with each event.
    """

    def __init__(
        self, channel: Channel, connection_lost: asyncio.Future[str], on_event: Callable[[dict[str, Any]], None]
    ) -> None:
        self._channel = channel
        self._connection_lost = connection_lost
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._pending: dict[int, PendingRequest] = {}
        self._outgoing: list[bytes] = []
        self._unacknowledged = 0
        self._reading: asyncio.Task[None] | None = None
        self._window = Window()
        self._acknowledged = asyncio.Event()
        """Is set when pieces were acknowledged, or a request was answered."""
        self.lost: asyncio.Future[str] = self._loop.create_future()
        """Gets the reason, one line, when no request can be answered any more."""

    def start(self, first_bytes: bytes) -> None:
        """Begin to read; these bytes were read before."""
        self._reading = self._loop.create_task(self._read(first_bytes))

    # --- what goes out ---------------------------------------------------------------------------

    def begin(self, do: str, /, **arguments: Any) -> PendingRequest:
        """Send a request; the caller calls `end` when it is no longer interested."""
        pending = PendingRequest(next(self._numbers), self._loop.create_future())
        if self.lost.done():
            pending.answer.set_exception(SessionLost(self._reason()))
        else:
            self.tell(do, id=pending.number, **arguments)
            self._pending[pending.number] = pending
        return pending

    def end(self, pending: PendingRequest) -> None:
        """Forget a request; a file that is moving for it is no longer moved."""
        if self._pending.pop(pending.number, None) is None:
            return
        if not pending.answer.done():
            pending.answer.cancel()
            self.tell("cancel", stream=pending.number)
        elif not pending.answer.cancelled():
            pending.answer.exception()  # taken note of
        self.acknowledge(pending, sum(map(len, pending.pieces)))
        self._window.forget(pending.number)
        self._acknowledged.set()

    def tell(self, do: str, /, **arguments: Any) -> None:
        """Send a request without waiting for an answer.

        Raises:
            HelperError: it is too large for the protocol.
        """
        try:
            frame = encode_message({"do": do, **arguments})
        except WireError as error:
            raise HelperError("invalid", str(error)) from None
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(frame)

    def _flush(self) -> None:
        """Write the messages of this turn of the event loop at once."""
        outgoing, self._outgoing = self._outgoing, []
        if outgoing:
            self._channel.write(b"".join(outgoing))

    async def send_piece(self, pending: PendingRequest, data: bytes) -> None:
        """Send a piece of a file when the window allows it; return at once if the request is answered."""
        while not self._window.is_open and not pending.answer.done():
            self._acknowledged.clear()
            await self._acknowledged.wait()
        if not pending.answer.done():
            self._window.record_sent(pending.number, len(data))
            self._flush()  # the request precedes its pieces
            self._channel.write(piece_header(pending.number, len(data)) + data)
            await self._channel.drain()

    def acknowledge(self, pending: PendingRequest, size: int) -> None:
        """Tell the helper that these bytes of a file were taken."""
        self._unacknowledged -= size
        if size and not self.lost.done():
            self.tell("ack", stream=pending.number, bytes=size)

    # --- what comes in ---------------------------------------------------------------------------

    async def _read(self, data: bytes) -> None:
        reader = FrameReader()
        try:
            while True:
                for frame in reader.feed(data):
                    if isinstance(frame, dict):
                        self._take_message(frame, reader.frame_bytes)
                    else:
                        self._take_piece(*frame)
                await asyncio.sleep(0)  # lets the other tasks work while data are plenty
                data = await self._channel.read(READ_BYTES)
                if not data:
                    break
        except WireError as error:
            self.lose(f"the host sent what is no answer of the helper: {clean_text(error)}")
            return
        except Exception as error:
            _LOG.exception("event=session_failed")
            self.lose(f"{type(error).__name__}: {clean_text(error)}")
            return
        if not self._connection_lost.done():
            await asyncio.wait([self._connection_lost], timeout=REASON_PATIENCE_S)
        if self._connection_lost.done() and not self._connection_lost.cancelled():
            self.lose(self._connection_lost.result())
        else:
            self.lose(describe_failure("the helper on the host has ended", self._channel.stderr_tail()))

    def _take_message(self, message: dict[str, Any], size: int) -> None:
        if isinstance(message.get("event"), str):
            if message["event"] == "ack":
                self._take_ack(message.get("stream"), message.get("bytes"))
            else:
                self._call_on_event(message)
            return
        number = message.get("id")
        pending = self._pending.get(number) if isinstance(number, int) else None
        if pending is None or pending.answer.done():
            return
        if "part" in message:
            pending.parts_bytes += size
            if pending.parts_bytes > MOST_ANSWER_BYTES:
                raise WireError(f"an answer of more than {MOST_ANSWER_BYTES} bytes")
            pending.parts.append(message["part"])
        elif isinstance(error := message.get("error"), dict):
            text = clean_text(error.get("text"))
            pending.answer.set_exception(HelperError(str(error.get("kind"))[:20], text))
        else:
            pending.answer.set_result(message.get("ok"))
        pending.changed.set()
        self._acknowledged.set()

    def _call_on_event(self, event: dict[str, Any]) -> None:
        try:
            self._on_event(event)
        except Exception:  # a strange event does not end the session, nor what is said of the others
            _LOG.exception("event=event_not_taken name=%.40r", event["event"])

    def _take_ack(self, stream: Any, size: Any) -> None:
        if isinstance(stream, int) and isinstance(size, int) and stream in self._pending:
            self._window.record_ack(stream, size)
            self._acknowledged.set()

    def _take_piece(self, stream: int, data: bytes) -> None:
        pending = self._pending.get(stream)
        if pending is None or pending.answer.done():
            return  # it was sent before the helper learned that the request has ended
        self._unacknowledged += len(data)
        if self._unacknowledged > MOST_UNACKNOWLEDGED_BYTES:
            raise WireError("more of a file than the window allows")
        pending.pieces.append(data)
        pending.changed.set()

    # --- the end ---------------------------------------------------------------------------------

    def _reason(self) -> str:
        return "the session was closed" if self.lost.cancelled() else self.lost.result()

    def lose(self, reason: str) -> None:
        """Take the session as lost: all requests fail with this reason."""
        if not self.lost.done():
            self.lost.set_result(reason)
        self._fail_all()

    def _fail_all(self) -> None:
        self._channel.close()
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(SessionLost(self._reason()))
            pending.changed.set()
        self._acknowledged.set()

    async def close(self) -> None:
        """End the channel; requests without an answer get `SessionLost`."""
        self.lost.cancel()
        self._fail_all()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


def clean_text(text: object) -> str:
    """Return a text that a host sent in a form that is safe to show: one line of printable characters, not long."""
    words = " ".join(str(text)[: 4 * MOST_TEXT].split())
    return "".join(each if each.isprintable() else "?" for each in words)[:MOST_TEXT]


def describe_failure(what: str, stderr: str) -> str:
    """Return a reason with the last line of the standard error."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    return f"{what}: {clean_text(lines[-1])}" if lines else what
