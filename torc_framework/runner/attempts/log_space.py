"""Says whether there is room for logs."""

import os
import tempfile
from typing import Final

SURE_BYTES: Final = 64 << 20
"""With so much room or more nothing is tried: file systems keep some of what they call free for themselves."""
TRIAL_BYTES: Final = 4096


class LogSpace:
    """Tells whether the file system of a folder is full, by writing to it where that is not clear.

    Args:
        folder: The folder of the logs.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._tried: tuple[int, bool] | None = None
        """Free blocks at the last trial, and what it came to."""

    def is_full(self) -> bool:
        """Say whether a log cannot grow; False where nothing can be known."""
        try:
            seen = os.statvfs(self._folder)
        except OSError:
            return False
        if seen.f_bavail * seen.f_frsize >= SURE_BYTES:
            return False
        if self._tried is None or self._tried[0] != seen.f_bfree:
            self._tried = seen.f_bfree, self._try()
        return self._tried[1]

    def _try(self) -> bool:
        try:
            with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
                return file.write(bytes(TRIAL_BYTES)) < TRIAL_BYTES
        except OSError:
            return True
