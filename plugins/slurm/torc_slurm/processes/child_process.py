"""Processes of the runner's own: started without blocking it, watched by a descriptor, gone when it is gone."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Final

from attrs import Factory, define

from torc_slurm.processes.exit_descriptor import exit_descriptor
from torc_slurm.processes.instants import Instant

READ_BYTES: Final = 65536


@cache
def parent_death_prefix(signal_name: str) -> tuple[str, ...]:
    """Return the words in front of a command that let a signal end it when its parent dies, however that happens.

    That is setpriv(1) of util-linux 2.33 or later (``PR_SET_PDEATHSIG``); nothing where it is not.
    """
    program = shutil.which("setpriv")
    if program is None:
        return ()
    words = (program, "--pdeathsig", signal_name)
    try:
        done = subprocess.run([*words, "true"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ()
    return words if done.returncode == 0 else ()


@define(eq=False)
class ChildProcess:
    """One process.

    Attributes:
        pid: Its number.
        end_fd: Can be read when it has ended.
        words_fd: Its standard error, which does not block; -1 if that goes elsewhere.
        started: When it was started.
        status: Its wait status, once it has ended.
        peak_memory_bytes: Largest resident set of any of its processes.
        cpu_time_s: CPU seconds of all that were waited for.
    """

    _process: "subprocess.Popen[bytes]"
    end_fd: int
    words_fd: int
    started: Instant = Factory(Instant.now)
    status: int | None = None
    peak_memory_bytes: int | None = None
    cpu_time_s: float | None = None

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        files: tuple[int, int] | None = None,
    ) -> "ChildProcess":
        """Start a process in a session of its own, without input.

        Args:
            files: Where standard output and error go; by default output nowhere, and errors to `words_fd`.

        Raises:
            OSError: it cannot be started.
            ValueError: a word or variable has a NUL in it.
        """
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=files[0] if files else subprocess.DEVNULL,
            stderr=files[1] if files else subprocess.PIPE,
            start_new_session=True,
        )
        words_fd = -1
        try:
            if process.stderr is not None:
                words_fd = os.dup(process.stderr.fileno())
                process.stderr.close()
                os.set_blocking(words_fd, False)
            return cls(process, exit_descriptor(process.pid), words_fd)
        except BaseException:  # it would run on unseen
            _kill_group(process)
            if words_fd >= 0:
                os.close(words_fd)
            raise

    def drop(self) -> None:
        """End it, with its process group, and let go of it."""
        _kill_group(self._process)
        self.close()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def read(self) -> bytes | None:
        """Return what it wrote since the last time: nothing at the end, None if there is no more for now."""
        try:
            return os.read(self.words_fd, READ_BYTES)
        except BlockingIOError:
            return None

    def reap(self) -> Instant:
        """Take its wait status and return when its end was noticed; only once `end_fd` can be read."""
        ended = Instant.now()
        _, status, usage = os.wait4(self.pid, 0)
        self.status = status
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.peak_memory_bytes = usage.ru_maxrss * 1024
        self.cpu_time_s = usage.ru_utime + usage.ru_stime
        return ended

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to it, or to its whole session's first process group, if it has not been reaped."""
        if self.status is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number) if group else os.kill(self.pid, number)

    def close(self) -> None:
        """Let go of its descriptors."""
        for descriptor in (self.end_fd, self.words_fd):
            if descriptor >= 0:
                os.close(descriptor)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process that leads a group, with its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stderr is not None:
        process.stderr.close()
