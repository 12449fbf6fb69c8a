"""Files to and from a host: each under a temporary name, compared by its digest, then renamed."""

import asyncio
import hashlib
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from torc_ssh.helper.wire import MOST_PIECE_BYTES
from torc_ssh.session.helper_requests import HelperError, HelperRequests, PendingRequest

BATCH_PIECES: Final = 4
MOST_NAME_BYTES: Final = 255

Progress = Callable[[int, int], None]
"""Is called in the event loop with the bytes of a file that are moved, and with its size."""


async def put_file(requests: HelperRequests, local: Path, remote: str, progress: Progress | None) -> str:
    """Bring a file to the host; return its SHA-256. See `torc_ssh.session.host_session.HostSession.put_file`."""
    source = await asyncio.to_thread(LocalSource, local)
    try:
        state = source.state
        pending = requests.begin(
            "put", path=remote, size=state.st_size, mode=state.st_mode & 0o777, mtime_ns=state.st_mtime_ns
        )
        try:
            await _send(requests, pending, source, progress)
            value = await pending.answer
        finally:
            requests.end(pending)
    finally:
        source.close()
    digest = source.digest.hexdigest()
    if not isinstance(value, dict) or value.get("sha256") != digest:
        raise HelperError("changed", f"the host has another digest of {remote}")
    return digest


async def _send(
    requests: HelperRequests, pending: PendingRequest, source: "LocalSource", progress: Progress | None
) -> None:
    sent = 0
    reading = asyncio.ensure_future(asyncio.to_thread(source.read))
    try:
        while not pending.answer.done() and (pieces := await reading):
            reading = asyncio.ensure_future(asyncio.to_thread(source.read))  # while these pieces are sent
            for piece in pieces:
                await requests.send_piece(pending, piece)
                sent += len(piece)
            if progress is not None:
                progress(sent, source.state.st_size)
    finally:
        with suppress(HelperError, OSError):
            await asyncio.shield(reading)
    if not pending.answer.done():
        await asyncio.to_thread(source.check_unchanged)
        requests.tell("put_end", stream=pending.number, sha256=source.digest.hexdigest())


class LocalSource:
    """A local file that is sent.

    Raises:
        OSError: it cannot be read, or is a folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb", buffering=0)
        self.state = os.fstat(self._file.fileno())
        self.digest = hashlib.sha256()

    def read(self) -> list[bytes]:
        """Return the next pieces, [] at the end."""
        pieces: list[bytes] = []
        while len(pieces) < BATCH_PIECES and (data := self._file.read(MOST_PIECE_BYTES)):
            self.digest.update(data)
            pieces.append(data)
        return pieces

    def check_unchanged(self) -> None:
        """Raise `HelperError` if the file was written while it was read."""
        now = os.fstat(self._file.fileno())
        if (now.st_size, now.st_mtime_ns) != (self.state.st_size, self.state.st_mtime_ns):
            raise HelperError("changed", f"{self._path} was changed while it was sent")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


async def get_file(
    requests: HelperRequests, remote: str, local: Path, partial: Path | None, progress: Progress | None
) -> str:
    """Bring a file from the host; return its SHA-256. See `torc_ssh.session.host_session.HostSession.get_file`."""
    target = await asyncio.to_thread(LocalTarget.open, local, partial)
    try:
        digest = await _receive(requests, remote, target, progress)
        await asyncio.to_thread(target.complete)
    except HelperError as error:
        is_other_file = error.kind == "changed" and target.kept_bytes > 0
        await asyncio.to_thread(target.abandon, keep=False)
        if is_other_file:  # what was kept of an earlier try belongs to another content
            return await get_file(requests, remote, local, partial, progress)
        raise
    except BaseException:
        await asyncio.shield(asyncio.to_thread(target.abandon, keep=partial is not None))
        raise
    return digest


async def _receive(requests: HelperRequests, remote: str, target: "LocalTarget", progress: Progress | None) -> str:
    pending = requests.begin("get", path=remote, offset=target.kept_bytes)
    received = target.kept_bytes
    try:
        while True:
            pending.changed.clear()
            is_answered = pending.answer.done()
            pieces, pending.pieces = pending.pieces, []
            if pieces:
                await asyncio.to_thread(target.write, pieces)
                size = sum(map(len, pieces))
                requests.acknowledge(pending, size)
                received += size
                if progress is not None and pending.parts:
                    progress(received, _whole_number(pending.parts[0], "size"))
            elif is_answered:
                break
            else:
                await pending.changed.wait()
        value = await pending.answer
        digest = str(target.digest.hexdigest())
        announced = pending.parts[0] if pending.parts else None
        if not isinstance(value, dict) or value.get("sha256") != digest:
            raise HelperError("changed", f"{remote} has another digest here than on the host")
        if _whole_number(announced, "size") != received:
            raise HelperError("changed", f"{remote} did not come whole")
        target.mode = _whole_number(announced, "mode") & 0o777
    finally:
        requests.end(pending)
    return digest


def _whole_number(values: Any, name: str) -> int:
    value = values.get(name) if isinstance(values, dict) else None
    return value if isinstance(value, int) and value >= 0 else -1


@define(eq=False)
class LocalTarget:
    """A local file that comes.

    Attributes:
        path: Its path.
        temporary: The path under which it is written.
        kept_bytes: How much of it an earlier try has left.
        mode: Permission bits for it.
    """

    path: Path
    temporary: Path
    _fd: int
    kept_bytes: int = 0
    mode: int = 0o644
    digest: Any = field(factory=hashlib.sha256)

    @classmethod
    def open(cls, path: Path, partial: Path | None) -> "LocalTarget":
        """Make the temporary file and its folder, or open that of an earlier try.

        Raises:
            OSError: that is not possible, or the target is a folder.
        """
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory", str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        temporary = partial or temporary_path(path)
        target = cls(path, temporary, os.open(temporary, flags | (0 if partial else os.O_EXCL), 0o600))
        try:
            while data := os.read(target._fd, MOST_PIECE_BYTES):
                target.digest.update(data)
                target.kept_bytes += len(data)
        except BaseException:
            os.close(target._fd)
            raise
        return target

    def write(self, pieces: list[bytes]) -> None:
        """Append pieces."""
        for piece in pieces:
            self.digest.update(piece)
            data = memoryview(piece)
            while data:
                data = data[os.write(self._fd, data) :]

    def complete(self) -> None:
        """Give the file its name."""
        os.fchmod(self._fd, self.mode | 0o600)
        os.fsync(self._fd)
        self.temporary.rename(self.path)
        os.close(self._fd)

    def abandon(self, *, keep: bool) -> None:
        """Close the file, and remove it unless it is to be kept."""
        os.close(self._fd)
        if not keep:
            self.temporary.unlink(missing_ok=True)


def temporary_path(path: Path) -> Path:
    """Return a new hidden path beside another, for its content until it is complete."""
    mark = f".torc-{secrets.token_hex(4)}"
    stem = os.fsdecode(os.fsencode(path.name)[: MOST_NAME_BYTES - len(mark) - 1])
    return path.parent / f".{stem}{mark}"
