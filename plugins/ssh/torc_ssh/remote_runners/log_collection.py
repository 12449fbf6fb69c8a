"""The collection of logs from a host: files come one by one, resume after a cut, and are compared by their digests."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from attrs import define, field

from torc_framework.api import ContainedFolder, OutsideFolderError, TorcError
from torc_ssh.remote_runners.log_files import RemoteFile, digest_of, host_path, list_logs, local_path, partial_path
from torc_ssh.remote_runners.runner_process import RunnerFiles, runner_state
from torc_ssh.session import HelperError, HostSession, clean_text

PARALLEL_FILES: Final = 16
"""Files that come from one host at the same time."""
STALL_TIMEOUT_S: Final = 300.0
"""A host that sends nothing for this long, although its connection is alive, is given up."""
DIGESTS_AT_ONCE: Final = 100
MOST_PROBLEMS: Final = 10
"""Most files that are named because they could not be collected."""


@define
class Collection:
    """The collection from one host; it can be begun again after a lost connection.

    Attributes:
        files: The runner's files on the host.
        target: Folder for them on this machine.
        deletes: Files are deleted on the host when their copies here have the same digests.
        total_files: Files on the host.
        total_bytes: Their size.
        done_files: Files whose copies are complete.
        done_bytes: Bytes that are here.
        fetched_files: Files that this call fetched.
        deleted_files: Files that it deleted on the host.
        kept: Why nothing was deleted; empty if it was.
        problems: One line for each file that could not be collected or deleted.
    """

    files: RunnerFiles
    target: Path
    deletes: bool
    _show: Callable[[], None] = field(alias="show")
    total_files: int = 0
    total_bytes: int = 0
    done_files: int = 0
    done_bytes: int = 0
    fetched_files: int = 0
    deleted_files: int = 0
    kept: str = ""
    problems: list[str] = field(factory=list)
    _moving: dict[str, int] = field(factory=dict, init=False)
    _moved_at: float = field(default=0.0, init=False)

    async def carry_out(self, session: HostSession) -> "Collection":
        """Collect all files; return this object.

        Raises:
            HelperError: there is no output directory (kind ``not_found``), or it cannot be read.
            SessionLost: the connection was lost; another call goes on.
            OSError: the target folder cannot be written.
        """
        found = await list_logs(session, self.files, self.target)
        self.total_files, self.total_bytes = len(found.files), sum(file.size for file in found.files)
        self.done_files = self.done_bytes = 0
        self.problems = [
            f"{clean_text(path)}: left out, because it is no plain file below the folder" for path in found.left_out
        ]
        self._moving.clear()
        await asyncio.to_thread(ContainedFolder(self.target).make)
        gate = asyncio.Semaphore(PARALLEL_FILES)
        here: list[RemoteFile] = []

        async def fetch(file: RemoteFile) -> None:
            async with gate:
                if await self._fetch(session, file):
                    here.append(file)

        await self._watched(asyncio.gather(*map(fetch, found.files)))
        if self.deletes:
            await self._delete(session, here)
        return self

    async def _watched(self, work: "asyncio.Future[list[None]]") -> None:
        """Wait for files; give up if nothing moves for a long time."""
        clock = asyncio.get_running_loop()
        self._moved_at = clock.time()
        try:
            while not (await asyncio.wait([work], timeout=1.0))[0]:
                self._show()
                if clock.time() - self._moved_at > STALL_TIMEOUT_S:
                    raise TorcError(f"nothing came for {STALL_TIMEOUT_S:g} s")
            await work
        finally:
            work.cancel()

    @property
    def here_bytes(self) -> int:
        """Bytes that are here, with those of files that are incomplete."""
        return self.done_bytes + sum(self._moving.values())

    async def _fetch(self, session: HostSession, file: RemoteFile) -> bool:
        """Bring a file here unless its copy is; return whether it is here."""
        path = local_path(self.target, file.path)
        if path is None:
            self.problems.append(f"{clean_text(file.path)}: left out, because it would lie outside of {self.target}")
            return False
        if not await asyncio.to_thread(_is_same, path, file):
            try:
                await session.get_file(
                    host_path(self.files, file.path),
                    path,
                    within=ContainedFolder(self.target),
                    partial=partial_path(path),
                    mtime_ns=file.mtime_ns,
                    progress=lambda moved, _: self._note_progress(file.path, moved),
                )
            except (HelperError, OutsideFolderError) as error:
                self.problems.append(f"{clean_text(file.path)}: {clean_text(error)}")
                return False
            finally:
                self._moving.pop(file.path, None)
            self.fetched_files += 1
        self.done_files += 1
        self.done_bytes += file.size
        self._moved_at = asyncio.get_running_loop().time()
        return True

    def _note_progress(self, path: str, moved: int) -> None:
        self._moving[path] = moved
        self._moved_at = asyncio.get_running_loop().time()
        self._show()

    async def _delete(self, session: HostSession, here: list[RemoteFile]) -> None:
        """Delete the files on the host whose digests here and there are the same."""
        if (await runner_state(session, self.files)).is_running:
            self.kept = "a runner works there, so nothing was deleted"
            return
        # The runner's record is deleted last: it tells that the runner has ended.
        ordered = sorted(here, key=lambda file: host_path(self.files, file.path) == self.files.record)
        for begin in range(0, len(ordered), DIGESTS_AT_ONCE):
            await self._delete_some(session, ordered[begin : begin + DIGESTS_AT_ONCE])
        # What is private to the runner has no use when its logs are gone; folders of other workflows are not empty.
        if not self.problems:
            for ending in (".tunnel", ".ca.pem"):
                path = self.files.record.removesuffix(".json") + ending
                await session.request("remove", path=path, below=self.files.output_dir)
        await session.request("run", argv=["find", self.files.output_dir, "-type", "d", "-empty", "-delete"])

    async def _delete_some(self, session: HostSession, files: list[RemoteFile]) -> None:
        paths = [host_path(self.files, file.path) for file in files]
        for file, path, state in zip(files, paths, await session.stat(paths, digest=True), strict=True):
            if state is None:
                continue
            local = local_path(self.target, file.path)
            if local is None or state.get("sha256") != await asyncio.to_thread(digest_of, local):
                self.problems.append(
                    f"{clean_text(file.path)}: kept on the host, because it was changed after its collection"
                )
                continue
            await session.request("remove", path=path, below=self.files.output_dir)
            self.deleted_files += 1


def _is_same(path: Path, file: RemoteFile) -> bool:
    """Return whether the copy of a file is here, by size and time of its last change."""
    try:
        found = path.stat()
    except OSError:
        return False
    return (found.st_size, found.st_mtime_ns) == (file.size, file.mtime_ns)
