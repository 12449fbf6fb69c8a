"""Copies of files between this machine and one host: what has to be copied, and in which direction.

Two copies are equal if their sizes and modification times are those that were seen right after a transfer, or if their
sizes and digests are equal. A folder is copied with everything below it.
"""

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakValueDictionary

from attrs import Factory, define, frozen

from torc_framework.api import ContainedFolder, OutsideFolderError, size_text
from torc_ssh.session import HelperError, ListedFile, clean_text, listed_files

if TYPE_CHECKING:
    from torc_ssh.session import HostSession

MOST_TRANSFERS: Final = 8
"""Files of one host that are copied at the same time."""
SHOWN_BYTES: Final = 64 << 20
"""The transfer of a file of this size or more is shown."""
MOST_SHOWN: Final = 3
PATHS_PER_QUESTION: Final = 500
"""Paths that one question about files names."""
RESUMABLE_BYTES: Final = 16 << 20
"""A larger file that comes home is kept in part when the connection is lost."""
READ_BYTES: Final = 1 << 20


class FileStamp(NamedTuple):
    """What tells that a file was not written since it was seen."""

    size: int
    mtime_ns: int


@frozen
class FilePair:
    """A file here and its copy on the host.

    Attributes:
        local: Absolute path here.
        remote: Absolute path on the host.
    """

    local: str
    remote: str


class LocalFileError(OSError):
    """A file of this machine cannot be read or written; the text says which and why."""


@define
class TransferProgress:
    """The transfers that are under way, for people.

    Attributes:
        active: Bytes done and bytes in all, by the name of the file.
    """

    active: dict[str, tuple[int, int]] = Factory(dict)

    def of(self, name: str) -> Callable[[int, int], None]:
        """Return the function that notes the progress of one file."""

        def note(done: int, total: int) -> None:
            self.active[name] = done, total

        return note

    def text(self) -> str:
        """Return the transfers of large files for people, empty if there are none; may be called from any thread."""
        large = [(name, *sizes) for name, sizes in [*self.active.items()] if sizes[1] >= SHOWN_BYTES]
        shown = [f"{name}: {done * 10 // total * 10} % of {size_text(total)}" for name, done, total in large]
        return ", ".join(shown[:MOST_SHOWN]) + (f" and {len(shown) - MOST_SHOWN} more" if shown[MOST_SHOWN:] else "")

    def over(self, name: str) -> None:
        """Forget a transfer."""
        self.active.pop(name, None)


class FileCopies:
    """Copies files between this machine and one host, over whichever session there is at the time.

    Args:
        session: Returns the present session.
        clock_offset_s: Returns by how much the host's clock is ahead of this one, seconds.
    """

    def __init__(self, session: Callable[[], "HostSession"], clock_offset_s: Callable[[], float]) -> None:
        self._session, self._clock_offset_s = session, clock_offset_s
        self._equal: dict[FilePair, tuple[FileStamp, FileStamp]] = {}
        """Stamps of both copies when they were known to be equal."""
        self._writing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """One lock for each remote path that is written."""
        self._turns = asyncio.Semaphore(MOST_TRANSFERS)
        self.progress = TransferProgress()

    # --- to the host -----------------------------------------------------------------------------

    async def bring(self, pairs: Sequence[FilePair]) -> None:
        """Make the host's copies of these files and folders equal to those here.

        Raises:
            LocalFileError: a file is missing here, or cannot be read.
            HelperError: the host cannot write a file.
            SessionLost: the connection was lost.
        """
        files = [pair for each in pairs for pair in _expanded(each)]
        found = await self._stat([pair.remote for pair in files])
        await _all(self._bring_one(pair, found.get(pair.remote)) for pair in files)

    async def _bring_one(self, pair: FilePair, there: Mapping[str, Any] | None) -> None:
        lock = self._writing.setdefault(pair.remote, asyncio.Lock())
        was_busy = lock.locked()
        async with lock, self._turns:
            if was_busy:
                there = (await self._stat([pair.remote])).get(pair.remote)
            if await self._is_equal(pair, there):
                return
            before, name = _stamp(pair.local), f"{Path(pair.local).name} to the host"
            try:
                await self._session().put_file(Path(pair.local), pair.remote, progress=self.progress.of(name))
            finally:
                self.progress.over(name)
            there = (await self._stat([pair.remote])).get(pair.remote)
            if there is not None:
                self._equal[pair] = before, _remote_stamp(there)

    async def _is_equal(self, pair: FilePair, there: Mapping[str, Any] | None) -> bool:
        """Return whether both copies are known to be equal; compare digests if only the times differ."""
        if there is None or there.get("kind") != "file":
            return False
        here, remote = _stamp(pair.local), _remote_stamp(there)
        if self._equal.get(pair) == (here, remote):
            return True
        if here.size != remote.size:
            return False
        found = await self._stat([pair.remote], digest=True)
        if found.get(pair.remote, {}).get("sha256") != await asyncio.to_thread(_digest, pair.local):
            return False
        self._equal[pair] = here, remote
        return True

    # --- from the host ---------------------------------------------------------------------------

    async def fetch(self, pairs: Sequence[FilePair]) -> list[FilePair]:
        """Make the copies here equal to those of the host; return the files that the host does not have.

        Raises:
            LocalFileError: a file cannot be written here.
            HelperError: the host cannot read a file.
            SessionLost: the connection was lost.
        """
        found = await self._stat([pair.remote for pair in pairs])
        present = [pair for pair in pairs if pair.remote in found]
        await _all(self._fetch_one(pair, found[pair.remote]) for pair in present)
        return [pair for pair in pairs if pair.remote not in found]

    def forget(self, pairs: Iterable[FilePair]) -> None:
        """Remember no longer that these copies are equal: they are not copied again."""
        for pair in pairs:
            self._equal.pop(pair, None)

    async def _fetch_one(self, pair: FilePair, there: Mapping[str, Any]) -> None:
        kind, local = there["kind"], Path(pair.local)
        if kind == "dir":
            await self._fetch_folder(pair)
        elif kind in ("file", "link"):
            file = ListedFile(local.name, kind, there["size"], there["mtime_ns"], there["mode"], "")
            await self._fetch_file(pair, file, ContainedFolder(local.parent))
        elif pair.local != os.devnull:
            raise HelperError("failed", f"{pair.remote}: {clean_text(there.get('error', 'no regular file'))}")

    async def _fetch_folder(self, pair: FilePair) -> None:
        folder = ContainedFolder(Path(pair.local))
        with _local_errors(pair.local):
            folder.make()
        found = listed_files(await self._session().request("list", path=pair.remote))
        folders: list[str] = []
        links: dict[str, str] = {}
        files: list[ListedFile] = []
        for each in found:
            if each.kind == "dir":
                folders.append(each.path)
            elif each.kind == "link" and _stays_below(each.path, each.text):
                links[each.path] = each.text
            elif each.kind in ("file", "link"):
                files.append(each)
            elif each.kind == "error":
                raise LocalFileError(f"{clean_text(f'{pair.remote}/{each.path}')} on the host: {clean_text(each.text)}")
        for each in found:
            if each.path.rpartition("/")[0] in links:
                raise LocalFileError(f"the host names {clean_text(repr(each.path))}, which leads through a link")
        with _local_errors(pair.local):
            await asyncio.to_thread(_make_folders, folder, folders)
            await _all(
                self._fetch_file(FilePair(str(folder.below(file.path)), f"{pair.remote}/{file.path}"), file, folder)
                for file in files
            )
        # After the files, none of which is written through a link of the host then; first those that others may name.
        for path, target in sorted(links.items(), key=lambda link: os.path.normpath(link[1]) != link[1]):
            with _local_errors(f"{pair.local}/{path}"):
                await asyncio.to_thread(folder.make_link, path, target)

    async def _fetch_file(self, pair: FilePair, file: ListedFile, folder: ContainedFolder) -> None:
        remote = FileStamp(file.size, file.mtime_ns)
        async with self._turns:
            with suppress(OSError):
                if self._equal.get(pair) == (_stamp(pair.local), remote):
                    return
            with _local_errors(pair.local):
                await self._get(pair, file, folder)
                self._equal[pair] = _stamp(pair.local), remote

    async def _get(self, pair: FilePair, file: ListedFile, folder: ContainedFolder) -> None:
        """Bring a file home; a large one goes on where a lost connection ended it."""
        local, mode = Path(pair.local), file.mode & 0o777
        mtime_ns = file.mtime_ns - round(self._clock_offset_s() * 1e9)
        if file.size == 0:
            new = await asyncio.to_thread(folder.create, file.path)
            await asyncio.to_thread(new.complete, mode=mode, mtime_ns=mtime_ns)
            return
        partial = local.with_name(f".{local.name}.torc-part") if file.size > RESUMABLE_BYTES else None
        name = f"{clean_text(local.name)} from the host"
        how: dict[str, Any] = {"within": folder, "partial": partial, "mode": mode, "mtime_ns": mtime_ns}
        try:
            await self._session().get_file(pair.remote, local, progress=self.progress.of(name), **how)
        except asyncio.CancelledError:
            if partial is not None:
                with suppress(OSError):
                    folder.remove(str(partial.relative_to(folder.path)))
            raise
        finally:
            self.progress.over(name)

    async def _stat(self, paths: Sequence[str], *, digest: bool = False) -> dict[str, Mapping[str, Any]]:
        """Return what the host knows of these paths; those that do not exist are left out."""
        found: dict[str, Mapping[str, Any]] = {}
        for first in range(0, len(paths), PATHS_PER_QUESTION):
            part = list(paths[first : first + PATHS_PER_QUESTION])
            answer = await self._session().stat(part, digest=digest)
            found |= {path: facts for path, facts in zip(part, answer, strict=True) if facts is not None}
        return found


def _expanded(pair: FilePair) -> list[FilePair]:
    """Return the file, or all files below the folder."""
    try:
        if not stat.S_ISDIR(os.stat(pair.local).st_mode):  # noqa: PTH116 - called for each input of each job
            return [pair]
        return [
            FilePair(str(path), f"{pair.remote}/{path.relative_to(pair.local).as_posix()}")
            for path in sorted(Path(pair.local).rglob("*"))
            if path.is_file()
        ]
    except OSError as error:
        raise LocalFileError(f"input {pair.local}: {error.strerror or error}") from error


def _stays_below(name: str, target: str) -> bool:
    """Return whether a link in a folder leads to another name in it."""
    end = os.path.normpath(os.path.join(os.path.dirname(name), target))  # noqa: PTH118, PTH120 - Path keeps '..'
    return not os.path.isabs(target) and end.split("/")[0] != ".."  # noqa: PTH117 - as the line above


def _make_folders(folder: ContainedFolder, paths: Iterable[str]) -> None:
    for path in paths:
        folder.make_folder(path)


@contextmanager
def _local_errors(path: str) -> Iterator[None]:
    """Turn errors about what the host wants to write here into a `LocalFileError`."""
    try:
        yield
    except LocalFileError:
        raise
    except OutsideFolderError as error:
        raise LocalFileError(f"the host names {error.strerror}") from error
    except OSError as error:
        raise LocalFileError(f"cannot write {clean_text(path)}: {error.strerror or error}") from error


def _stamp(path: str) -> FileStamp:
    try:
        found = os.stat(path)  # noqa: PTH116 - called for each file of each job
    except OSError as error:
        raise LocalFileError(f"{path}: {error.strerror or error}") from error
    return FileStamp(found.st_size, found.st_mtime_ns)


def _remote_stamp(facts: Mapping[str, Any]) -> FileStamp:
    return FileStamp(int(facts["size"]), int(facts["mtime_ns"]))


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as os.stat
            while block := file.read(READ_BYTES):
                digest.update(block)
    except OSError as error:
        raise LocalFileError(f"cannot read {path}: {error.strerror or error}") from error
    return digest.hexdigest()


async def _all(coroutines: Iterable[Any]) -> None:
    """Run coroutines, as many at the same time as files may move; the first error ends the others and is raised."""
    waiting = iter(coroutines)

    async def work() -> None:
        for each in waiting:
            await each

    tasks = [asyncio.ensure_future(work()) for _ in range(MOST_TRANSFERS)]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
