"""Child processes of the runner, which are watched by descriptors and end when the runner ends."""

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
    """Return the words in front of a command by which the kernel sends it a signal when its parent process ends.

    The words call setpriv(1) of util-linux 2.33 or later (``PR_SET_PDEATHSIG``); they are empty where it is missing.
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
    """One child process.

    Attributes:
        pid: Its process id.
        exit_fd: Descriptor that is readable once it has ended.
        stderr_fd: Non-blocking descriptor of its standard error; -1 if that goes to a file.
        started: When it was started.
        status: Its wait status, once it was reaped.
        peak_memory_bytes: Largest resident set of it and of the descendants that were waited for.
        cpu_time_s: CPU seconds of the same processes.
    """

    _process: "subprocess.Popen[bytes]"
    exit_fd: int
    stderr_fd: int
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
            files: Descriptors for standard output and error; by default output is discarded, and errors go to
                `stderr_fd`.

        Raises:
            OSError: it cannot be started.
            ValueError: an argument or a variable contains NUL.
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
        stderr_fd = -1
        try:
            if process.stderr is not None:
                stderr_fd = os.dup(process.stderr.fileno())
                process.stderr.close()
                os.set_blocking(stderr_fd, False)
            return cls(process, exit_descriptor(process.pid), stderr_fd)
        except BaseException:  # it would run without being watched
            _kill_group(process)
            if stderr_fd >= 0:
                os.close(stderr_fd)
            raise

    def kill_and_close(self) -> None:
        """Kill its process group and close its descriptors."""
        _kill_group(self._process)
        self.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def read(self) -> bytes | None:
        """Return new data of its standard error: empty at the end of the file, None if there is nothing now."""
        try:
            return os.read(self.stderr_fd, READ_BYTES)
        except BlockingIOError:
            return None

    def reap(self) -> Instant:
        """Reap it and return the time of this call; only once `exit_fd` is readable."""
        ended = Instant.now()
        _, status, usage = os.wait4(self.pid, 0)
        self.status = status
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.peak_memory_bytes = usage.ru_maxrss * 1024
        self.cpu_time_s = usage.ru_utime + usage.ru_stime
        return ended

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to it, or to its process group, unless it was reaped."""
        if self.status is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number) if group else os.kill(self.pid, number)

    def close(self) -> None:
        """Close its descriptors."""
        for descriptor in (self.exit_fd, self.stderr_fd):
            if descriptor >= 0:
                os.close(descriptor)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process group that a process leads, and reap the process."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stderr is not None:
        process.stderr.close()
