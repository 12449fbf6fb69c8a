"""The identity of a runner: a later runner tells by it whether this one lives, and finds the files that it left."""

import fcntl
import os
from pathlib import Path
from typing import Any

from torc_framework.system.private_files import create_private
from torc_framework.system.process_identity import this_process

STATE_DIR = ".torc_runner"
"""Folder for what must survive a runner, within the output directory."""


class RunnerIdentity:
    """This process as a runner. It holds a lock on a file as long as it lives."""

    def __init__(self, output_dir: Path) -> None:
        stem = output_dir / STATE_DIR / f"runner_{os.uname().nodename}_p{os.getpid()}_{os.urandom(4).hex()}"
        self.spool_path = stem.with_suffix(".ends")
        self._lock_path = stem.with_suffix(".lock")
        self._lock = create_private(self._lock_path, os.O_RDWR)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def describe(self) -> dict[str, Any]:
        """Return the process, its machine, its lock and its spool file for the runner's record, as JSON values."""
        files = {"lock": str(self._lock_path), "spool": str(self.spool_path)}
        return {**this_process(), "machine": os.uname().nodename, **files}

    def close(self) -> None:
        """Remove the lock file, and the folder if it is empty."""
        self._lock_path.unlink(missing_ok=True)
        self.release()
        try:
            self._lock_path.parent.rmdir()
        except OSError:
            return  # other runners have files there

    def release(self) -> None:
        """Give up the lock, but leave the file for the runner that takes over."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
