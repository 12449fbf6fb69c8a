"""Identifies a process of this machine, so that another process can tell later whether it still lives."""

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torc_framework.models.records import ComputeNodeRecord
from torc_framework.models.runner_location import machine_of
from torc_framework.models.runner_states import runner_state
from torc_framework.supervision.processes import process_start
from torc_framework.supervision.supervisor import boot_id


def machine_id() -> str:
    """Return the id of this installation of the system, or "" if it has none."""
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""


def this_process() -> dict[str, Any]:
    """Return what distinguishes this process from every other, as JSON values."""
    return {
        "pid": os.getpid(),
        "pid_start": process_start(os.getpid()),
        "boot_id": boot_id(),
        "machine_id": machine_id(),
    }


def is_gone(described: Mapping[str, Any]) -> bool:
    """Return whether a process of this machine is certainly dead; False in case of doubt.

    Args:
        described: What `this_process` returned in that process; with ``lock`` the path of a file that the process
            holds locked as long as it lives.
    """
    pid, boot, machine = described.get("pid"), described.get("boot_id"), described.get("machine_id")
    if not isinstance(pid, int) or not boot or (machine and machine != machine_id()):
        return False
    if boot == boot_id() and process_start(pid) == described.get("pid_start"):
        return False
    lock = described.get("lock")
    return lock is None or not _is_locked(Path(str(lock)))


def is_dead_runner(node: ComputeNodeRecord) -> bool:
    """Return whether a runner is a process of this machine that is certainly dead, by its process alone."""
    described: Mapping[str, Any] = node.scheduler if isinstance(node.scheduler, dict) else {}
    return machine_of(node) == os.uname().nodename and is_gone(described)


def known_runner_state(node: ComputeNodeRecord, now: float) -> str:
    """Return what a runner does at ``now``, seconds since the epoch: `runner_state`, or ``lost`` if it is dead."""
    return "lost" if node.is_active and is_dead_runner(node) else runner_state(node, now)


def _is_locked(path: Path) -> bool:
    """Return whether a living process holds the lock: it may be in another container, whose pids are not visible."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
