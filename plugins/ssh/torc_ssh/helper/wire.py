"""Frames of the protocol: one byte of kind, four bytes of length, then a JSON message or a piece of a file."""

from __future__ import annotations

import json
import struct
from typing import Any, Iterator

MESSAGE = b"M"
PIECE = b"D"
MOST_MESSAGE_BYTES = 16 << 20
MOST_PIECE_BYTES = 256 << 10
_HEADER = struct.Struct(">cI")
_STREAM = struct.Struct(">I")
_MOST_BYTES = {MESSAGE: MOST_MESSAGE_BYTES, PIECE: MOST_PIECE_BYTES + _STREAM.size}


class WireError(Exception):
    """The bytes that the other end sent are no frames."""


def encode_message(message: dict[str, Any]) -> bytes:
    """Return a message as a frame.

    Raises:
        WireError: it is larger than `MOST_MESSAGE_BYTES`.
    """
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(body) > MOST_MESSAGE_BYTES:
        raise WireError(f"a message of {len(body)} bytes is larger than {MOST_MESSAGE_BYTES}")
    return _HEADER.pack(MESSAGE, len(body)) + body


def piece_header(stream: int, size: int) -> bytes:
    """Return what precedes the bytes of a piece in its frame."""
    return _HEADER.pack(PIECE, size + _STREAM.size) + _STREAM.pack(stream)


class FrameReader:
    """Frames from bytes that arrive in portions of any size; it holds at most one incomplete frame."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.frame_bytes = 0
        """Size of the frame that was yielded last."""

    def feed(self, data: bytes) -> Iterator[dict[str, Any] | tuple[int, bytes]]:
        """Yield the frames that are complete with these bytes: messages, and pieces as stream number and bytes.

        Raises:
            WireError: a kind, a length or a message is not as the protocol requires.
        """
        self._buffer += data
        at = 0
        try:
            while len(self._buffer) - at >= _HEADER.size:
                kind, size = _HEADER.unpack_from(self._buffer, at)
                if size > _MOST_BYTES.get(kind, -1) or (kind == PIECE and size < _STREAM.size):
                    raise WireError(f"a frame of kind {kind!r} and {size} bytes")
                start = at + _HEADER.size
                if len(self._buffer) < start + size:
                    return
                at = start + size
                self.frame_bytes = size
                yield self._decode(kind, start, at)
        finally:
            del self._buffer[:at]

    def _decode(self, kind: bytes, start: int, end: int) -> dict[str, Any] | tuple[int, bytes]:
        with memoryview(self._buffer) as view:
            if kind == PIECE:
                (stream,) = _STREAM.unpack_from(view, start)
                return stream, bytes(view[start + _STREAM.size : end])
            body = bytes(view[start:end])
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise WireError(f"a message that is not JSON: {error}") from None
        if not isinstance(message, dict):
            raise WireError(f"a message that is no object: {body[:40]!r}")
        return message
