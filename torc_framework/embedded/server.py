"""The embedded server as its command sees it: its start, its URL, its errors and its end.

It is a process and not a thread, so that its imports overlap with the work of its parent, and it has a session of its
own, so that Ctrl-C does not reach it. It ends when its parent closes the pipe between them; the kernel does that for a
parent that is killed.

Every user of this machine can reach the loopback interface, and jobs are commands. Therefore every path begins with a
token that only the server's owner and the jobs know. It is part of the URL, so that programs need nothing else, and it
is passed to the server in its environment or through a pipe; other users can read neither.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from torc_framework.embedded.process import PROGRAM, EarlyServerProcess, ServerProcess
from torc_framework.errors import ConfigError, ExitStatus, OperatorError, ServerUnreachableError, TorcError
from torc_framework.server.settings import DATABASE_VARIABLE, TOKEN_VARIABLE
from torc_framework.system.private_files import make_private_folder, open_private
from torc_framework.system.processes import start_process_with_retry
from torc_framework.system.user import user_folder

START_TIMEOUT_S: Final = 60.0
"""Seconds within which the server must listen; includes migrations and a cold disk cache."""
FAILURE_WAIT_S: Final = 5.0
"""Seconds that a failed server may take to end."""
STOP_TIMEOUT_S: Final = 15.0
"""Seconds that the server may take to end, after the pipe is closed and again after SIGTERM, before it is killed."""
BODY_VARIABLE: Final = "TORC_SERVER__LIMITS__BODY_MIB"
BODY_MIB: Final = "1024"
"""Largest request body of the server, MiB, because its one client may store a plan of millions of jobs."""
KEPT_BYTES: Final = 1 << 20
"""Bytes of the end of the server's standard error that are kept."""
_PORT_LINE: Final = b"TORC_SERVER_PORT="


class EmbeddedServer:
    """An embedded server on one database. `start` does not wait for it; `url` waits until it listens.

    Several embedded servers may use one database at the same time.

    Args:
        database: Path of the database file, whose folder is created if it is missing; or the URL of a database.
        log_level: Log level of the server's standard error, which is shown only if the server fails.
        port: Port on the loopback interface; 0 takes a free one.
        program: Command line of the program ``torc-server``; by default this installation's.
        early: A process that was started early; `start` lets it serve instead of starting one.
    """

    def __init__(
        self,
        database: Path | str,
        *,
        log_level: str = "warning",
        port: int = 0,
        program: Sequence[str] = PROGRAM,
        early: EarlyServerProcess | None = None,
    ) -> None:
        self.database = database
        self._log_level, self._port, self._program, self._early = log_level, port, program, early
        self._server: ServerProcess | None = None
        self._error_text = ""
        self._url: str | None = None
        self._token = os.urandom(32).hex()

    def __enter__(self) -> "EmbeddedServer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """Process id of the server; None before `start` and after `close`."""
        return self._server.process.pid if self._server else None

    @property
    def is_alive(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._server is not None and self._server.process.poll() is None

    def start(self) -> None:
        """Start the process; repeat that for `processes.PATIENCE_S` seconds while the system's limits are reached.

        Raises:
            ConfigError: the database's folder cannot be created.
            ServerUnreachableError: the process cannot be started.
        """
        try:
            if isinstance(self.database, Path) and not self.database.parent.is_dir():
                make_private_folder(self.database.parent)
        except OSError as error:
            raise ConfigError(f"cannot make the folder of the database {self.database}: {error.strerror}") from error
        try:
            self._server = start_process_with_retry(self._start_process)
        except OSError as error:
            unreachable = ServerUnreachableError(f"the embedded server could not be started: {error.strerror}")
            unreachable.is_permanent = True  # it was tried for a while
            raise unreachable from error

    def _start_process(self) -> ServerProcess:
        """Start and return the process, or let the one that was started early serve."""
        environment = {
            BODY_VARIABLE: os.environ.get(BODY_VARIABLE, BODY_MIB),
            TOKEN_VARIABLE: self._token,
            DATABASE_VARIABLE: str(self.database),
        }
        arguments = ["--host", "127.0.0.1", "--port", str(self._port), "--log-level", self._log_level]
        if self._early is None:
            return ServerProcess(self._program, arguments, environment)
        self._early.serve(arguments, environment)
        return self._early

    @property
    def url(self) -> str:
        """Base URL of the server with its token; waits until the server listens.

        Raises:
            ConfigError: the database cannot be used.
            ServerUnreachableError: the server of the database does not answer.
            OperatorError: the server ended for another reason or took too long; the message contains its own.
        """
        if self._url is None:
            self._url = f"http://127.0.0.1:{self._read_port()}/~{self._token}/torc-service/v1"
        return self._url

    def _read_port(self) -> int:
        assert self._server is not None, "start() comes first"
        assert self._server.process.stdout is not None
        stream, line, deadline = self._server.process.stdout.fileno(), b"", time.monotonic() + START_TIMEOUT_S
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._failure(f"did not listen within {START_TIMEOUT_S:.0f} s")
            chunk = os.read(stream, 1)
            if not chunk:
                raise self._failure("ended at once")
            line += chunk
        if not line.startswith(_PORT_LINE):
            raise self._failure(f"wrote {line!r} instead of its port")
        return int(line[len(_PORT_LINE) :])

    def _failure(self, what: str) -> TorcError:
        """Stop the server and return its error: the last line that it wrote, in the class for its exit code."""
        server = self._server
        self.close()
        error_line = self.last_error_line
        if server is not None and server.process.returncode == ExitStatus.USAGE and error_line:
            return ConfigError(error_line)
        if server is not None and server.process.returncode == ExitStatus.UNAVAILABLE and error_line:
            return ServerUnreachableError(error_line)
        where = f" on {self.database}" if isinstance(self.database, Path) else ""  # a URL may hold a password
        return OperatorError(f"the embedded server{where} {what}{': ' + error_line if error_line else ''}")

    def has_failed(self) -> bool:
        """Return whether the process ended by itself; wait up to `FAILURE_WAIT_S` seconds for that."""
        if self._server is None:
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._server.process.wait(FAILURE_WAIT_S)
        return self._server.process.poll() is not None

    @property
    def last_error_line(self) -> str:
        """The last line of the closed server's standard error, which is the error if it failed."""
        return (self._error_text.splitlines() or [""])[-1].removeprefix("Error: ")

    def output(self) -> str:
        """Return the end of what the running server wrote to standard error, `KEPT_BYTES` at most."""
        if self._server is None:
            return self._error_text
        errors = self._server.errors.fileno()
        size = os.fstat(errors).st_size
        content = os.pread(errors, KEPT_BYTES, max(0, size - KEPT_BYTES))
        return content.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Stop the server and wait for its end; may be called again."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close_lifeline()
        process = server.process
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_TIMEOUT_S)
                break
        if process.stdout is not None:
            process.stdout.close()
        with server.errors as errors:
            end = errors.seek(0, os.SEEK_END)
            errors.seek(max(0, end - KEPT_BYTES))
            self._error_text = errors.read().decode("utf-8", "replace").strip()

    def keep_log(self) -> Path | None:
        """Write the standard error of the closed server to a file; return its path, or None."""
        if not self._error_text:
            return None
        name = f"embedded-server-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
        try:
            path = user_folder("state") / name
            make_private_folder(path.parent)
            with open(path, "x", opener=open_private) as file:
                file.write(f"{self._error_text}\n")
        except (OSError, ConfigError):
            return None
        return path
