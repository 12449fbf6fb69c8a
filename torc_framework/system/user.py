"""Name and folders of the user who runs this program, also without an entry in the user database or a home folder.

Containers give a process any number as its user (``docker run -u``, ``runAsUser``): without an entry in the user
database, without ``HOME`` or with one that is ``/`` and not writable.
"""

import os
import stat
import sys
from pathlib import Path
from typing import Final, Literal

from torc_framework.errors import ConfigError

_VARIABLES: Final = {
    "config": "XDG_CONFIG_HOME",
    "data": "XDG_DATA_HOME",
    "state": "XDG_STATE_HOME",
    "log": "XDG_STATE_HOME",
}
"""Environment variable for the folder of each kind (XDG Base Directory Specification)."""


def user_name() -> str:
    """Return the user's name: ``USER``, ``USERNAME``, the name in the user database, or the user id."""
    import getpass

    if named := os.environ.get("USER") or os.environ.get("USERNAME"):
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # KeyError before Python 3.13, OSError since
        return str(os.getuid())


def expand_home(text: str | Path) -> Path:
    """Return a path with ``~`` replaced.

    Raises:
        ConfigError: there is no such user, or the home folder is unknown.
    """
    path = os.path.expanduser(str(text))  # noqa: PTH111 - Path.expanduser raises RuntimeError instead of leaving "~"
    if path.startswith("~"):
        raise ConfigError(
            f"cannot tell which folder {str(text).partition('/')[0]!r} of {str(text)!r} is; write the whole path"
        )
    return Path(path)


def user_folder(kind: Literal["config", "data", "state", "log"]) -> Path:
    """Return the user's folder for files of a kind, which may not exist yet.

    Without a usable home folder it is inside a private folder for temporary files, which is created now with mode 0700
    and named on standard error; for ``config`` it is not created.

    Raises:
        ConfigError: that folder cannot be created, or it exists and other users have access to it.
    """
    import platformdirs

    try:
        path = Path(getattr(platformdirs, f"user_{kind}_path")("torc"))
    except RuntimeError:  # the home folder is unknown
        return _temporary_home(make=kind != "config") / kind
    if os.environ.get(_VARIABLES[kind], "").strip() or _is_usable(path, to_write=kind != "config"):
        return path
    return _temporary_home(make=kind != "config") / kind


def _is_usable(path: Path, *, to_write: bool) -> bool:
    """Return whether a folder can be used or created."""
    if not path.is_absolute():  # platformdirs before 4.4 leaves "~" as it is
        return False
    try:
        there = next(folder for folder in (path, *path.parents) if folder.exists())
    except OSError:
        return False
    wanted = os.R_OK | os.X_OK if there == path and not to_write else os.W_OK | os.X_OK
    return os.access(there, wanted, effective_ids=True)


def _temporary_home(*, make: bool) -> Path:
    """Return the private folder for temporary files that replaces the home folder."""
    import tempfile

    path = Path(tempfile.gettempdir(), f"torc-{os.getuid()}")
    fix = "set HOME, or XDG_DATA_HOME, XDG_STATE_HOME and XDG_CONFIG_HOME, to folders that you can write to"
    try:
        if make and not path.exists():
            path.mkdir(mode=0o700)
            print(
                f"Note: user {user_name()} has no home folder that can be written to; data are in {path}, which may "
                f"not last. To keep them, {fix}",
                file=sys.stderr,
            )
        found = path.lstat()
    except FileNotFoundError:
        return path
    except OSError as error:
        raise ConfigError(f"there is no home folder that can be written to, and no {path}: {error}; {fix}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigError(
            f"there is no home folder that can be written to, and {path} is not a folder that this user alone can use; "
            f"{fix}"
        )
    return path
