"""The umask of the process, read without a change of it."""

import os
import re
from pathlib import Path
from typing import Final

_UMASK: Final = re.compile(rb"^Umask:\s*([0-7]+)$", re.MULTILINE)


def current_umask() -> int:
    """Return the umask.

    `os.umask` reads it only by setting another one, which files have that other threads create at that moment.
    """
    return umask_in(Path("/proc/self/status").read_bytes())


def umask_in(status: bytes) -> int:
    """Return the umask in the content of a file ``/proc/PID/status``."""
    found = _UMASK.search(status)
    if found is None:  # Linux before 4.7
        mask = os.umask(0o077)
        os.umask(mask)
        return mask
    return int(found[1], 8)
