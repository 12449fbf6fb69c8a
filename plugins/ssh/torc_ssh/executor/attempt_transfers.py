"""The files of one host's attempts: inputs before they begin, logs and outputs after they have ended."""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, Final

from attrs import evolve, frozen

from torc_framework.api import Attempt, AttemptKey, ExitObservation
from torc_ssh.executor.attempt_records import AttemptFiles, AttemptRecords
from torc_ssh.executor.endings import LOG_TRANSFER_ERROR, TRANSFER_ERROR, with_raw
from torc_ssh.executor.file_copies import FileCopies, FilePair, LocalFileError
from torc_ssh.executor.job_files import JobFiles
from torc_ssh.executor.work_folder import WorkFolder
from torc_ssh.session import HelperError, HostSession, SessionLost

TRIES: Final = 4
"""So often the files of an ended attempt are brought home before that counts as failed for good."""
FIRST_PAUSE_S: Final = 1.0
"""Pause after the first failure; the next ones are longer by `PAUSE_FACTOR`."""
PAUSE_FACTOR: Final = 4.0
_LOG: Final = logging.getLogger("torc_framework.ssh")


@frozen
class FilePlan:
    """What is copied for one attempt.

    Attributes:
        inputs: Files that it reads.
        home: Files that come home when it ends.
        folders: Folders of the host that its output files need.
    """

    inputs: tuple[FilePair, ...]
    home: AttemptFiles
    folders: frozenset[str]


class AttemptTransfers:
    """Brings files of attempts to one host, and home again.

    Args:
        host: Name of the host, for messages.
        folder: Working folder on the host.
        records: Where the files of attempts are recorded.
        session: Returns the present session when there is one.
        clock_offset_s: Returns by how much the host's clock is ahead of this one, seconds.
    """

    def __init__(
        self,
        host: str,
        folder: WorkFolder,
        records: AttemptRecords,
        session: Callable[[], HostSession],
        clock_offset_s: Callable[[], float],
    ) -> None:
        self._host, self.folder, self._records, self._session = host, folder, records, session
        self.copies = FileCopies(session, clock_offset_s)
        self._made: set[str] = set()
        """Folders of the host that are known to exist."""

    # --- before an attempt begins ----------------------------------------------------------------

    def plan(self, attempt: Attempt, files: JobFiles) -> FilePlan:
        """Return what is copied for an attempt.

        Raises:
            UnmappedPathError: a path cannot exist on the host.
        """
        if self.folder.is_shared:
            return FilePlan((), AttemptFiles(), frozenset())
        inputs = tuple(FilePair(*self.folder.paths(path)) for path in files.inputs)
        outputs = tuple(FilePair(*self.folder.paths(path)) for path in files.outputs)
        kept = dict.fromkeys(path for path in (attempt.stdout_path, attempt.stderr_path) if path != os.devnull)
        logs = tuple(FilePair(path, self.folder.log(path)) for path in kept)
        folders = frozenset(str(PurePosixPath(pair.remote).parent) for pair in outputs)
        return FilePlan(inputs, AttemptFiles(logs, outputs), folders)

    def is_ready(self, plan: FilePlan) -> bool:
        """Return whether an attempt can begin without any question to the host."""
        return not plan.inputs and plan.folders <= self._made

    def forget_folders(self) -> None:
        """Ask again for every folder: the connection is a new one, and the host may have lost some."""
        self._made.clear()

    async def bring(self, plan: FilePlan) -> None:
        """Bring the input files of an attempt to the host, and make the folders of its output files.

        Raises:
            LocalFileError: an input file is missing here, or cannot be read.
            HelperError: the host cannot write.
            SessionLost: the connection was lost.
        """
        new = sorted(plan.folders - self._made)
        await asyncio.gather(*(self._session().request("mkdir", path=path) for path in new))
        self._made.update(new)
        if plan.inputs:
            await self.copies.bring(plan.inputs)

    def record(self, plans: dict[AttemptKey, FilePlan]) -> None:
        """Record attempts before they are sent; a file that cannot be written is logged."""
        homes = {key: plan.home for key, plan in plans.items() if plan.home.logs or plan.home.outputs}
        if not homes:
            return
        try:
            self._records.add(homes)
        except OSError as error:  # only a take-over would need it
            _LOG.warning("%s cannot be written, which a later runner may need: %s", self._records.path, error)

    # --- after it has ended ----------------------------------------------------------------------

    async def collect(self, key: AttemptKey, seen: ExitObservation, connected: Callable[[], Any]) -> ExitObservation:
        """Bring logs and output files of an ended attempt home; return the observation with what was found.

        A lost connection is waited for. Any other failure is tried again some times; then the observation says so.

        Args:
            key: The attempt.
            seen: How its processes ended.
            connected: Returns an awaitable that is done when there is a session.
        """
        files = self._records.files(key)
        (_, log_error), (missing, error) = await asyncio.gather(
            self._fetch(files.logs, connected), self._fetch(files.outputs, connected)
        )
        self.copies.forget(files.logs)
        facts: dict[str, Any] = {}
        if log_error:
            facts[LOG_TRANSFER_ERROR] = f"its log could not be brought home from host {self._host}: {log_error}"
        if error:
            facts[TRANSFER_ERROR] = f"its output could not be brought home from host {self._host}: {error}"
        if not (error or log_error):  # else the host has the only copy
            self._remove_logs(files.logs)
        absent = tuple(self.folder.shown(pair.local) for pair in (files.outputs if error else missing))
        return evolve(with_raw(seen, facts), missing_outputs=absent if seen.exit_code == 0 else ())

    async def _fetch(
        self, pairs: Sequence[FilePair], connected: Callable[[], Any]
    ) -> tuple[list[FilePair], str | None]:
        """Return the files that the host does not have, and why the transfer failed for good, if it did."""
        if not pairs:
            return [], None
        failures, pause_s = 0, FIRST_PAUSE_S
        while True:
            await connected()
            try:
                return await self.copies.fetch(pairs), None
            except SessionLost:
                continue
            except (HelperError, LocalFileError, OSError) as error:
                failures += 1
                _LOG.warning(
                    "files of host %s do not come home, attempt %d of %d: %s", self._host, failures, TRIES, error
                )
                if failures == TRIES:
                    return [], str(error)
            await asyncio.sleep(pause_s)
            pause_s *= PAUSE_FACTOR

    def _remove_logs(self, logs: Sequence[FilePair]) -> None:
        """Remove logs from the host that are home, without waiting."""

        async def remove(path: str) -> None:
            with suppress(HelperError, SessionLost):
                await self._session().request("remove", path=path, below=self.folder.root)

        for pair in logs:
            _in_background(remove(pair.remote))


_background: Final[set["asyncio.Task[None]"]] = set()


def _in_background(coroutine: Any) -> None:
    task = asyncio.ensure_future(coroutine)
    _background.add(task)
    task.add_done_callback(_background.discard)
