"""The launcher's side of one supervisor: its start, its journal, and the messages to and from it."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torc_framework.supervision import supervisor
from torc_framework.supervision.errors import SupervisionError
from torc_framework.supervision.journal import Journal
from torc_framework.supervision.processes import start_process_with_retry
from torc_framework.supervision.supervisor.spawning import spawns_sessions

if TYPE_CHECKING:
    from torc_framework.supervision.supervisor.cgroups import Cgroup


class SupervisorProcess:
    """A supervisor with its reaper, its journal and the connection to it.

    The processes inherit the lock of the journal, so that it is held without a gap as long as one of them lives.

    Args:
        path: Path of its journal; the file must not exist.
        home: Version and folder of the control group of this process, if it is known.
        epoll: Is to wake up for messages of the supervisor.
        sources: Folder with the package's files; the one from which this module was imported if it is None.

    Raises:
        SupervisionError: the process cannot be started.
    """

    def __init__(self, path: Path, home: Cgroup | None, epoll: select.epoll, sources: Path | None) -> None:
        self._epoll = epoll
        self._control, theirs = socket.socketpair()
        self._inbox = bytearray()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                self.reaper = start_process_with_retry(lambda: _spawn(fd, theirs.fileno(), sources, home))
                """Pid of the reaper, a child of this process."""
                self.journal = Journal(path)
            finally:
                os.close(fd)
        except OSError as error:
            self._control.close()
            raise SupervisionError(f"cannot start the process that runs jobs: {error}") from error
        finally:
            theirs.close()
        epoll.register(self._control, select.EPOLLIN)

    def send(self, *message: Any) -> None:
        """Send a message whole; if the supervisor is gone, the message is lost and the next `receive` reports that."""
        with suppress(OSError):
            self._control.sendall(supervisor.encode_message(message))

    def receive(self) -> tuple[list[tuple[Any, ...]], bool]:
        """Return the reports that have arrived, and whether the supervisor is alive."""
        is_alive = False
        try:
            while chunk := self._control.recv(supervisor.CHUNK, socket.MSG_DONTWAIT):
                self._inbox += chunk
        except BlockingIOError:
            is_alive = True
        except OSError:
            pass  # as at the end of file: the supervisor is gone
        return [report for _, reports in supervisor.decode_messages(self._inbox) for report in reports], is_alive

    def close(self) -> None:
        """Close the connection: the supervisor waits for its running attempts and exits."""
        if self._control.fileno() >= 0:
            self._epoll.unregister(self._control)
            self._control.close()


def _spawn(journal: int, control: int, sources: Path | None, home: Cgroup | None) -> int:
    # A group of its own, where Python cannot start sessions: signals of the terminal reach neither.
    apart: dict[str, Any] = {"setsid": True} if spawns_sessions() else {"setpgroup": 0}
    folder = (sources or Path(__file__).parents[2]) / "torc_framework"
    python = sys.executable or "/proc/self/exe"  # Python does not always know it, for example without PATH
    return os.posix_spawn(
        python,
        [python, "-I", "-S", "-c", supervisor.PROGRAM, str(folder), *map(str, home or ())],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, journal, 2),
            (os.POSIX_SPAWN_DUP2, control, supervisor.CONTROL_FD),
            (os.POSIX_SPAWN_DUP2, 2, supervisor.JOURNAL_FD),
        ],
        **apart,
    )
