"""Commands of ``torc`` as child processes, with their output in files that only this process can reach.

A child has a session of its own and writes to a file, so that a run that may take days goes on when this program ends.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import IO, Final

from attrs import define, field

from torc_framework.errors import UserError
from torc_framework.monitoring.command_children import child_environment, command_text
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.identity import Identity

OUTPUT_BYTES: Final = 256 << 10
"""End of a command's output that is shown."""
STOP_S: Final = 60.0
"""Seconds that a run may take to stop its jobs when its server ends with this program."""


@define(eq=False)
class ChildCommand:
    """One command under way or ended.

    Attributes:
        text: What a person types for it.
        is_long: It may take days.
    """

    text: str
    is_long: bool
    process: "subprocess.Popen[bytes]" = field(repr=False)
    output: IO[bytes] = field(repr=False)
    started_at: float = field(factory=time.time)
    _kept: str = field(default="", init=False, repr=False)

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self.process.poll()

    def tail(self) -> str:
        """Return the end of what it wrote; a screen that is being closed may still ask when the output is closed."""
        if self.output.closed:
            return self._kept
        size = os.fstat(self.output.fileno()).st_size
        start = max(0, size - OUTPUT_BYTES)
        return os.pread(self.output.fileno(), OUTPUT_BYTES, start).decode("utf-8", "replace")

    def close_output(self) -> None:
        """Close the file of its output, and keep the end of it."""
        self._kept = self.tail()
        self.output.close()

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Send it a signal, by default that of Ctrl-C."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)


class ChildCommands:
    """The commands that were started here."""

    def __init__(self, context: WorkContext, identity: Identity) -> None:
        self._context, self._identity = context, identity
        self.all: list[ChildCommand] = []
        self._abandoned: list[ChildCommand] = []

    def start(self, arguments: Sequence[str], *, is_long: bool = False, width: int = 80) -> ChildCommand:
        """Start a command.

        Raises:
            UserError: it cannot be started.
            ServerUnreachableError: there is no server now.
        """
        for child in [child for child in self._abandoned if child.exit_code is not None]:
            self._abandoned.remove(child)
            self.forget(child)
        output = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the command is shown
        try:
            process = subprocess.Popen(
                [*self._context.torc, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._context.folder,
                env={**child_environment(self._identity), "COLUMNS": str(width), "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        except OSError as error:
            output.close()
            raise UserError(f"{self._context.torc[0]} cannot be started: {error.strerror}") from error
        child = ChildCommand(command_text([*arguments]), is_long, process, output)
        self.all.append(child)
        return child

    @property
    def running(self) -> list[ChildCommand]:
        """The commands under way."""
        return [child for child in self.all if child.exit_code is None]

    def forget(self, child: ChildCommand) -> None:
        """Close the output of a command that has ended and is no longer shown."""
        if child.exit_code is not None and child in self.all:
            self.all.remove(child)
            child.close_output()

    def abandon(self, child: ChildCommand) -> None:
        """Interrupt a command of which nothing is wanted any more; its output is closed when it has ended."""
        if child.exit_code is None:
            child.interrupt()
            self._abandoned.append(child)
        self.forget(child)

    def close(self, *, stops_long: bool) -> None:
        """Stop the short commands, and with ``stops_long`` all: their server ends too."""
        ending = [child for child in self.running if stops_long or not child.is_long]
        for child in ending:
            child.interrupt(signal.SIGTERM if child.is_long else signal.SIGINT)
        for child in ending:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(STOP_S)
        for child in self.all:
            child.output.close()
