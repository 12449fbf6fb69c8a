"""Loading of specs: options of the loader, modification times of files, checks for missing input."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torc_framework.cli.shared.session import Session
from torc_framework.errors import UserError

if TYPE_CHECKING:
    from torc_framework.cli.commands.running.file_places import FilePlaces
    from torc_framework.models.records import FileRecord
    from torc_framework.spec import LoadOptions
    from torc_framework.spec.pipeline import LoadedParts

SHOWN_PATHS = 10
"""Most names that a message lists."""


def load_options(
    session: Session, path: Path, *, user: str | None = None, to_run: bool = False, **checks: bool
) -> "LoadOptions":
    """Return the options with which a spec is loaded: keys and names that plugins define, and the command's flags.

    Args:
        user: Owner that the command line names; it wins over the spec's.
        to_run: The jobs will run on this machine: refuse executors that are not installed here.
        checks: ``skip_checks`` and ``to_submit``; see `LoadOptions`.
    """
    from torc_framework.spec import LoadOptions

    return LoadOptions.of_plugins(session.plugins(path.parent), to_run=to_run, user=session.user, owner=user, **checks)


def stamp_files(files: Iterable["FileRecord"]) -> None:
    """Store the modification times of files that exist."""
    for file in files:
        file.st_mtime = modification_time(file.path)


def modification_time(path: str) -> float | None:
    """Return the modification time of a file, or None if there is none."""
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - a plan may have 100,000 files, and a Path object for each is slow
    except OSError:
        return None


def refuse_missing_inputs(loaded: "LoadedParts", places: "FilePlaces") -> None:
    """Refuse a plan whose jobs read files or user data that neither exist nor are written by a job.

    Files are looked for only if a job reads them whose files this machine sees.

    Raises:
        UserError: an input is missing.
    """
    head, inputs = loaded.head, loaded.inputs
    read = set[int]().union(*(files for executor, files in inputs.read_files.items() if places.are_here(executor)))
    unmade = sorted(read - inputs.written_files)
    missing = [head.files[position].path for position in unmade if head.files[position].st_mtime is None]
    unset = sorted(inputs.read_data - inputs.written_data)
    empty = [head.user_data[position].name for position in unset if head.user_data[position].data is None]
    refuse_missing(missing, empty)


def refuse_missing(paths: list[str], user_data: list[str]) -> None:
    """Refuse to start with these files and user data missing.

    Raises:
        UserError: one of the lists is not empty.
    """
    for what, names in (("input files", paths), ("user data without a value", user_data)):
        if names:
            raise UserError(f"missing {what} that no job writes: {shortened(names)}")


def shortened(names: Sequence[str]) -> str:
    """Return the first names of a list as text, and the number of the others."""
    more = f" and {len(names) - SHOWN_PATHS} more" if len(names) > SHOWN_PATHS else ""
    return ", ".join(names[:SHOWN_PATHS]) + more
