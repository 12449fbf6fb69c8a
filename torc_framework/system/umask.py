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
    found = _UMASK.search(Path("/proc/self/status").read_bytes())
    if found is not None:
        return int(found[1], 8)
    mask = os.umask(0o077)  # Linux before 4.7
    os.umask(mask)
    return mask
