"""Names exit codes 64 to 78 as ``sysexits.h`` does, for programs that keep to it."""

from typing import Final

from torc_framework.api import SYSEXITS, ExitClass, ExitObservation, ExitVerdict, classify_exit, hookimpl

__version__ = "0.1.0"

PASSING: Final = {
    "EX_UNAVAILABLE": ExitClass.SERVICE_ERROR,
    "EX_OSERR": ExitClass.INFRA_ERROR,
    "EX_IOERR": ExitClass.INFRA_ERROR,
    "EX_TEMPFAIL": ExitClass.SERVICE_ERROR,
}
"""What is not the user's doing, by name; all others are errors of the user's."""


@hookimpl
def torc_classify_exit(observation: ExitObservation) -> ExitVerdict | None:
    """Say what the program meant by its code; no opinion on endings that were not its own."""
    if observation.exit_code not in SYSEXITS or classify_exit(observation).evidence != ("exit_code",):
        return None  # a signal, a limit, a scheduler's word or a missing start tells more than the code
    name, meaning = SYSEXITS[observation.exit_code]
    return ExitVerdict(PASSING.get(name, ExitClass.USER_ERROR), f"{name}: {meaning}", 0.9, ("exit_code",))
