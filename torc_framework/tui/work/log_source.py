"""What the viewer of logs and files reads: a part by byte range, and the search for text, of files of any size."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.log_reads import LogSearch, read_part, search
from torc_framework.monitoring.refusals import RefusedError

if TYPE_CHECKING:
    from torc_framework.monitoring.log_files import WantedLog

PART_BYTES: Final = 64 << 10
"""Bytes of one part."""


@frozen
class ViewedFile:
    """One file that is viewed.

    Attributes:
        title: What it is.
        open: Opens it; gives its descriptor and path.
    """

    title: str
    open: Callable[[], AbstractContextManager[tuple[int, str]]]

    def part(self, offset: int, *, is_tail: bool = False, length: int = PART_BYTES) -> dict[str, Any]:
        """Return a part.

        Raises:
            RefusedError: it is not here, or cannot be read; the message says where it is.
        """
        with self.open() as (descriptor, path):
            return read_part(descriptor, path, offset=offset, length=length, is_tail=is_tail)

    def find_next(self, text: str, start: int) -> dict[str, Any] | None:
        """Return the first match from a byte on, in any letter case; None without one."""
        wanted = LogSearch(text, ignore_case=True)
        with self.open() as (descriptor, _):
            while True:
                found = search(descriptor, wanted, start=start, limit=1)
                if found["matches"]:
                    match: dict[str, Any] = found["matches"][0]
                    return match
                if found["is_complete"]:
                    return None
                start = found["scanned_to"]

    def find_previous(self, text: str, before: int) -> dict[str, Any] | None:
        """Return the last match that begins before a byte; None without one."""
        wanted = LogSearch(text, ignore_case=True)
        with self.open() as (descriptor, _):
            end = before
            while end > 0:
                start = max(0, end - (1 << 20))
                found = search(descriptor, wanted, start=start, limit=1_000_000)
                matches = [each for each in found["matches"] if each["offset"] < end]
                if matches:
                    match: dict[str, Any] = matches[-1]
                    return match
                end = start
        return None


def log_source(
    context: WorkContext, client: TorcClient, workflow_id: int, wanted: "WantedLog", title: str
) -> ViewedFile:
    """Return the log of an attempt, a runner or an allocation."""

    @contextmanager
    def opened() -> Iterator[tuple[int, str]]:
        from torc_framework.monitoring.log_files import open_log, place_of

        place = place_of(context, client, workflow_id, wanted)
        with open_log(place, None) as descriptor:
            yield descriptor, str(place.path)

    return ViewedFile(title, opened)


def file_source(folder: Path, path: str) -> ViewedFile:
    """Return a file of a workflow; a relative path is below the folder of this process."""

    @contextmanager
    def opened() -> Iterator[tuple[int, str]]:
        place = folder / path
        try:
            descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise RefusedError(404, f"{place} does not exist on {os.uname().nodename}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise RefusedError(403, f"{place} cannot be read: {reason}") from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise RefusedError(403, f"{place} is no regular file")
            yield descriptor, str(place)
        finally:
            os.close(descriptor)

    return ViewedFile(path, opened)
