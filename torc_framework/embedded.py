"""The server that a command or a test starts for itself: a child process on the loopback interface.

It is a process and not a thread, so that its imports overlap with whatever the parent does
meanwhile, and a session of its own, so that Ctrl-C does not reach it. It ends when its parent
closes the pipe between them, which the kernel does for a parent that is killed.

Whoever can log in to this machine can reach the loopback interface, and jobs are commands. So every
path begins with a token that only this server's owner and its jobs know: it is part of the URL, so
that any program that is given the URL works, and it is told to the server in its environment, which
other users cannot see.
"""

import contextlib
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from torc_framework.errors import ConfigError, ExitStatus, OperatorError, ServerUnreachableError, TorcError
from torc_framework.server.settings import DATABASE_VARIABLE, TOKEN_VARIABLE
from torc_framework.system.private_files import make_private_folder, open_private
from torc_framework.system.processes import start_process_with_retry
from torc_framework.system.user import user_folder

START_TIMEOUT_S: Final = 60.0
"""How long a server may take until it listens; migrations and a cold disk included."""
END_S: Final = 5.0
"""How long a server that failed may take to end."""
STOP_TIMEOUT_S: Final = 15.0
"""How long a server may take to end before it is killed."""
BODY_VARIABLE: Final = "TORC_SERVER__LIMITS__BODY_MIB"
BODY_MIB: Final = "1024"
"""Largest body that the server takes, MiB: its one client may store a plan of millions of jobs."""
KEPT_BYTES: Final = 1 << 20
"""How much of what a server wrote is kept, from its end."""
_PORT_LINE: Final = b"TORC_SERVER_PORT="


class EmbeddedServer:
    """A server of one's own on one database. `start` returns at once; `url` waits until it listens.

    Several may use one database at the same time.

    Args:
        database: Path of the database file, whose folder is made if need be; or the URL of a database.
        log_level: Level of what the server writes to standard error, shown only if it fails.
    """

    def __init__(self, database: Path | str, *, log_level: str = "warning") -> None:
        self.database = database
        self._log_level = log_level
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None
        self._errors: IO[bytes] | None = None
        self._written = ""
        self._url: str | None = None
        self._token = secrets.token_urlsafe(32)

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
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process; where the system has none left, try again for `processes.PATIENCE_S` seconds.

        Raises:
            ConfigError: the database's folder cannot be made.
            ServerUnreachableError: the process cannot be started.
        """
        try:
            if isinstance(self.database, Path) and not self.database.parent.is_dir():
                make_private_folder(self.database.parent)
        except OSError as error:
            raise ConfigError(f"cannot make the folder of the database {self.database}: {error.strerror}") from error
        try:
            self._process = start_process_with_retry(self._begin)
        except OSError as error:
            raise ServerUnreachableError(f"the embedded server could not be started: {error.strerror}") from error

    def _begin(self) -> "subprocess.Popen[bytes]":
        """Return the process; nothing stays open if it cannot be started."""
        with contextlib.ExitStack() as undo:
            reader, lifeline = os.pipe()
            undo.callback(os.close, lifeline)
            try:
                errors = undo.enter_context(tempfile.TemporaryFile())
                process = subprocess.Popen(
                    self._command(reader),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    pass_fds=(reader,),
                    env={
                        BODY_VARIABLE: BODY_MIB,
                        **os.environ,
                        TOKEN_VARIABLE: self._token,
                        DATABASE_VARIABLE: str(self.database),
                    },
                    start_new_session=True,
                )
            finally:
                os.close(reader)
            undo.pop_all()
        self._lifeline, self._errors = lifeline, errors
        return process

    def _command(self, lifeline: int) -> list[str]:
        # -P keeps a json.py or yaml.py of the user's project out of the server's imports.
        return [
            *(sys.executable, "-P", "-m", "torc_framework.cli.programs.torc_server", "run"),
            *("--host", "127.0.0.1", "--port", "0"),
            *("--log-level", self._log_level, "--parent-fd", str(lifeline)),
        ]

    @property
    def url(self) -> str:
        """Base URL of the server, token included; waits until it listens.

        Raises:
            ConfigError: the database cannot be used.
            OperatorError: it ended otherwise or took too long; the message holds what it said.
        """
        if self._url is None:
            self._url = f"http://127.0.0.1:{self._read_port()}/~{self._token}/torc-service/v1"
        return self._url

    def _read_port(self) -> int:
        assert self._process is not None, "start() comes first"
        assert self._process.stdout is not None
        stream, line, deadline = self._process.stdout.fileno(), b"", time.monotonic() + START_TIMEOUT_S
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._failure(f"did not listen within {START_TIMEOUT_S:.0f} s")
            chunk = os.read(stream, 1)
            if not chunk:
                raise self._failure("ended at once")
            line += chunk
        if not line.startswith(_PORT_LINE):
            raise self._failure(f"said {line!r} instead of its port")
        return int(line[len(_PORT_LINE) :])

    def _failure(self, what: str) -> TorcError:
        """Return why there is no server: in its own words, as an error of the kind that it said it is."""
        process = self._process
        self.close()
        said = self.last_words
        if process is not None and process.returncode == ExitStatus.USAGE and said:
            return ConfigError(said)
        where = f" on {self.database}" if isinstance(self.database, Path) else ""  # a URL may hold a password
        return OperatorError(f"the embedded server{where} {what}{': ' + said if said else ''}")

    def has_failed(self) -> bool:
        """Say whether the process ended although it was not told to; one that fails just now may need a moment."""
        if self._process is None:
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        return self._process.poll() is not None

    @property
    def last_words(self) -> str:
        """The last line that the closed server wrote: the error, if it failed."""
        return (self._written.splitlines() or [""])[-1].removeprefix("Error: ")

    def close(self) -> None:
        """End the server and wait for its end; harmless when repeated."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_TIMEOUT_S)
                break
        if process.stdout is not None:
            process.stdout.close()
        if self._errors is not None:
            end = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, end - KEPT_BYTES))
            self._written = self._errors.read().decode("utf-8", "replace").strip()
            self._errors.close()
            self._errors = None

    def keep_log(self) -> Path | None:
        """Write what the closed server wrote to a file of its own; return its path, None if there is no such file."""
        if not self._written:
            return None
        name = f"embedded-server-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
        try:
            path = user_folder("state") / name
            make_private_folder(path.parent)
            with open(path, "x", opener=open_private) as file:
                file.write(f"{self._written}\n")
        except (OSError, ConfigError):
            return None
        return path
