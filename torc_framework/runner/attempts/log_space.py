"""Detects a full file system under the logs of attempts."""

import os
import tempfile
import time
from typing import Final

SURE_BYTES: Final = 64 << 20
"""With this much free space no write is tried. File systems reserve a part of what they report as free."""
TRIAL_BYTES: Final = 4096
KNOWN_FOR_S: Final = 0.02
"""How long an answer about enough space holds, so that ends that arrive together need one system call."""


class LogSpace:
    """Finds out whether the file system of a folder is full, by a trial write if little space is left.

    Args:
        folder: The folder of the logs.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._enough_until = 0.0
        self._tried: tuple[int, bool] | None = None
        """Free blocks at the last trial, and whether the file system was full then."""

    def is_full(self) -> bool:
        """Return whether a log cannot grow; False if that cannot be found out."""
        now = time.monotonic()
        if now < self._enough_until:
            return False
        try:
            seen = os.statvfs(self._folder)
        except OSError:
            return False
        if seen.f_bavail * seen.f_frsize >= SURE_BYTES:
            self._enough_until = now + KNOWN_FOR_S
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
