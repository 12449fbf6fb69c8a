"""Files that move: written or read by worker threads, one at a time for each stream, while the loop goes on."""

from __future__ import annotations

import collections
import hashlib
import os
import secrets
import stat as mode_bits
from typing import Any, Callable

from torc_ssh.helper.errors import CHANGED, INVALID, RefusedRequestError, describe_error
from torc_ssh.helper.loop import HelperLoop
from torc_ssh.helper.wire import MOST_PIECE_BYTES

BATCH_BYTES = 4 * MOST_PIECE_BYTES
"""How much one worker thread reads of a file before the other streams get their turn."""
MOST_READ_BYTES = 4 << 20
"""How much of all files together is read ahead of what is sent."""
MOST_UNWRITTEN_BYTES = 32 << 20
"""A stream that gets more than this, because its disk is slow and its sender ignores the window, fails."""
CLOSE_S = 2.0
"""Seconds for which the helper, when its connection ends, waits for worker threads whose disk may be slow."""
_MOST_NAME_BYTES = 255

Answer = Callable[[str, Any], None]
"""Takes ``ok``, ``error`` or ``part``, and the value."""


def temporary_path(path: str) -> str:
    """Return a new path beside another, for its content until it is complete."""
    folder, name = os.path.split(path)
    mark = ".torc-" + secrets.token_hex(4)
    stem = os.fsdecode(os.fsencode(name)[: _MOST_NAME_BYTES - len(mark) - 1])
    return os.path.join(folder, "." + stem + mark)


class Stream:
    """A file that moves.

    Args:
        loop: The loop of the helper.
        answer: Sends the answer, or a part of it.
        ended: Called when the stream is over.
        path: The file.
    """

    def __init__(self, loop: HelperLoop, answer: Answer, ended: Callable[[], None], path: str) -> None:
        self._loop = loop
        self._path = path
        self._answer = answer
        self._ended = ended
        self._fd = -1
        self._digest = hashlib.sha256()
        self._is_busy = False
        self._is_over = False

    @property
    def is_busy(self) -> bool:
        """A worker thread works for it, and discards what is incomplete afterwards if the stream is over."""
        return self._is_busy

    def _schedule(self) -> None:
        """Have a worker thread call `_work`, unless one does."""
        if not self._is_busy and not self._is_over:
            self._is_busy = True
            self._loop.submit(self._call_work)

    def _call_work(self) -> None:
        try:
            result = self._work()
        except Exception as error:
            if isinstance(error, OSError) and error.filename is None:
                error.filename = self._path  # reading and writing do not name it
            found = describe_error(error)
            self._loop.post(lambda: self._worked(lambda: self._finish("error", found)))
        else:
            self._loop.post(lambda: self._worked(result))

    def _worked(self, result: Callable[[], None]) -> None:
        self._is_busy = False
        if self._is_over:
            self.discard()
        else:
            result()

    def _work(self) -> Callable[[], None]:
        """Do the next portion of work; return what the loop does then."""
        raise NotImplementedError

    def _finish(self, kind: str, value: Any) -> None:
        """End the stream with an answer."""
        self._is_over = True
        if not self._is_busy:
            self.discard()
        self._ended()
        self._answer(kind, value)

    def cancel(self) -> None:
        """End the stream without an answer."""
        self._is_over = True
        if not self._is_busy:
            self.discard()
        self._ended()

    def discard(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class PutStream(Stream):
    """A file that comes; it is written under a temporary name, synchronized, compared with its digest and renamed.

    Args:
        loop: As in `Stream`.
        answer: As in `Stream`.
        ended: As in `Stream`.
        ack: Called with the number of bytes that are written, from time to time.
        path: Its path; folders are made. A link is followed.
        size: Its size in bytes.
        mode: Its permission bits.
        mtime_ns: Its time of modification; the present one by default.
    """

    def __init__(
        self,
        loop: HelperLoop,
        answer: Answer,
        ended: Callable[[], None],
        ack: Callable[[int], None],
        *,
        path: str,
        size: int,
        mode: int = 0o644,
        mtime_ns: int | None = None,
    ) -> None:
        super().__init__(loop, answer, ended, os.path.realpath(path) if os.path.islink(path) else path)
        self._ack = ack
        self._temporary = temporary_path(self._path)
        self._size = size
        self._mode = mode & 0o777
        self._mtime_ns = mtime_ns
        self._pieces: collections.deque[bytes] = collections.deque()
        self._waiting_bytes = 0
        self._written = 0
        self._expected: str | None = None
        self._schedule()

    def add(self, data: bytes) -> None:
        """Append a piece."""
        self._pieces.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes > MOST_UNWRITTEN_BYTES:
            self._finish("error", {"kind": INVALID, "text": "more pieces than the window allows"})
        self._schedule()

    def end(self, sha256: str) -> None:
        """Complete the file after its last piece."""
        self._expected = str(sha256)
        self._schedule()

    def _work(self) -> Callable[[], None]:
        expected = self._expected  # read before the pieces: all pieces precede it
        if self._fd < 0:
            self._open()
        taken = 0
        while self._pieces:
            data = memoryview(self._pieces.popleft())
            taken += len(data)
            self._digest.update(data)
            while data:
                data = data[os.write(self._fd, data) :]
        self._written += taken
        value = self._complete(expected) if expected is not None else None
        return lambda: self._go_on(taken, value)

    def _open(self) -> None:
        if os.path.isdir(self._path):
            raise IsADirectoryError(21, "Is a directory", self._path)
        folder = os.path.dirname(self._path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        self._fd = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)

    def _complete(self, expected: str) -> dict[str, Any]:
        found = self._digest.hexdigest()
        if self._written != self._size or found != expected:
            raise RefusedRequestError(
                CHANGED, f"{self._path}: {self._written} bytes of {self._size}, or another digest"
            )
        os.fchmod(self._fd, self._mode)
        if self._mtime_ns is not None:
            os.utime(self._fd, ns=(self._mtime_ns, self._mtime_ns))
        os.fsync(self._fd)
        state = os.fstat(self._fd)
        os.rename(self._temporary, self._path)
        os.close(self._fd)
        self._fd = -1
        return {"sha256": found, "size": state.st_size, "mtime_ns": state.st_mtime_ns}

    def _go_on(self, taken: int, value: dict[str, Any] | None) -> None:
        self._waiting_bytes -= taken
        self._ack(taken)
        if value is not None:
            self._finish("ok", value)
        elif self._pieces or self._expected is not None:
            self._schedule()

    def discard(self) -> None:
        """Close and remove the temporary file, if there is one."""
        if self._fd >= 0:
            super().discard()
            try:
                os.unlink(self._temporary)
            except OSError:
                pass  # its folder was removed, or is read-only by now
        self._pieces.clear()


class GetStream(Stream):
    """A file that goes, with the size that it has when it is opened.

    Args:
        loop: As in `Stream`.
        answer: As in `Stream`.
        ended: As in `Stream`.
        path: Its path; a link is followed.
        offset: Where to begin; the digest is that of the whole file.
    """

    def __init__(
        self, loop: HelperLoop, answer: Answer, ended: Callable[[], None], *, path: str, offset: int = 0
    ) -> None:
        super().__init__(loop, answer, ended, path)
        self._offset = offset
        self._at = 0
        self._size = 0
        self.ready: collections.deque[bytes] = collections.deque()
        """Pieces that were read and not sent."""
        self.ready_bytes = 0
        self._schedule()

    @property
    def is_read(self) -> bool:
        """The whole file was read, and nothing is being read."""
        return not self._is_busy and self._fd >= 0 and self._at == self._size

    def read_on(self) -> None:
        """Read the next pieces, unless the file is being read or was read to its end."""
        if self._fd >= 0 and self._at < self._size:
            self._schedule()

    def take(self) -> bytes:
        """Return the next piece, which is ready."""
        data = self.ready.popleft()
        self.ready_bytes -= len(data)
        self.check_end()
        return data

    def check_end(self) -> None:
        """End the stream when everything was sent."""
        if self.is_read and not self.ready:
            digest = self._digest.hexdigest()
            self._loop.post(lambda: self._finish("ok", {"sha256": digest}))  # after the piece that is being taken
            self._size = -1

    def _work(self) -> Callable[[], None]:
        if self._fd < 0:
            return self._open()
        pieces: list[bytes] = []
        end = min(self._size, self._at + BATCH_BYTES)
        while self._at < end:
            data = self._read(min(end - self._at, MOST_PIECE_BYTES))
            pieces.append(data)
        return lambda: self._add(pieces)

    def _open(self) -> Callable[[], None]:
        fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)  # a FIFO does not wait for its writer
        state = os.fstat(fd)
        if not mode_bits.S_ISREG(state.st_mode):
            os.close(fd)
            raise RefusedRequestError(INVALID, f"{self._path} is no regular file")
        self._fd = fd
        if not 0 <= self._offset <= state.st_size:
            raise RefusedRequestError(CHANGED, f"{self._path} has {state.st_size} bytes, fewer than {self._offset}")
        self._size = state.st_size
        while self._at < self._offset:
            self._read(min(self._offset - self._at, BATCH_BYTES))
        value = {"size": state.st_size, "mtime_ns": state.st_mtime_ns, "mode": mode_bits.S_IMODE(state.st_mode)}
        return lambda: self._announce(value)

    def _read(self, size: int) -> bytes:
        data = os.read(self._fd, size)
        if not data:
            raise RefusedRequestError(CHANGED, f"{self._path} has become shorter than {self._size} bytes")
        self._digest.update(data)
        self._at += len(data)
        return data

    def _announce(self, value: dict[str, Any]) -> None:
        self._answer("part", value)
        self.check_end()

    def _add(self, pieces: list[bytes]) -> None:
        self.ready.extend(pieces)
        self.ready_bytes += sum(map(len, pieces))


class Streams:
    """All files that move over one connection.

    Args:
        loop: The loop of the helper.
        answer: Sends an answer: the request's id, then as in `Answer`.
    """

    def __init__(self, loop: HelperLoop, answer: Callable[[int, str, Any], None]) -> None:
        self._loop = loop
        self._answer = answer
        self._puts: dict[int, PutStream] = {}
        self._gets: dict[int, GetStream] = {}
        self._over: list[Stream] = []
        """Streams that were over before a worker thread was done with them."""
        loop.on_piece = self.add_piece
        loop.next_piece = self._next_piece

    def put(self, number: int, arguments: dict[str, Any]) -> None:
        """Begin to write a file; the request's arguments are those of `PutStream`."""
        self._puts[number] = PutStream(
            self._loop,
            lambda kind, value: self._answer(number, kind, value),
            lambda: self._forget(number),
            lambda size: self._loop.send({"event": "ack", "stream": number, "bytes": size}),
            **arguments,
        )

    def get(self, number: int, arguments: dict[str, Any]) -> None:
        """Begin to read a file; the request's arguments are those of `GetStream`."""
        self._gets[number] = GetStream(
            self._loop,
            lambda kind, value: self._answer(number, kind, value),
            lambda: self._forget(number),
            **arguments,
        )

    def add_piece(self, number: int, data: bytes) -> None:
        """Take a piece that has come; those of streams that have failed are ignored."""
        if number in self._puts:
            self._puts[number].add(data)

    def put_end(self, stream: int, sha256: str) -> None:
        """Complete a file."""
        if stream in self._puts:
            self._puts[stream].end(sha256)

    def ack(self, stream: int, bytes: int) -> None:  # noqa: A002 - the argument's name in the protocol
        """Take note of what the other end has received."""
        self._loop.window.record_ack(stream, bytes)

    def cancel(self, stream: int) -> None:
        """End a stream without an answer."""
        found: Stream | None = self._puts.get(stream) or self._gets.get(stream)
        if found is not None:
            found.cancel()

    def close(self) -> None:
        """Remove what is incomplete; wait `CLOSE_S` at most for the worker threads."""
        for stream in [*self._puts.values(), *self._gets.values()]:
            stream.cancel()
        self._loop.take_posted_until(lambda: not any(stream.is_busy for stream in self._over), CLOSE_S)
        for stream in self._over:
            stream.discard()

    def _forget(self, number: int) -> None:
        found: Stream | None = self._puts.pop(number, None) or self._gets.pop(number, None)
        self._over = [stream for stream in [*self._over, found] if stream is not None and stream.is_busy]
        self._loop.window.forget(number)

    def _next_piece(self) -> tuple[int, bytes] | None:
        """Return a piece of the stream whose turn it is, and have those with few pieces read on."""
        read = sum(stream.ready_bytes for stream in self._gets.values())
        found = None
        for number, stream in list(self._gets.items()):
            if stream.ready_bytes < BATCH_BYTES and read < MOST_READ_BYTES:
                read += BATCH_BYTES
                stream.read_on()
            if found is None and stream.ready:
                found = number
        if found is None:
            return None
        stream = self._gets.pop(found)
        self._gets[found] = stream  # the last one now
        return found, stream.take()
