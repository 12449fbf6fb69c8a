"""`KeptServer`: the use of a kept server by one command, which starts the server if there is none."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from torc_framework.client.http.transport import Transport
from torc_framework.errors import ApiError, OperatorError, ServerUnreachableError
from torc_framework.kept_server.location import database_digest, make_server_folder, server_folder, server_name
from torc_framework.kept_server.server_files import ServerFiles, ServerState, try_lock
from torc_framework.system.private_files import make_private_folder
from torc_framework.system.processes import start_process_with_retry
from torc_framework.system.user import user_folder

START_TIMEOUT_S: Final = 60.0
"""Seconds within which a server must answer; includes its start, and the end of one that is idle."""
ANSWER_TIMEOUT_S: Final = 10.0
"""Seconds within which a server that runs must answer."""
_PAUSE_S: Final = 0.01
_NAMES: Final = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SQLITE_TMPDIR", "TMPDIR", "TZ", "USER"}
)
_PREFIXES: Final = ("LC_", "PYTHON", "XDG_")


class KeptServerError(OperatorError):
    """There is no kept server that the command could use."""


class KeptServer:
    """The kept server on one database. `start` does not wait for it; `url` waits until it answers.

    As long as it is open, the server does not end because it is idle. A server that was started stays.

    Args:
        database: Path of an existing database file.
        idle_minutes: Minutes without use after which a server ends that this object starts.
    """

    def __init__(self, database: Path, *, idle_minutes: float) -> None:
        self._database = database
        self._idle_minutes = idle_minutes
        self._files: ServerFiles | None = None
        self._use: int | None = None
        self._state: ServerState | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    def __enter__(self) -> "KeptServer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Find the server, or start it.

        Raises:
            ConfigError: the folder of its files cannot be used.
            KeptServerError: the process cannot be started, or its files cannot be written.
        """
        folder = server_folder()
        make_server_folder(folder)
        try:
            self._files = ServerFiles(folder, server_name(self._database))
            self._find_or_start(self._files)
        except OSError as error:
            raise KeptServerError(f"it cannot be started: {error}") from error

    @property
    def url(self) -> str:
        """Base URL of the server with its token; waits until the server answers.

        Raises:
            KeptServerError: it does not answer in time, or ended; the message contains its own.
        """
        assert self._files is not None, "start() comes first"
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._state is None or not _answers(self._state):
            if self._process is not None and self._process.poll() is not None:
                raise KeptServerError(f"it ended at once: {self._last_error_line()}")
            if time.monotonic() > deadline:
                raise KeptServerError(f"it does not answer within {START_TIMEOUT_S:.0f} s")
            time.sleep(_PAUSE_S)
            try:
                self._find_or_start(self._files)
            except OSError as error:
                raise KeptServerError(f"it cannot be started: {error}") from error
        return self._state.url

    @property
    def log(self) -> Path:
        """The server's log file.

        Raises:
            ConfigError: the user's state folder is not known.
        """
        return _log_folder(self._database) / "torc-server.log"

    def close(self) -> None:
        """Use the server no longer; may be called again."""
        if self._use is not None:
            os.close(self._use)
            self._use = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _find_or_start(self, files: ServerFiles) -> None:
        """Set the state of the server that answers; start one if there is none.

        Raises:
            OSError: the process cannot be started, or files cannot be written.
        """
        if self._use is None:
            self._use = try_lock(files.use, is_shared=True)
        if self._use is None:
            return  # the server is about to end
        lock = try_lock(files.lock)
        if lock is None:
            self._state = files.read_state()
            return
        try:
            if self._process is not None:
                return  # it has ended; a second start would fail as well
            files.remove_state()  # of a server that was killed
            self._state = None
            self._process = start_process_with_retry(lambda: self._start_process(files, lock))
        finally:
            os.close(lock)  # the process has it, too

    def _start_process(self, files: ServerFiles, lock: int) -> "subprocess.Popen[bytes]":
        log_dir = _log_folder(self._database)
        make_private_folder(log_dir)
        given = {
            "folder": str(files.folder.absolute()),
            "name": files.name,
            "lock": lock,
            "database": str(self._database.resolve()),
            "log_dir": str(log_dir.absolute()),
            "idle_minutes": self._idle_minutes,
        }
        with contextlib.ExitStack() as undo:
            errors = undo.enter_context(tempfile.TemporaryFile())
            # Without -P the server would import a json.py or yaml.py of the current folder.
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "torc_framework.kept_server.program", json.dumps(given)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(lock,),
                cwd="/",
                env=server_environment(os.environ),
                start_new_session=True,
            )
            undo.pop_all()
        self._errors = errors
        return process

    def _last_error_line(self) -> str:
        """Return the last line that a server wrote which has ended."""
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return (lines or [f"see {self.log}"])[-1].removeprefix("Error: ")


def server_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server that outlives the command: what any command would pass, and no secrets."""
    kept = {name: text for name, text in environ.items() if name in _NAMES or name.startswith(_PREFIXES)}
    if "PYTHONPATH" in kept:  # the server works in another folder
        paths = kept["PYTHONPATH"].split(os.pathsep)
        kept["PYTHONPATH"] = os.pathsep.join(str(Path(path).absolute()) for path in paths)
    return kept


def _log_folder(database: Path) -> Path:
    return user_folder("state") / f"server-{database_digest(database)}"


def _answers(state: ServerState) -> bool:
    """Return whether a server answers; False if it has ended meanwhile.

    Raises:
        KeptServerError: it lives and does not answer, or refuses.
    """
    transport = Transport(state.url, timeout=ANSWER_TIMEOUT_S)
    try:
        transport.request("GET", "/ping")
    except ServerUnreachableError as error:
        if isinstance(error.__cause__, TimeoutError):
            raise KeptServerError(
                f"process {state.pid} does not answer within {ANSWER_TIMEOUT_S:.0f} s; 'torc-server kept stop' ends it"
            ) from error
        return False
    except ApiError as error:
        raise KeptServerError(f"process {state.pid} refuses requests: {error}") from error
    finally:
        transport.close()
    return True
