"""Files and folders that only their owner may read: created so, whatever the umask, and narrowed if they are wider."""

import os
import stat
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700


def make_private_folder(folder: Path) -> None:
    """Make a folder of mode 0700, and the folders above that are missing; take the rights of others from one of ours.

    A folder that belongs to another user is left as it is, and so is one that is a symbolic link.

    Raises:
        OSError: it cannot be made.
    """
    if not folder.parent.exists():
        make_private_folder(folder.parent)
    try:
        folder.mkdir(FOLDER_MODE)
    except FileExistsError:
        if not folder.is_dir():
            raise
    state = folder.lstat()
    if stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and stat.S_IMODE(state.st_mode) != FOLDER_MODE:
        folder.chmod(FOLDER_MODE)


def open_private(path: Path | str, flags: int) -> int:
    """Open a file, created with mode 0600 if it is missing; take the rights of others from one of ours.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        state = os.fstat(descriptor)
        if stat.S_ISREG(state.st_mode) and state.st_uid == os.geteuid() and state.st_mode & 0o077:
            os.fchmod(descriptor, FILE_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def private_opener(path: str, flags: int) -> int:
    """Open a file for the built-in ``open`` as `open_private` does."""
    return open_private(path, flags)
