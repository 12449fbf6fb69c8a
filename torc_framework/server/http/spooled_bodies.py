"""Request bodies that are kept in a temporary file, because they may be too large for the server's memory."""

import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Final, Self

from attrs import frozen
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.server.http.responses import INSUFFICIENT_STORAGE

_PIECE_BYTES: Final = 1024 * 1024
"""Bytes that are written to the file at once."""


@frozen
class SpooledBody:
    """A body in a temporary file without a name, which a killed process does not leave behind.

    As a context, it closes the file at the end.

    Attributes:
        file: The file.
        size: Its length, in bytes.
        longest_line: Upper limit of the length of its lines, in bytes; more than the longest one by at most the size
            of a part in which the body arrived.
    """

    file: IO[bytes]
    size: int
    longest_line: int

    def __len__(self) -> int:
        return self.size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()

    def lines(self) -> Iterator[bytes]:
        """Return an iterator over the lines from the start."""
        self.file.seek(0)
        return iter(self.file)


async def spooled_body(request: Request) -> SpooledBody:
    """Return the body of a request; the caller closes it.

    Raises:
        RequestError: the folder for temporary files is full (status 507).
    """
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    try:
        size, piece = 0, bytearray()
        longest_line = line = 0  # `line` is the length of the text since the last line end
        async for chunk in request.stream():
            size += len(chunk)
            piece += chunk
            longest_line = max(longest_line, line + len(chunk))
            line = line + len(chunk) if (last_end := chunk.rfind(b"\n")) < 0 else len(chunk) - last_end - 1
            if len(piece) >= _PIECE_BYTES:
                await run_in_threadpool(file.write, bytes(piece))
                piece.clear()
        await run_in_threadpool(_write_rest, file, piece)
    except OSError as error:
        file.close()
        raise RequestError(
            f"no space for the request in {tempfile.gettempdir()}: {error.strerror}; free some there",
            INSUFFICIENT_STORAGE,
        ) from error
    except BaseException:
        file.close()
        raise
    return SpooledBody(file, size, longest_line)


def _write_rest(file: IO[bytes], piece: bytearray) -> None:
    file.write(piece)
    file.flush()
