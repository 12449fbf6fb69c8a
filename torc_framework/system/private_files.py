"""Files and folders that only their owner may read: created so under any umask, and corrected if they exist."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_ATTEMPTS: Final = 100
"""How often `create_private` creates a folder that is removed again before the file is in it."""


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700; an existing folder of this user gets this mode.

    A folder of another user and a symbolic link stay unchanged.

    Raises:
        OSError: the folder cannot be created.
    """
    if not folder.parent.exists():
        make_private_folder(folder.parent)
    try:
        folder.mkdir(FOLDER_MODE)
    except FileExistsError:
        if not folder.is_dir():
            raise
    _narrow(folder, FOLDER_MODE)


def make_private(file: Path, *beside: str) -> None:
    """Make the folder of a file private, and the file if it exists.

    Args:
        file: The file.
        beside: Suffixes of the names of further files to make private, such as ``-wal``.

    Raises:
        OSError: the folder cannot be created, or a mode cannot be changed.
    """
    make_private_folder(file.parent)
    for path in (file, *(Path(f"{file}{ending}") for ending in beside)):
        if os.path.lexists(path):
            _narrow(path, FILE_MODE)


def open_private(path: Path | str, flags: int) -> int:
    """Return a file descriptor of a file, which is created with mode 0600 if it does not exist.

    The mode of an existing file stays unchanged.

    Raises:
        OSError: the file cannot be opened.
    """
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)


def create_private(path: Path, flags: int) -> int:
    """Return a file descriptor as `open_private` does; create the missing folders of the file as well.

    Another process that finds the folder empty may remove it at the same time; the folder is then created again.

    Raises:
        OSError: the folder cannot be created, or the file cannot be opened.
    """
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError, FileExistsError):  # `mkdir` raises the latter if the folder goes meanwhile
            path.parent.mkdir(parents=True, exist_ok=True)
            return open_private(path, flags)
    return open_private(path, flags)


def _narrow(path: Path, mode: int) -> None:
    state = path.lstat()
    is_kind = stat.S_ISDIR(state.st_mode) if mode == FOLDER_MODE else stat.S_ISREG(state.st_mode)
    if is_kind and state.st_uid == os.geteuid() and stat.S_IMODE(state.st_mode) & ~mode:
        path.chmod(mode)
