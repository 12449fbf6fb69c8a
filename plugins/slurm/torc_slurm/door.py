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
from typing import Final

from attrs import define, field

from torc_framework.api import AllocationError
from torc_slurm.ledger import Call, Ledger

TIMEOUT_S: Final = 60.0
"""A program that has not answered after so long is given up; Slurm's own MessageTimeout is 10 s by default."""
FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 60.0
TRIPS_AFTER: Final = 4
"""So many failures in a row open the breaker."""

ILL: Final = (
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


class SlurmIllError(AllocationError):
    """Slurm does not answer at present; the same question may be asked again later."""


class SlurmMissingError(AllocationError):
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
class Breaker:
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
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (self.failures - 1))
        self.closed_until = now + wait * (0.75 + 0.5 * self.jitter())

    @property
    def is_open(self) -> bool:
        """It has failed so often that questions which can wait are not asked."""
        return self.failures >= TRIPS_AFTER


class Door:
    """Asks Slurm's programs.

    Args:
        purpose: Who asks, for the ledger of calls: ``watch``, ``runner``, ``cli``.
        ledger: Where calls are counted.
    """

    def __init__(self, purpose: str, ledger: Ledger | None = None) -> None:
        self._purpose, self._ledger = purpose, ledger or Ledger.of_user()
        self.breaker = Breaker()

    def ask(
        self,
        *command: str,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
        stdin: str | None = None,
    ) -> str:
        """Run a program once and return what it printed.

        Raises:
            SlurmIllError: it did not answer, or the breaker keeps it from being asked now.
            SlurmMissingError: there is no such program.
            SlurmRefusedError: it failed for a reason of its own.
        """
        now = time.monotonic()
        if wait := self.breaker.wait_s(now):
            raise SlurmIllError(f"Slurm did not answer {self.breaker.failures} time(s); asked again in {wait:.0f} s")
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
                env=None if environment is None else {**os.environ, **environment},
                stdin=subprocess.DEVNULL if stdin is None else None,
                input=stdin,
            )
        except FileNotFoundError:
            raise SlurmMissingError(
                f"there is no program {command[0]!r} here: is this a machine of a cluster?"
            ) from None
        except subprocess.TimeoutExpired:
            self._note(command, now, None)
            self.breaker.failed(time.monotonic())
            raise SlurmIllError(f"{command[0]} did not answer within {timeout_s:g} s") from None
        except OSError as error:
            raise SlurmMissingError(f"{command[0]!r} cannot be run: {error.strerror}") from None
        self._note(command, now, done.returncode)
        if done.returncode == 0:
            self.breaker.succeeded()
            return done.stdout
        words = _words(command[0], done.stderr or done.stdout)
        if any(part in words.lower() for part in ILL):
            self.breaker.failed(time.monotonic())
            raise SlurmIllError(f"Slurm does not answer {command[0]}: {words}")
        self.breaker.succeeded()
        raise SlurmRefusedError(command[0], done.returncode, words)

    def insist(self, *command: str, patience_s: float, environment: Mapping[str, str] | None = None) -> str:
        """Like `ask`, but while Slurm is ill wait and ask again, for at most ``patience_s``.

        Only for questions that change nothing, or of which a second one does no harm: a submission that was not
        answered may have been accepted.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return self.ask(*command, environment=environment)
            except SlurmIllError:
                wait = self.breaker.wait_s(now := time.monotonic())
                if now + wait >= deadline:
                    raise
                time.sleep(wait)

    def _note(self, command: Sequence[str], began: float, code: int | None) -> None:
        self._ledger.note(Call(time.time(), self._purpose, command[0], round(time.monotonic() - began, 3), code))


def _words(program: str, text: str) -> str:
    """Return a program's complaint in one line, without its own name in front of each line."""
    lines = (line.strip() for line in text.splitlines())
    start = f"{program}: "
    return "; ".join(line.removeprefix(start).removeprefix("error: ") for line in lines if line)
