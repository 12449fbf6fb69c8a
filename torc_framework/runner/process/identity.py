"""Who a runner is, so that a later one can tell whether it still lives and what it left behind."""

import fcntl
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torc_framework.models.records import ComputeNodeRecord
from torc_framework.runner.process import machine
from torc_framework.system.private_files import open_private

STATE_DIR = ".torc_runner"
"""Folder for what must survive a runner, within the output directory."""


class RunnerIdentity:
    """This process as a runner. Holds a lock on a file as long as it lives."""

    def __init__(self, output_dir: Path) -> None:
        folder = output_dir / STATE_DIR
        folder.mkdir(parents=True, exist_ok=True)
        stem = folder / f"runner_{os.uname().nodename}_p{os.getpid()}_{secrets.token_hex(4)}"
        self.spool_path = stem.with_suffix(".ends")
        self._lock_path = stem.with_suffix(".lock")
        self._lock = open_private(self._lock_path, os.O_RDWR)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def describe(self) -> dict[str, Any]:
        """Return what `is_gone` needs to know, as JSON values."""
        return {**this_process(), "lock": str(self._lock_path), "spool": str(self.spool_path)}

    def close(self) -> None:
        """Remove the lock file, and the folder if nothing else needs it."""
        self._lock_path.unlink(missing_ok=True)
        self.release()
        try:
            self._lock_path.parent.rmdir()
        except OSError:
            return  # others use it

    def release(self) -> None:
        """Give up the lock but leave the file to whoever settles what is left."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def this_process() -> dict[str, Any]:
    """Return what tells this process from every other, as JSON values."""
    return {
        "pid": os.getpid(),
        "pid_start": machine.process_start(os.getpid()),
        "boot_id": machine.boot_id(),
        "machine_id": machine.machine_id(),
    }


def is_dead(node: ComputeNodeRecord) -> bool:
    """Say whether a runner is a process of this machine that is certainly dead, whatever its record says."""
    described: Mapping[str, Any] = node.scheduler if isinstance(node.scheduler, dict) else {}
    return node.hostname == os.uname().nodename and is_gone(described)


def is_gone(described: Mapping[str, Any]) -> bool:
    """Say whether a process of this machine is certainly dead; False whenever in doubt."""
    pid, boot, machine_id = described.get("pid"), described.get("boot_id"), described.get("machine_id")
    if not isinstance(pid, int) or not boot or (machine_id and machine_id != machine.machine_id()):
        return False
    if boot == machine.boot_id() and machine.process_start(pid) == described.get("pid_start"):
        return False
    lock = described.get("lock")
    return lock is None or not _is_locked(Path(str(lock)))


def _is_locked(path: Path) -> bool:
    """Say whether a living process holds the lock: perhaps one of another container, whose pids we do not see."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
