"""Plugin that classifies exit codes 64 to 78 by ``sysexits.h``, for programs that follow it."""

from typing import Final

from torc_framework.api import (
    SYSEXITS,
    ExitClass,
    ExitObservation,
    ExitVerdict,
    accepts_clean_exits,
    classify_exit,
    hookimpl,
)

__version__ = "0.1.0"

PASSING: Final = {
    "EX_UNAVAILABLE": ExitClass.SERVICE_ERROR,
    "EX_OSERR": ExitClass.INFRA_ERROR,
    "EX_IOERR": ExitClass.INFRA_ERROR,
    "EX_TEMPFAIL": ExitClass.SERVICE_ERROR,
}
"""Classes of codes that are not errors of the user, by name; all others are."""


@accepts_clean_exits
@hookimpl
def torc_classify_exit(observation: ExitObservation) -> ExitVerdict | None:
    """Classify an exit of the program's own by its code; None for other endings."""
    if observation.exit_code not in SYSEXITS or classify_exit(observation).evidence != ("exit_code",):
        return None  # signal, limit, scheduler state and launch failure are better evidence than the code
    name, meaning = SYSEXITS[observation.exit_code]
    return ExitVerdict(PASSING.get(name, ExitClass.USER_ERROR), f"{name}: {meaning}", 0.9, ("exit_code",))
