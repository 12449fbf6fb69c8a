"""Jobs that call ``srun`` and get no step: what is observed of them, and the class of their endings.

An ``srun`` within a step waits for resources that the step itself holds, unless it has ``--overlap``; torc sets
``SLURM_OVERLAP`` for it. A job that removes the variable waits until its time limit. More time would not help it.
"""

import os
import re
import stat
from typing import Final

from attrs import evolve

from torc_framework.api import ExitClass, ExitObservation, ExitVerdict, StopReason

UNSTARTED_STEP: Final = "unstarted_step"
"""srun's message about a step that it could not create, in `ExitObservation.raw`."""
TAIL_BYTES: Final = 16 * 1024
"""How much of the end of an attempt's standard error is searched."""
_WAITS: Final = re.compile(
    r"^srun: (?:.*[Ss]tep creation (?:still )?(?:temporarily )?disabled|Cancelled pending job step\b).*", re.MULTILINE
)
"""What srun writes while it waits for a step, and at the end of the wait by a signal (Slurm 22.05.8)."""
_CREATED: Final = re.compile(r"^srun: Step created for ", re.MULTILINE)


def with_unstarted_step(seen: ExitObservation, stderr_path: str) -> ExitObservation:
    """Return the observation of an ended attempt, with srun's message if the attempt waited for a step in vain."""
    text = "" if seen.exit_code == 0 else _tail(stderr_path)
    waits = _WAITS.search(text)
    if waits is None or _CREATED.search(text):
        return seen
    return evolve(seen, raw={**seen.raw, UNSTARTED_STEP: waits[0]})


def classify(seen: ExitObservation) -> ExitVerdict | None:
    """Return the verdict on an attempt that waited for a step until its time limit; None for all others."""
    message = seen.raw.get(UNSTARTED_STEP)
    limit = "stop_reason" if seen.stop_reason is StopReason.RUNTIME_LIMIT else "scheduler_state"
    is_at_limit = seen.stop_reason is StopReason.RUNTIME_LIMIT or (
        seen.stop_reason is None and seen.scheduler_state == "TIMEOUT"
    )
    if not isinstance(message, str) or not is_at_limit:
        return None
    reason = (
        f"its srun got no step until the time limit ({message.removeprefix('srun: ')}): let it have --overlap, or keep "
        "SLURM_OVERLAP in its environment"
    )
    return ExitVerdict(ExitClass.LAUNCH_FAILURE, reason, 0.9, ("raw", limit))


def _tail(path: str) -> str:
    """Return the end of a log; empty if it cannot be read, or is no file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        known = os.fstat(descriptor)
        if not stat.S_ISREG(known.st_mode):
            return ""
        return os.pread(descriptor, TAIL_BYTES, max(0, known.st_size - TAIL_BYTES)).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
