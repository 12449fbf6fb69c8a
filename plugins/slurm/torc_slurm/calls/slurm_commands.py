"""Running Slurm's programs: each call has a time limit, is recorded in the call log and guided by a circuit breaker."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from torc_slurm.calls.call_log import CallLog, SlurmCall
from torc_slurm.calls.circuit_breaker import CircuitBreaker
from torc_slurm.calls.slurm_errors import (
    SlurmNotInstalledError,
    SlurmRefusedError,
    SlurmUnavailableError,
    means_unavailable,
)
from torc_slurm.processes.exit_descriptor import exit_descriptor

TIMEOUT_S: Final = 60.0
"""A program that has not ended after this time is killed, seconds; Slurm's own MessageTimeout is 10 s by default."""

Environment = Mapping[str, str | None]
"""Changes of this process's environment for a program; None removes a variable."""


class RunningCommand:
    """A running program of Slurm, and its result once it has ended; made by `SlurmCommands.start`.

    `fileno` returns a descriptor that is readable once the program has ended, so that a caller can wait for it beside
    other things.
    """

    def __init__(
        self,
        slurm: "SlurmCommands",
        command: Sequence[str],
        process: "subprocess.Popen[bytes]",
        files: tuple[int, int],
        timeout_s: float,
    ) -> None:
        self._slurm, self.command, self._process, self._files = slurm, command, process, files
        self._began = time.monotonic()
        self._timeout_s = timeout_s
        self._descriptor: int | None = None

    def fileno(self) -> int:
        """Return a descriptor that is readable once the program has ended."""
        if self._descriptor is None:
            self._descriptor = exit_descriptor(self._process.pid)
        return self._descriptor

    @property
    def elapsed_s(self) -> float:
        """How long ago the program was started, seconds."""
        return time.monotonic() - self._began

    @property
    def remaining_s(self) -> float:
        """How long the program may still run, seconds."""
        return max(0.0, self._timeout_s - self.elapsed_s)

    def result(self) -> str:
        """Wait for the program until its time limit, and return its standard output.

        Raises:
            SlurmUnavailableError: it was killed at its time limit, or reported that Slurm does not answer.
            SlurmRefusedError: it failed for another reason.
        """
        program = self.command[0]
        try:
            code = self._process.wait(self.remaining_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self._slurm.record(self.command, self._began, None)
            self._slurm.breaker.record_failure(time.monotonic())
            raise SlurmUnavailableError(f"{program} did not answer within {self._timeout_s:g} s") from None
        else:
            stdout, stderr = map(_read_memory_file, self._files)
        finally:
            self.close()
        message = _error_text(program, stderr or stdout) if code else ""
        is_unavailable = means_unavailable(message)
        self._slurm.record(self.command, self._began, None if is_unavailable else code)
        if code == 0:
            self._slurm.breaker.record_success()
            return stdout
        if is_unavailable:
            self._slurm.breaker.record_failure(time.monotonic())
            raise SlurmUnavailableError(f"Slurm does not answer {program}: {message}")
        self._slurm.breaker.record_success()
        raise SlurmRefusedError(program, code, message)

    def wait(self, seconds: float) -> None:
        """Wait at most so many seconds for the program's end and ignore its result; it is not killed."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def kill(self) -> None:
        """Kill the program; its result is not needed any more."""
        self._process.kill()
        self._process.wait()
        self.close()

    def close(self) -> None:
        """Close the descriptors, once the program has ended."""
        for descriptor in (*self._files, self._descriptor):
            if descriptor is not None:
                os.close(descriptor)


class SlurmCommands:
    """Runs Slurm's programs.

    Args:
        purpose: What the calls are for, as the call log names it: ``allocations``, ``runner``, ``cli``.
        call_log: Where calls are recorded; by default the user's own log.

    Attributes:
        breaker: Blocks calls for a while after failures.
    """

    def __init__(self, purpose: str, call_log: CallLog | None = None) -> None:
        self._purpose, self._call_log = purpose, call_log or CallLog.of_user()
        self.breaker = CircuitBreaker()

    def start(
        self,
        *command: str,
        environment: Environment | None = None,
        timeout_s: float = TIMEOUT_S,
        stdin: str | None = None,
        in_session: bool = False,
    ) -> RunningCommand:
        """Start a program and return at once; its result is taken from the returned object.

        Args:
            environment: Changes of this process's environment.
            timeout_s: Time limit, seconds.
            stdin: Text for the program's standard input.
            in_session: Run it in a session of its own, where neither a Ctrl-C at the terminal nor the terminal's end
                reaches it.

        Raises:
            SlurmUnavailableError: the circuit breaker blocks calls at present; nothing was started.
            SlurmNotInstalledError: the program is missing or cannot be executed.
        """
        if wait := self.breaker.wait_s(time.monotonic()):
            raise SlurmUnavailableError(
                f"Slurm did not answer {self.breaker.failures} time(s); asked again in {wait:.0f} s"
            )
        files = os.memfd_create("stdout"), os.memfd_create("stderr")
        source = _memory_file(stdin) if stdin is not None else subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                command,
                stdin=source,
                stdout=files[0],
                stderr=files[1],
                env=_environment(environment),
                start_new_session=in_session,
            )
        except OSError as error:
            for descriptor in files:
                os.close(descriptor)
            if isinstance(error, FileNotFoundError):
                raise SlurmNotInstalledError(
                    f"there is no program {command[0]!r} here: is this a machine of a cluster?"
                ) from None
            raise SlurmNotInstalledError(f"{command[0]!r} cannot be run: {error.strerror}") from None
        finally:
            if source >= 0:
                os.close(source)
        return RunningCommand(self, command, process, files, timeout_s)

    def run(
        self,
        *command: str,
        environment: Environment | None = None,
        timeout_s: float = TIMEOUT_S,
        stdin: str | None = None,
    ) -> str:
        """Run a program once and return its standard output.

        Raises:
            SlurmUnavailableError: Slurm did not answer, or the circuit breaker blocks calls at present.
            SlurmNotInstalledError: the program is missing or cannot be executed.
            SlurmRefusedError: the program failed for another reason.
        """
        return self.start(*command, environment=environment, timeout_s=timeout_s, stdin=stdin).result()

    def run_retrying(self, *command: str, patience_s: float, environment: Environment | None = None) -> str:
        """Run a program like `run`, but while Slurm is unavailable wait and run it again, for at most ``patience_s``.

        Use this only for commands that change nothing, or that do no harm when they are carried out twice: Slurm may
        have carried out a command that it did not answer.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return self.run(*command, environment=environment)
            except SlurmUnavailableError:
                wait = self.breaker.wait_s(now := time.monotonic())
                if now + wait >= deadline:
                    raise
                time.sleep(wait)

    def record(self, command: Sequence[str], began: float, code: int | None) -> None:
        """Write a call to the call log.

        Args:
            began: When the program was started, by the monotonic clock.
            code: Exit code; None if Slurm did not answer.
        """
        duration_s = round(time.monotonic() - began, 3)
        self._call_log.append(SlurmCall(time.time(), self._purpose, command[0], duration_s, code))


def _environment(changes: Environment | None) -> dict[str, str] | None:
    """Return this process's environment with changes; None if there are none."""
    changed = {**os.environ, **(changes or {})}
    return None if changes is None else {name: value for name, value in changed.items() if value is not None}


def _memory_file(text: str) -> int:
    """Return a descriptor from which a text can be read."""
    descriptor = os.memfd_create("stdin")
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _read_memory_file(descriptor: int) -> str:
    """Return all that was written to a file in memory."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


def _error_text(program: str, text: str) -> str:
    """Return a program's error messages in one line, without its own name in front of each."""
    lines = (line.strip() for line in text.splitlines())
    start = f"{program}: "
    return "; ".join(line.removeprefix(start).removeprefix("error: ") for line in lines if line)
