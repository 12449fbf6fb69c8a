"""The only way to Slurm's programs: counted, patient with an ill controller, and never louder than need be.

Three kinds of trouble are told apart, because they have different answers. *Slurm is not here*: its programs
are missing. *The controller is ill*: it does not answer, or answers late; nothing is wrong with the
question, so it is asked again later, after ever longer rests (a circuit breaker). *Slurm refuses*: a bad
partition, a limit; asking again is useless, and its own words say why.
"""

import os
import random
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from attrs import define, field

from torc_framework.api import AllocationError
from torc_slurm.calls.call_log import CallLog, SlurmCall
from torc_slurm.processes.exit_descriptor import exit_descriptor

TIMEOUT_S: Final = 60.0
"""A program that has not answered after so long is given up; Slurm's own MessageTimeout is 10 s by default."""
FIRST_WAIT_S: Final = 1.0
MAX_WAIT_S: Final = 60.0
OPENS_AFTER: Final = 4
"""So many failures in a row open the breaker."""

UNAVAILABLE_MESSAGES: Final = (
    "unable to contact slurm controller",
    "socket timed out on send/recv",
    "connection refused",
    "connection timed out",
    "unable to connect to slurm daemon",
    "slurm backup controller in standby",
    "zero bytes were transmitted or received",
    "transport endpoint is not connected",
    "unexpected message received",
    "slurm_persist_conn_open",
    "slurmdbd:",
    "unable to establish controller machine",
    "resource temporarily unavailable",
    "unable to resolve",
    "try again later",
)
"""Parts of messages by which a controller or accounting daemon says that it cannot answer now (slurm_errno, manual
page of each program, "ENVIRONMENT VARIABLES" and "DIAGNOSTICS"), in small letters."""

Environment = Mapping[str, str | None]
"""Changes of this process's environment for a program; None takes a variable out."""


class SlurmUnavailableError(AllocationError):
    """Slurm does not answer at present; the same question may be asked again later."""


class SlurmNotInstalledError(AllocationError):
    """A program of Slurm is not installed here."""


class SlurmRefusedError(AllocationError):
    """Slurm said no; carries its own words.

    Attributes:
        code: Exit code of the program.
        words: What it wrote to standard error, without the program's name.
    """

    def __init__(self, program: str, code: int, words: str) -> None:
        self.code, self.words = code, words
        super().__init__(f"{program} failed with exit code {code}: {words}" if words else f"{program} failed: {code}")


@define
class CircuitBreaker:
    """Counts failures in a row, and says how long to leave Slurm alone.

    Attributes:
        failures: Calls in a row that were not answered.
        closed_until: No call before this time on the clock of `now`.
    """

    failures: int = 0
    closed_until: float = 0.0
    jitter: Callable[[], float] = field(default=random.random, repr=False)

    def wait_s(self, now: float) -> float:
        """Return how long to wait before the next call."""
        return max(0.0, self.closed_until - now)

    def succeeded(self) -> None:
        """Slurm answered."""
        self.failures, self.closed_until = 0, 0.0

    def failed(self, now: float) -> None:
        """Slurm did not answer: wait twice as long as last time, with some jitter so that many do not come at once."""
        self.failures += 1
        wait = min(MAX_WAIT_S, FIRST_WAIT_S * 2 ** (self.failures - 1))
        self.closed_until = now + wait * (0.75 + 0.5 * self.jitter())

    @property
    def is_open(self) -> bool:
        """It has failed so often that questions which can wait are not asked."""
        return self.failures >= OPENS_AFTER


class RunningCommand:
    """A program of Slurm that runs, and what it answers.

    Its descriptor can be read when it has ended, so that nobody has to wait for it.
    """

    def __init__(
        self,
        door: "SlurmCommands",
        command: Sequence[str],
        process: "subprocess.Popen[bytes]",
        files: tuple[int, int],
        limit_s: float,
    ) -> None:
        self._door, self.command, self._process, self._files = door, command, process, files
        self._began = time.monotonic()
        self._limit_s = limit_s
        self._descriptor: int | None = None

    def fileno(self) -> int:
        """Return a descriptor that can be read when the program has ended."""
        if self._descriptor is None:
            self._descriptor = exit_descriptor(self._process.pid)
        return self._descriptor

    @property
    def took_s(self) -> float:
        """How long ago it was asked."""
        return time.monotonic() - self._began

    @property
    def left_s(self) -> float:
        """How long the program may still take."""
        return max(0.0, self._limit_s - self.took_s)

    def answer(self) -> str:
        """Wait for the program, as long as it may take, and return what it printed.

        Raises:
            SlurmUnavailableError: it did not answer.
            SlurmRefusedError: it failed for a reason of its own.
        """
        program = self.command[0]
        try:
            code = self._process.wait(self.left_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self._door.note(self.command, self._began, None)
            self._door.breaker.failed(time.monotonic())
            raise SlurmUnavailableError(f"{program} did not answer within {self._limit_s:g} s") from None
        else:
            printed, complained = map(_read_memory_file, self._files)
        finally:
            self.close()
        words = _error_text(program, complained or printed) if code else ""
        is_unanswered = means_unavailable(words)
        self._door.note(self.command, self._began, None if is_unanswered else code)
        if code == 0:
            self._door.breaker.succeeded()
            return printed
        if is_unanswered:
            self._door.breaker.failed(time.monotonic())
            raise SlurmUnavailableError(f"Slurm does not answer {program}: {words}")
        self._door.breaker.succeeded()
        raise SlurmRefusedError(program, code, words)

    def outlast(self, seconds: float) -> None:
        """Wait so long for the program's end, and take no notice of its answer; it goes on if it takes longer."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def drop(self) -> None:
        """Ask no more: nobody wants to know."""
        self._process.kill()
        self._process.wait()
        self.close()

    def close(self) -> None:
        """Let go of what the question holds, once the program has ended."""
        for descriptor in (*self._files, self._descriptor):
            if descriptor is not None:
                os.close(descriptor)


class SlurmCommands:
    """Asks Slurm's programs.

    Args:
        purpose: Who asks, for the ledger of calls: ``watch``, ``runner``, ``cli``.
        ledger: Where calls are counted.
    """

    def __init__(self, purpose: str, ledger: CallLog | None = None) -> None:
        self._purpose, self._ledger = purpose, ledger or CallLog.of_user()
        self.breaker = CircuitBreaker()

    def begin(
        self,
        *command: str,
        environment: Environment | None = None,
        timeout_s: float = TIMEOUT_S,
        stdin: str | None = None,
        in_session: bool = False,
    ) -> RunningCommand:
        """Run a program once; its answer is taken from the question, when it is there.

        Args:
            environment: Changes of this process's environment; None takes a variable out.
            in_session: Run it in a session of its own, where neither a Ctrl-C at the terminal nor its end reaches it.

        Raises:
            SlurmUnavailableError: the breaker keeps it from being asked now.
            SlurmNotInstalledError: there is no such program.
        """
        if wait := self.breaker.wait_s(time.monotonic()):
            raise SlurmUnavailableError(
                f"Slurm did not answer {self.breaker.failures} time(s); asked again in {wait:.0f} s"
            )
        files = os.memfd_create("answer"), os.memfd_create("complaint")
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

    def ask(
        self,
        *command: str,
        environment: Environment | None = None,
        timeout_s: float = TIMEOUT_S,
        stdin: str | None = None,
    ) -> str:
        """Run a program once and return what it printed.

        Raises:
            SlurmUnavailableError: it did not answer, or the breaker keeps it from being asked now.
            SlurmNotInstalledError: there is no such program.
            SlurmRefusedError: it failed for a reason of its own.
        """
        return self.begin(*command, environment=environment, timeout_s=timeout_s, stdin=stdin).answer()

    def insist(self, *command: str, patience_s: float, environment: Environment | None = None) -> str:
        """Like `ask`, but while Slurm is ill wait and ask again, for at most ``patience_s``.

        Only for questions that change nothing, or of which a second one does no harm: a submission that was not
        answered may have been accepted.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return self.ask(*command, environment=environment)
            except SlurmUnavailableError:
                wait = self.breaker.wait_s(now := time.monotonic())
                if now + wait >= deadline:
                    raise
                time.sleep(wait)

    def note(self, command: Sequence[str], began: float, code: int | None) -> None:
        """Count a call that began at a time of the monotonic clock; None as code is one that was not answered."""
        self._ledger.note(SlurmCall(time.time(), self._purpose, command[0], round(time.monotonic() - began, 3), code))


def _environment(changes: Environment | None) -> dict[str, str] | None:
    """Return this process's environment with changes; None as value takes a variable out."""
    changed = {**os.environ, **(changes or {})}
    return None if changes is None else {name: value for name, value in changed.items() if value is not None}


def means_unavailable(words: str) -> bool:
    """Say whether a program's words mean that Slurm cannot answer now, though nothing is wrong with the question."""
    lowered = words.lower()
    return any(part in lowered for part in UNAVAILABLE_MESSAGES)


def _memory_file(text: str) -> int:
    """Return a descriptor from which a text can be read."""
    descriptor = os.memfd_create("question")
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _read_memory_file(descriptor: int) -> str:
    """Return all that was written to a file in memory."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


def _error_text(program: str, text: str) -> str:
    """Return a program's complaint in one line, without its own name in front of each line."""
    lines = (line.strip() for line in text.splitlines())
    start = f"{program}: "
    return "; ".join(line.removeprefix(start).removeprefix("error: ") for line in lines if line)
