"""Folder and name of the files of a kept server.

The name holds everything by which one server differs from another that a command could not use in its place: the
database, the version and the files of this program, what a process inherits (user ids, umask, niceness, limits, control
groups), and the boot and the namespaces in which process ids and loopback ports have a meaning.
"""

import importlib.util
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import torc_framework
from torc_framework.errors import ConfigError
from torc_framework.supervision.supervisor import boot_id
from torc_framework.system.ownership import other_writer
from torc_framework.system.private_files import FOLDER_MODE, make_private_folder
from torc_framework.system.umask import current_umask
from torc_framework.system.user import user_folder

RUNTIME_VARIABLE: Final = "XDG_RUNTIME_DIR"
"""Environment variable that names the user's folder for sockets and locks (XDG Base Directory Specification)."""
_LIMITS: Final = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE)
_LOGIN_SESSIONS: Final = "/user.slice"
"""Control group of all processes that people start, where systemd manages the machine (systemd.special(7))."""


def server_folder() -> Path:
    """Return the folder of the files of this user's kept servers, which may not exist yet.

    It is in the user's runtime folder; in the data folder where there is no runtime folder of this user, as on many
    login nodes.

    Raises:
        ConfigError: the data folder is needed and cannot be determined.
    """
    runtime = os.environ.get(RUNTIME_VARIABLE, "")
    if os.path.isabs(runtime) and _is_own_folder(Path(runtime)):  # noqa: PTH117 - "relative paths are to be ignored"
        return Path(runtime) / "torc"
    return user_folder("data") / "servers"


def make_server_folder(folder: Path) -> None:
    """Create the folder, or check that only this user has access to it.

    Raises:
        ConfigError: the folder cannot be created, or other users have access to it.
    """
    try:
        if not os.path.lexists(folder):
            make_private_folder(folder)
        state = folder.lstat()
        if folder.is_symlink() or state.st_uid != os.geteuid() or state.st_mode & 0o777 & ~FOLDER_MODE:
            raise ConfigError(f"{folder} is not a folder that this user alone can use")
        if writer := other_writer(folder):
            raise ConfigError(f"{folder} is not safe: {writer}")
    except OSError as error:
        raise ConfigError(f"cannot use the folder {folder}: {error.strerror}") from error


def database_digest(database: Path) -> str:
    """Return a digest of the resolved path of a database."""
    return _digest([os.fsencode(database.resolve())])


def server_name(database: Path) -> str:
    """Return the name of the kept server of an existing database file, without a suffix.

    A database file that replaces another one has another server, because the old server has the old file open.

    Raises:
        OSError: the database file does not exist, or facts of this machine cannot be read.
    """
    file = database.stat()
    facts = [torc_framework.__version__, sys.version, sys.executable, boot_id(), file.st_dev, file.st_ino]
    facts += [os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/pid")]  # noqa: PTH115 - no paths
    facts += [os.geteuid(), os.getegid(), current_umask(), os.nice(0)]
    facts += [*map(resource.getrlimit, _LIMITS), *_control_groups()]
    parts = [str(fact).encode() for fact in facts]
    return f"{database_digest(database)}-{_digest([*parts, *_source_files()])}"


def _source_files() -> Iterator[bytes]:
    """Yield path, size and time of change of each source file of this program."""
    folders = [str(Path(torc_framework.__file__).parent)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if entry.name.endswith(".py"):
                    state = entry.stat()
                    yield os.fsencode(entry.path) + f"\0{state.st_size}\0{state.st_mtime_ns}".encode()
                elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _control_groups() -> list[str]:
    """Return the control groups of this process: those of a batch job are killed at the end of the job.

    The control groups of login sessions are one, so that the sessions share a server.
    """
    try:
        groups = [line.split(":", 2)[2] for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return []
    return [_LOGIN_SESSIONS if group.startswith(f"{_LOGIN_SESSIONS}/") else group for group in groups]


def _digest(parts: list[bytes]) -> str:
    whole = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return importlib.util.source_hash(whole).hex()  # `hashlib` loads OpenSSL, which takes 3 ms


def _is_own_folder(path: Path) -> bool:
    try:
        return path.is_dir() and path.stat().st_uid == os.geteuid()
    except OSError:
        return False
