"""Runs of commands: children of this process, with the output of each in a file that only this process can reach.

A child has a session of its own and writes to files, not to pipes, so that one that goes on when this process ends
is not stopped by that. Its end is told by a process descriptor, without a thread that waits for it.
"""

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from attrs import define, field

from torc_framework.dashboard.http.limits import (
    COMMAND_DOCUMENT_BYTES,
    COMMAND_OUTPUT_BYTES,
    COMMAND_S,
    KEPT_COMMANDS,
    KILL_S,
    LEAST_ROOM_BYTES,
    LONG_COMMANDS,
    SHORT_COMMANDS,
)
from torc_framework.monitoring.command_children import child_environment, command_text
from torc_framework.monitoring.command_table import OfferedCommand
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.identity import Identity
from torc_framework.monitoring.refusals import RefusedError

RUNNING: Final = "running"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
STOPPED: Final = "stopped"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of write(2) for want of room."""
LONG_STOP_S: Final = 60.0
"""Seconds that a run may take to stop its jobs when this process ends with its server."""


@define(eq=False)
class CommandRun:
    """One run of a command.

    Attributes:
        id: Its number in this process.
        arguments: Arguments of the program ``torc``, as a person types them.
        spec_folder: Temporary folder with the spec; removed at the end.
        is_cut: It failed while there was no room for its output.
    """

    id: int
    command: OfferedCommand
    workflow_id: int | None
    preview: bool
    arguments: list[str]
    process: "subprocess.Popen[bytes]" = field(repr=False)
    output: IO[bytes] = field(repr=False)
    error: IO[bytes] = field(repr=False)
    spec_folder: "tempfile.TemporaryDirectory[str] | None" = field(default=None, repr=False)
    started_at: float = field(factory=time.time)
    ended_at: float | None = None
    stopped: bool = False
    ended: asyncio.Event = field(factory=asyncio.Event, repr=False)
    is_cut: bool = False

    @property
    def state(self) -> str:
        """The state in one word."""
        if self.ended_at is None:
            return RUNNING
        if self.process.returncode == 0:
            return SUCCEEDED
        return STOPPED if self.stopped else FAILED

    def summary(self) -> dict[str, Any]:
        """Return it as JSON values, without its output."""
        return {
            "id": self.id,
            "command": self.command.name,
            "title": self.command.title,
            "workflow_id": self.workflow_id,
            "preview": self.preview,
            "text": command_text(self.arguments),
            "state": self.state,
            "exit_code": self.process.returncode if self.ended_at is not None else None,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "is_long": self.command.is_long,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values, with the ends of its output."""
        output, size = self._tail(self.output)
        message, findings = _error_of(self._tail(self.error)[0])
        return {
            **self.summary(),
            "document": self._document(size),
            "output": output if self.command.is_long else "",
            "error": f"{message}{_no_room()}; the command may have had its effect" if self.is_cut else message,
            "findings": findings,
            "output_size": size,
        }

    def _document(self, size: int) -> Any:
        """Return the JSON that the command printed; None if it printed none, or runs yet."""
        if self.ended_at is None or self.command.is_long or not 0 < size <= COMMAND_DOCUMENT_BYTES:
            return None
        try:
            return msgspec.json.decode(self._without_folder(os.pread(self.output.fileno(), size, 0)))
        except (msgspec.DecodeError, RecursionError):
            return None

    def _tail(self, file: IO[bytes]) -> tuple[str, int]:
        """Return the end of a file, and the file's size."""
        size = os.fstat(file.fileno()).st_size
        text = os.pread(file.fileno(), COMMAND_OUTPUT_BYTES, max(0, size - COMMAND_OUTPUT_BYTES))
        return self._without_folder(text).decode("utf-8", "replace"), size

    def _without_folder(self, text: bytes) -> bytes:
        """Return a text in which the spec's file has no folder: the reader did not choose it."""
        return text.replace(f"{self.spec_folder.name}/".encode(), b"") if self.spec_folder else text

    def end(self) -> None:
        """Note that it has ended."""
        self.process.wait()
        self.ended_at = time.time()
        self.is_cut = self.state == FAILED and not os.fstatvfs(self.error.fileno()).f_bavail
        if self.spec_folder is not None:
            self.spec_folder.cleanup()
        self.ended.set()

    def interrupt(self, number: int) -> None:
        """Send a signal to the command, which stops what it has started."""
        if self.ended_at is None:
            self.stopped = True
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    def close(self) -> None:
        """Close the files of the output."""
        self.output.close()
        self.error.close()


class _ErrorFields(msgspec.Struct):
    message: str
    findings: list[Any] = []


class _ErrorDocument(msgspec.Struct):
    """What a command prints on standard error with ``--format=json``."""

    error: _ErrorFields


def _error_of(text: str) -> tuple[str, list[Any]]:
    """Return the message in what a command wrote to standard error, and the errors in a spec."""
    begin = text.find('{\n  "error"')
    if begin < 0:
        return text, []
    try:
        found = msgspec.json.decode(text[begin:].encode(), type=_ErrorDocument).error
    except (msgspec.DecodeError, RecursionError):
        return text, []
    return f"{text[:begin]}{found.message}", found.findings


def _no_room() -> str:
    """Return the message for a file system of temporary files that is full."""
    folder = tempfile.gettempdir()
    return f"the disk of {folder} is full: make room there, or start torc-dash with TMPDIR set to another folder"


@contextlib.contextmanager
def _temporary_files() -> Iterator[None]:
    """Make temporary files in the block.

    Raises:
        RefusedError: there is no room for them (507).
    """
    try:
        if shutil.disk_usage(tempfile.gettempdir()).free < LEAST_ROOM_BYTES:
            raise RefusedError(507, _no_room())
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise RefusedError(507, _no_room()) from error


class CommandRuns:
    """The runs of commands of this process, newest last.

    Args:
        context: The program and the folder.
        stops_long: Commands that may take days are stopped at the end, because the server ends too.
    """

    def __init__(self, context: WorkContext, *, stops_long: bool) -> None:
        self._context, self._stops_long = context, stops_long
        self._runs: dict[int, CommandRun] = {}
        self._count = 0

    def all(self) -> list[dict[str, Any]]:
        """Return the runs as JSON values, newest first."""
        return [run.summary() for run in reversed(self._runs.values())]

    def find(self, id_: int) -> CommandRun:
        """Return one run.

        Raises:
            RefusedError: there is none with this number, or it was long ago (404).
        """
        try:
            return self._runs[id_]
        except KeyError:
            raise RefusedError(404, f"there is no run {id_} of a command") from None

    def start(
        self,
        command: OfferedCommand,
        workflow_id: int | None,
        arguments: list[str],
        identity: Identity,
        *,
        folder: Path | None = None,
        spec: tuple[str, str] | None = None,
        preview: bool = False,
    ) -> CommandRun:
        """Start a command.

        Args:
            command: The command.
            workflow_id: Its workflow.
            arguments: Its arguments.
            identity: Who uses the server.
            folder: Folder in which it runs; by default that of this process.
            spec: Text and format of a spec, which is written to a temporary file that becomes the last argument.
            preview: It changes nothing.

        Raises:
            RefusedError: too many commands run, it cannot be started, or there is no room for its output (507).
        """
        self._check_number(command)
        with contextlib.ExitStack() as undo, _temporary_files():
            output = undo.enter_context(tempfile.TemporaryFile())
            error = undo.enter_context(tempfile.TemporaryFile())
            spec_folder, words = None, ([] if command.is_long else ["--format=json"])
            shown = [*arguments]
            if spec is not None:
                spec_folder = tempfile.TemporaryDirectory(prefix="torc-dash-")
                undo.callback(spec_folder.cleanup)
                path = Path(spec_folder.name) / f"spec.{spec[1]}"
                path.write_text(spec[0], encoding="utf-8", errors="replace")
                arguments, shown = [*arguments, str(path)], [*arguments, path.name]
            try:
                process = subprocess.Popen(
                    [*self._context.torc, *words, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=error,
                    cwd=folder or self._context.folder,
                    env=child_environment(identity),
                    start_new_session=True,
                )
            except OSError as failure:
                raise RefusedError(500, f"{self._context.torc[0]} cannot be started: {failure.strerror}") from failure
            undo.pop_all()
        self._count += 1
        run = CommandRun(self._count, command, workflow_id, preview, shown, process, output, error, spec_folder)
        self._runs[run.id] = run
        self._watch(run)
        return run

    def _check_number(self, command: OfferedCommand) -> None:
        present = [
            run for run in self._runs.values() if run.state == RUNNING and run.command.is_long == command.is_long
        ]
        if len(present) >= (LONG_COMMANDS if command.is_long else SHORT_COMMANDS):
            raise RefusedError(429, f"{len(present)} commands run already; try again when one of them has ended")
        ended = [run for run in self._runs.values() if run.state != RUNNING]
        for run in ended[: max(0, len(ended) - KEPT_COMMANDS + 1)]:
            run.close()
            del self._runs[run.id]

    def _watch(self, run: CommandRun) -> None:
        loop = asyncio.get_running_loop()
        descriptor = os.pidfd_open(run.process.pid)
        timers: list[asyncio.TimerHandle] = []
        if not run.command.is_long:
            timers.append(loop.call_later(COMMAND_S, run.interrupt, signal.SIGINT))
            timers.append(loop.call_later(COMMAND_S + KILL_S, run.interrupt, signal.SIGKILL))

        def end() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            for timer in timers:
                timer.cancel()
            run.end()

        loop.add_reader(descriptor, end)

    async def wait(self, run: CommandRun, seconds: float) -> None:
        """Wait for the end of a run."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(run.ended.wait(), seconds)

    def stop(self, run: CommandRun) -> None:
        """Interrupt a run as Ctrl-C does; a short one that does not end is killed."""
        run.interrupt(signal.SIGINT)
        if not run.command.is_long:
            asyncio.get_running_loop().call_later(KILL_S, run.interrupt, signal.SIGKILL)

    @property
    def stopped_at_end(self) -> list[CommandRun]:
        """The runs under way that `close` stops."""
        running = [run for run in self._runs.values() if run.state == RUNNING]
        return [run for run in running if self._stops_long or not run.command.is_long]

    async def close(self) -> None:
        """Stop the commands that do not outlive this process, and wait for their ends."""
        stopped = self.stopped_at_end
        for run in stopped:
            run.interrupt(signal.SIGTERM if run.command.is_long else signal.SIGINT)
        for run in stopped:
            await self.wait(run, LONG_STOP_S if run.command.is_long else KILL_S)
