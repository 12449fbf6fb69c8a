"""Termination reasons of IBM Spectrum LSF and their exit classes.

Source: IBM Spectrum LSF, "Termination reasons displayed by bacct, bhist and bjobs".
"""

from collections.abc import Mapping
from typing import Final

from torc_framework.models.exits import ExitClass

_C = ExitClass
LSF_REASONS: Final[Mapping[str, tuple[int, ExitClass]]] = {
    "TERM_PREEMPT": (1, _C.PREEMPTED),
    "TERM_WINDOW": (2, _C.TIMEOUT),
    "TERM_LOAD": (3, _C.EVICTED),
    "TERM_RUNLIMIT": (5, _C.TIMEOUT),
    "TERM_DEADLINE": (6, _C.TIMEOUT),
    "TERM_PROCESSLIMIT": (7, _C.USER_ERROR),
    "TERM_FORCE_OWNER": (8, _C.CANCELED),
    "TERM_FORCE_ADMIN": (9, _C.CANCELED),
    "TERM_REQUEUE_OWNER": (10, _C.CANCELED),
    "TERM_REQUEUE_ADMIN": (11, _C.CANCELED),
    "TERM_CPULIMIT": (12, _C.TIMEOUT),
    "TERM_OWNER": (14, _C.CANCELED),
    "TERM_ADMIN": (15, _C.CANCELED),
    "TERM_MEMLIMIT": (16, _C.OOM),
    "TERM_EXTERNAL_SIGNAL": (17, _C.SIGNALED),
    "TERM_ZOMBIE": (19, _C.ORPHANED),
    "TERM_SWAP": (20, _C.OOM),
    "TERM_THREADLIMIT": (21, _C.USER_ERROR),
    "TERM_CWD_NOTEXIST": (25, _C.LAUNCH_FAILURE),
    "TERM_PRE_EXEC_FAIL": (28, _C.PREFLIGHT),
    "TERM_DATA": (29, _C.SERVICE_ERROR),
    "TERM_RC": (34, _C.PREEMPTED),
}
"""Number and class by termination reason of LSF."""
