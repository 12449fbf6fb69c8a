"""Files to and from a host: each under a temporary name, compared by its digest, then renamed."""

import asyncio
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from torc_framework.api import ContainedFolder, NewFile, OutsideFolderError
from torc_ssh.helper.wire import MOST_PIECE_BYTES
from torc_ssh.session.helper_requests import HelperError, HelperRequests, PendingRequest, clean_text

BATCH_PIECES: Final = 4

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


@frozen
class TargetPlace:
    """Where a file that comes is written.

    Attributes:
        folder: The folder that it must not leave.
        path: Its path, below that folder.
        partial: Path of the incomplete file beside it, which is kept for another try; None if that begins again.
        mode: Its permissions; None for those that the host announces.
        mtime_ns: Its time of modification; None for the present one.
    """

    folder: ContainedFolder
    path: Path
    partial: Path | None
    mode: int | None
    mtime_ns: int | None

    def open(self) -> "LocalTarget":
        """Begin the file, or go on with what an earlier try has left.

        Raises:
            OSError: that is not possible, or the target is a folder.
        """
        if not self.path.is_relative_to(self.folder.path):
            raise OutsideFolderError(str(self.path), self.folder.path)
        name = str(self.path.relative_to(self.folder.path))
        target = LocalTarget(self.folder.create(name, part=None if self.partial is None else self.partial.name))
        while data := os.read(target.file.descriptor, MOST_PIECE_BYTES):
            target.digest.update(data)
            target.kept_bytes += len(data)
        return target


@define(eq=False)
class LocalTarget:
    """A local file that comes.

    Attributes:
        file: The file.
        kept_bytes: How much of it an earlier try has left.
        mode: Its mode as the host announced it.
    """

    file: NewFile
    kept_bytes: int = 0
    mode: int = 0o644
    digest: Any = field(factory=hashlib.sha256)

    def write(self, pieces: list[bytes]) -> None:
        """Append pieces."""
        for piece in pieces:
            self.digest.update(piece)
            self.file.write(piece)


async def get_file(requests: HelperRequests, remote: str, place: TargetPlace, progress: Progress | None) -> str:
    """Bring a file from the host; return its SHA-256. See `torc_ssh.session.host_session.HostSession.get_file`."""
    target = await asyncio.to_thread(place.open)
    try:
        digest = await _receive(requests, remote, target, progress)
        mode = target.mode | 0o600 if place.mode is None else place.mode
        await asyncio.to_thread(target.file.complete, mode=mode, mtime_ns=place.mtime_ns)
    except HelperError as error:
        is_other_file = error.kind == "changed" and target.kept_bytes > 0
        await asyncio.to_thread(target.file.discard, is_kept=False)
        if is_other_file:  # what was kept of an earlier try belongs to another content
            return await get_file(requests, remote, place, progress)
        raise
    except BaseException:
        await asyncio.shield(asyncio.to_thread(target.file.discard))
        raise
    return digest


async def _receive(requests: HelperRequests, remote: str, target: "LocalTarget", progress: Progress | None) -> str:
    pending = requests.begin("get", path=remote, offset=target.kept_bytes)
    received, shown = target.kept_bytes, clean_text(remote)
    try:
        while True:
            pending.changed.clear()
            is_answered = pending.answer.done()
            pieces, pending.pieces = pending.pieces, []
            if pieces:
                size, announced = sum(map(len, pieces)), _announced(pending, "size")
                received += size
                if received > announced:
                    raise HelperError("changed", f"the host sends more of {shown} than it has announced")
                await asyncio.to_thread(target.write, pieces)
                requests.acknowledge(pending, size)
                if progress is not None:
                    progress(received, announced)
            elif is_answered:
                break
            else:
                await pending.changed.wait()
        value = await pending.answer
        digest = str(target.digest.hexdigest())
        if not isinstance(value, dict) or value.get("sha256") != digest:
            raise HelperError("changed", f"{shown} has another digest here than on the host")
        if _announced(pending, "size") != received:
            raise HelperError("changed", f"{shown} did not come whole")
        if (mode := _announced(pending, "mode")) >= 0:
            target.mode = mode
    finally:
        requests.end(pending)
    return digest


def _announced(pending: PendingRequest, name: str) -> int:
    """Return a whole number that the host announced of a file; -1 if it did not."""
    values = pending.parts[0] if pending.parts else None
    value = values.get(name) if isinstance(values, dict) else None
    return value if isinstance(value, int) and value >= 0 else -1
