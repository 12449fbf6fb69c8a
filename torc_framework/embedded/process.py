"""The process of an embedded server, also one that imports its modules before the command knows its arguments.

This module is imported before anything else in a short command, so it imports little itself.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import IO, Final

PROGRAM: Final = (sys.executable, "-P", "-m", "torc_framework.cli.programs.torc_server")
"""Command line of this installation's ``torc-server``; without -P it would import a json.py of the current folder."""
EARLY_PROGRAM: Final = (sys.executable, "-P", "-m", "torc_framework.cli.programs.early_server")
"""The same for a server that imports its modules, and then reads what else it needs from its standard input."""


class ServerProcess:
    """A process of ``torc-server``, the pipe whose end makes it end, and the file that gets its standard error.

    Attributes:
        process: The process; its standard output is a pipe.
        errors: What it writes to standard error.

    Args:
        program: Command line of the program.
        arguments: Arguments of ``torc-server run``.
        environment: Environment variables beside those of this process.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, program: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._start(lambda parent_fd: [*program, "run", *arguments, *parent_fd], environment, subprocess.DEVNULL)

    def _start(
        self, command: Callable[[Sequence[str]], Sequence[str]], environment: Mapping[str, str], stdin: int
    ) -> None:
        """Start the process; close all files if it cannot be started.

        Args:
            command: Returns the command line; gets the option that names the inherited end of the pipe.
            environment: As for `__init__`.
            stdin: Its standard input, as `subprocess.Popen` takes it.
        """
        with ExitStack() as undo:
            reader, lifeline = os.pipe()
            undo.callback(os.close, lifeline)
            self._parent_fd = ("--parent-fd", str(reader))
            try:
                errors = undo.enter_context(_unnamed_file())
                self.process = subprocess.Popen(
                    command(self._parent_fd),
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    pass_fds=(reader,),
                    env={**os.environ, **environment},
                    start_new_session=True,
                )
            finally:
                os.close(reader)
            undo.pop_all()
        self._lifeline: int | None = lifeline
        self.errors = errors

    def close_lifeline(self) -> None:
        """Let the server end; may be called again."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


class EarlyServerProcess(ServerProcess):
    """A process that imports the modules of the server, and serves when it is told how.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self) -> None:
        self._start(lambda _: EARLY_PROGRAM, {}, subprocess.PIPE)

    def serve(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Let it serve; the arguments are those of `ServerProcess`."""
        assert self.process.stdin is not None
        given = {"arguments": ["run", *arguments, *self._parent_fd], "environment": dict(environment)}
        with suppress(BrokenPipeError), self.process.stdin as pipe:  # it has ended: reading its port says so
            pipe.write(json.dumps(given).encode())

    def discard(self) -> None:
        """End it and wait for its end; it must not serve."""
        self.process.kill()
        self.close_lifeline()
        self.process.communicate()
        self.errors.close()


def _unnamed_file() -> IO[bytes]:
    """Return a new temporary file without a name. To import `tempfile` takes as long as to start the process."""
    with suppress(AttributeError, OSError):  # the system, or the file system of the folder, has no such files
        return os.fdopen(os.open(os.environ.get("TMPDIR") or "/tmp", os.O_TMPFILE | os.O_RDWR, 0o600), "w+b")
    import tempfile

    return tempfile.TemporaryFile()
