"""Files that get their name only when they are complete."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from torc_framework.system.umask import current_umask

_NEW_FILE_MODE: Final = 0o666
"""Mode of a new file before the umask is applied, as `open` has it."""


@contextmanager
def open_whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing under another name in the same folder; rename it at the end of the block.

    If the block raises, the file is deleted and an existing file of the name stays as it is. What exists and is no
    regular file, such as a device or a pipe, is written in place. A symbolic link stays, and its target is replaced.

    Raises:
        OSError: the file cannot be created, written or renamed.
    """
    path = path.resolve() if path.is_symlink() else path
    mode = _existing_mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        with path.open("wb") as file:
            yield file
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    unfinished = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        unfinished.chmod(_NEW_FILE_MODE & ~current_umask() if mode is None else stat.S_IMODE(mode))
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _existing_mode(path: Path) -> int | None:
    with suppress(FileNotFoundError):
        return path.stat().st_mode
    return None
