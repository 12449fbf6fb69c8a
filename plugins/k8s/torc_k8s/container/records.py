r"""The records in the log of a container.

The log begins with ``@POD start TIME``. A record is a line ``@POD STREAM OFFSET LENGTH ENCODING``, the bytes, and a
line feed; the stream is ``o`` (standard output) or ``e`` (standard error). With the encoding ``t`` the bytes ``\r`` and
``\x1e`` have changed places, for container runtimes drop a ``\r`` in front of a line feed; with ``n`` also ``\n`` and
``\x01``, for records of the largest size; with ``x`` the bytes are lines of hexadecimal digits, with a point at the
end. ``@POD end SIZE_OF_O SIZE_OF_E WAITS`` follows the last record.
"""

import re
from contextlib import suppress
from typing import Final, Literal

from attrs import define, field, frozen

MAX_RECORD: Final = 262_144
"""Most bytes of a record."""
_MAX_HEX: Final = 4 * MAX_RECORD
_MAX_HEADER: Final = 400
_SWAPS: Final = {
    b"t": bytes.maketrans(b"\r\x1e", b"\x1e\r"),
    b"n": bytes.maketrans(b"\n\x01\r\x1e", b"\x01\n\x1e\r"),
}


@frozen
class Record:
    """A piece of a stream of the job.

    Attributes:
        stream: ``o`` for standard output, ``e`` for standard error.
        offset: Position of the first byte in the stream.
        data: The bytes.
    """

    stream: Literal["o", "e"]
    offset: int
    data: bytes


@frozen
class LogStart:
    """The first line of the log: nothing before it was rotated away."""


@frozen
class LogEnd:
    """The job has ended, and the program has copied everything.

    Attributes:
        sizes: Bytes of standard output and of standard error.
        waits: The program waits until a reader says that it has them.
    """

    sizes: tuple[int, int]
    waits: bool


LogItem = Record | LogStart | LogEnd


class _NeedsMoreError(Exception):
    """The buffer ends within an item."""


@define
class RecordParser:
    """Finds the records of one pod in its log, also if the log begins within a record or has other text.

    A record that is not whole is skipped: the container's runtime has dropped bytes, or the program was interrupted.

    Attributes:
        pod: Name of the pod.
        skipped: How many records were not whole.
    """

    pod: str
    skipped: int = field(default=0, init=False)
    _buffer: bytearray = field(factory=bytearray, init=False)
    _mark: bytes = field(init=False)
    _header: re.Pattern[bytes] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._mark = b"\n@" + self.pod.encode() + b" "
        self._header = re.compile(
            rb"@" + re.escape(self.pod.encode()) + rb" (?:start [0-9.]*|([oe]) ([0-9]{1,18}) ([0-9]{1,6}) ([tnx])"
            rb"|end ([0-9]{1,18}) ([0-9]{1,18}) ([01]))\r?\n"
        )
        self.reset()

    def reset(self) -> None:
        """Begin with another reading of the log."""
        self._buffer = bytearray(b"\n")

    def feed(self, data: bytes) -> list[LogItem]:
        """Take the next bytes of the log and return what they complete."""
        self._buffer += data
        found: list[LogItem] = []
        with suppress(_NeedsMoreError):
            while True:
                item = self._next()
                if item is not None:
                    found.append(item)
        return found

    def rest(self) -> list[LogItem]:
        """Return what is there of a last record that was cut, after the end of a log that has no `LogEnd`."""
        header = self._header.match(self._buffer, 1)
        if header is None or header[4] not in _SWAPS:
            return []
        data = bytes(self._buffer[header.end() : header.end() + int(header[3])])
        return [Record("o" if header[1] == b"o" else "e", int(header[2]), data.translate(_SWAPS[header[4]]))]

    def _next(self) -> LogItem | None:
        """Remove the next item from the buffer and return it; None if something else was removed."""
        buffer = self._buffer
        place = buffer.find(self._mark)
        if place < 0:
            del buffer[: max(len(buffer) - len(self._mark), 0)]
            raise _NeedsMoreError
        if place:
            del buffer[:place]
        header = self._header.match(buffer, 1)
        if header is None:
            if buffer.find(b"\n", 1) < 0 and len(buffer) < _MAX_HEADER:
                raise _NeedsMoreError
            del buffer[: len(self._mark)]
            return None
        if header[1] is not None:
            return self._record(header)
        found = LogStart() if header[5] is None else LogEnd((int(header[5]), int(header[6])), header[7] == b"1")
        del buffer[: header.end() - 1]  # the line feed in front of the next header stays
        return found

    def _record(self, header: re.Match[bytes]) -> Record | None:
        length, start = int(header[3]), header.end()
        end = None if length > MAX_RECORD else self._end(start, length, is_hex=header[4] == b"x")
        data = None
        if end is not None:
            body = bytes(self._buffer[start:end])
            data = _from_hex(body[:-1]) if header[4] == b"x" else body.translate(_SWAPS[header[4]])
        if end is None or data is None or len(data) != length:
            self.skipped += 1
            del self._buffer[: start - 1]
            return None
        found = Record("o" if header[1] == b"o" else "e", int(header[2]), data)
        del self._buffer[:end]
        return found

    def _end(self, start: int, length: int, *, is_hex: bool) -> int | None:
        """Return the place of the line feed after a body; None if the body is not whole."""
        buffer = self._buffer
        if not is_hex:
            if buffer.find(self._mark, start - 1, start + length + 1) >= 0:  # another header begins too early
                return None
            if len(buffer) <= start + length:
                raise _NeedsMoreError
            return start + length if buffer[start + length] == ord("\n") else None
        end = buffer.find(b".\n", start)
        if buffer.find(b"@", start, end if end >= 0 else len(buffer)) >= 0:
            return None
        if end < 0 and len(buffer) - start <= _MAX_HEX:
            raise _NeedsMoreError
        return end + 1 if end >= 0 else None


def _from_hex(text: bytes) -> bytes | None:
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return None
