"""What the helper tells about its host: the user, the machine, and what it offers to processes."""

from __future__ import annotations

import importlib
import os
import pwd
import sys
import time
from typing import Any


def read_text(path: str) -> str:
    """Return the text of a small file, "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""


def boot_id() -> str:
    """Return the id of the present boot of the machine."""
    return read_text("/proc/sys/kernel/random/boot_id").strip()


def home_folder() -> str:
    """Return the user's home folder: that of the environment, else that of the user database."""
    return os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir


def clock() -> dict[str, float]:
    """Return the time in seconds since the epoch, and the seconds of the monotonic clock."""
    return {"time": time.time(), "monotonic": time.monotonic()}


def facts() -> dict[str, Any]:
    """Return all that is known of the host."""
    machine = importlib.import_module("torc_framework.supervision.machine")
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return {
        "python": sys.executable,
        "version": "{}.{}.{}".format(*sys.version_info[:3]),
        "hostname": os.uname().nodename,
        "boot_id": boot_id(),
        "user": user,
        "uid": os.getuid(),
        "home": home_folder(),
        "cwd": os.getcwd(),
        "pid": os.getpid(),
        "cpus": machine.usable_cpus(),
        "memory_bytes": machine.memory_bytes(),
        "gpus": machine.visible_gpus(),
        **clock(),
    }
