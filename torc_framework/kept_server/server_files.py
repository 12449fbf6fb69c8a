"""The files of a kept server: its state, and two locks, which the kernel releases when a process ends in any way.

| file | content | locked |
|---|---|---|
| ``NAME.json`` | `ServerState`, written when the server answers requests | |
| ``NAME.lock`` | | exclusively by the server, from before its start until its end |
| ``NAME.use`` | | shared by each command that uses the server; exclusively by a server that ends because it is idle |

The command that starts a server locks ``NAME.lock`` and passes the locked file to the process, so that of several
commands one starts a server. A server that has ``NAME.use`` locked is used by no command, and gets no new one.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import asdict, fields, frozen

from torc_framework.supervision.processes import process_start
from torc_framework.system.private_files import open_private

_STATE_SUFFIX: Final = ".json"


@frozen
class ServerState:
    """A kept server that answers requests.

    Attributes:
        pid: Its process id.
        pid_start: When the process began, clock ticks since the boot.
        url: Base URL with the token.
        since: When it began to answer requests, seconds since the epoch.
        database: Path of the database file.
        version: Version of the program.
        idle_minutes: Minutes without use after which it ends.
        log: Path of its log file.
        use: Path of the file that its users have locked.
    """

    pid: int
    pid_start: int | None
    url: str
    since: float
    database: str
    version: str
    idle_minutes: float
    log: str
    use: str

    @property
    def is_alive(self) -> bool:
        """Whether the process runs; one that has ended may wait for its parent to take notice."""
        if self.pid_start is None or process_start(self.pid) != self.pid_start:
            return False
        try:
            return Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
        except (OSError, IndexError):
            return False


@frozen
class ServerFiles:
    """The paths of the files of one kept server."""

    folder: Path
    name: str

    @property
    def state(self) -> Path:
        """The file of its state."""
        return self.folder / f"{self.name}{_STATE_SUFFIX}"

    @property
    def lock(self) -> Path:
        """The file that the server has locked."""
        return self.folder / f"{self.name}.lock"

    @property
    def use(self) -> Path:
        """The file that its users have locked."""
        return self.folder / f"{self.name}.use"

    def read_state(self) -> ServerState | None:
        """Return the state of a living server, of any version; None without one, or while it starts."""
        try:
            facts = json.loads(self.state.read_bytes())
            state = ServerState(**{field.name: facts[field.name] for field in fields(ServerState)})
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return state if state.is_alive else None

    def write_state(self, **facts: Any) -> None:
        """Write the state of the present process; ``facts`` are the attributes besides the process's own.

        Raises:
            OSError: the file cannot be written.
        """
        state = ServerState(pid=os.getpid(), pid_start=process_start(os.getpid()), **facts)
        unfinished = self.state.with_suffix(".new")
        with open(unfinished, "w", encoding="utf-8", opener=open_private) as file:
            json.dump(asdict(state), file)
        unfinished.replace(self.state)

    def remove_state(self) -> None:
        """Remove the state, if there is one; the caller has locked ``lock``.

        Raises:
            OSError: it cannot be removed.
        """
        self.state.unlink(missing_ok=True)

    def remove_state_of(self, pid: int) -> None:
        """Remove the state if it is that of a process; another one may have replaced the files after their loss."""
        state = self.read_state()
        if state is not None and state.pid == pid:
            with suppress(OSError):
                self.remove_state()


def running_servers(folder: Path) -> Iterator[ServerState]:
    """Yield the living servers whose files are in a folder, in the order of their names."""
    for path in sorted(folder.glob(f"*{_STATE_SUFFIX}")):
        if (state := ServerFiles(folder, path.stem).read_state()) is not None:
            yield state


def remove_locked(path: Path, file: int) -> None:
    """Remove a file that this process has open and locked, unless the path names another file meanwhile."""
    with suppress(OSError):
        if os.path.samestat(os.fstat(file), path.stat()):
            path.unlink()


def try_lock(path: Path, *, is_shared: bool = False) -> int | None:
    """Return the open and locked file, which is created if it does not exist; None if another process has it locked.

    Raises:
        OSError: the file cannot be created, or the file system has no locks.
    """
    operation = (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    while True:
        file = open_private(path, os.O_RDWR)
        try:
            fcntl.flock(file, operation)
        except BlockingIOError:
            os.close(file)
            return None
        except BaseException:
            os.close(file)
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        os.close(file)  # its former owner removed it meanwhile
