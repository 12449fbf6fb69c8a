"""Errors of calls of Slurm's programs, and the messages by which a program reports that Slurm is unavailable.

Three kinds of failure are distinguished, because they have different remedies:

- `SlurmNotInstalledError`: the program is missing on this machine.
- `SlurmUnavailableError`: the controller or the accounting daemon does not answer. The command itself is right, so it
  may be run again later, after growing pauses (`torc_slurm.calls.circuit_breaker`).
- `SlurmRefusedError`: Slurm rejects the command, for example because of a wrong partition or a limit. Running it again
  has the same result; Slurm's own message gives the reason.
"""

from typing import Final

from torc_framework.api import AllocationError

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
"""Parts of the messages that report an unavailable controller or accounting daemon, in lower case. Sources: Slurm's
``slurm_errno.c`` and the section DIAGNOSTICS of each program's manual page."""


class SlurmUnavailableError(AllocationError):
    """Slurm does not answer at present; the same command may be run again later."""


class SlurmNotInstalledError(AllocationError):
    """A program of Slurm is not installed on this machine, or cannot be executed."""


class SlurmRefusedError(AllocationError):
    """Slurm refused a command.

    Attributes:
        code: Exit code of the program.
        message: What the program wrote to standard error, without its own name in front.
    """

    def __init__(self, program: str, code: int, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(
            f"{program} failed with exit code {code}: {message}" if message else f"{program} failed: {code}"
        )


def means_unavailable(message: str) -> bool:
    """Return whether a program's message reports that Slurm is unavailable at present."""
    lowered = message.lower()
    return any(part in lowered for part in UNAVAILABLE_MESSAGES)
