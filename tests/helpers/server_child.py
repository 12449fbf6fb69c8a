"""A real server process that a test starts with flags of its own, ends, kills and starts again."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self


class ServerChild:
    """A server on the database of a folder; once it has a port it keeps that port.

    Attributes:
        process: The running process.
        port: Its port.
    """

    def __init__(self, folder: Path, *flags: str) -> None:
        self._folder = folder
        self._flags = flags
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start the process; return when it listens."""
        command = [sys.executable, "-m", "torc_framework.cli.programs.torc_server", "run", "--host", "127.0.0.1"]
        with (self._folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), "--database", str(self._folder / "torc.db"), *self._flags],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        if self.port == 0:
            assert self.process.stdout is not None
            line = self.process.stdout.readline()
            assert line.startswith("TORC_SERVER_PORT="), self.log
            self.port = int(line.partition("=")[2])

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.port}/torc-service/v1"

    @property
    def log(self) -> str:
        """What the server has written to standard error."""
        return (self._folder / "server.log").read_text()

    def stop(self) -> int:
        """Ask the process to end; return its exit code."""
        self.process.terminate()
        return self._ended()

    def kill(self) -> None:
        """End the process as a crash would."""
        self.process.kill()
        self._ended()

    def _ended(self) -> int:
        code = self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
