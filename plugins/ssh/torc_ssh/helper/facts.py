"""What the helper tells about its host: the user, the machine, and what it offers to processes."""

from __future__ import annotations

import os
import pwd
import sys
import time
from typing import Any

_NVIDIA_FOLDER = "/proc/driver/nvidia/gpus"
_NVIDIA_TIMEOUT_S = 20.0


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
        "cpus": usable_cpus(),
        "memory_bytes": usable_memory_bytes(),
        "gpus": gpus(),
        **clock(),
    }


def own_cgroup_folders(controller: str) -> list[str]:
    """Return the folders of this process's control group and of its ancestors, as far as they are mounted."""
    folders = []
    for line in read_text("/proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        root = f"/sys/fs/cgroup/{controllers}" if controllers else "/sys/fs/cgroup"
        while path:
            folders.append(root + path.rstrip("/"))
            path = "" if path == "/" else os.path.dirname(path)
    return folders


def usable_cpus() -> int:
    """Return the number of CPUs that processes may use: by affinity and by the quotas of control groups."""
    cpus = float(len(os.sched_getaffinity(0)))
    for folder in own_cgroup_folders("cpu"):
        words = read_text(f"{folder}/cpu.max").split()
        if len(words) != 2:
            words = [read_text(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        if words[0].isdigit() and words[1].isdigit() and int(words[1]):
            cpus = min(cpus, int(words[0]) / int(words[1]))
    return max(1, int(cpus))


def usable_memory_bytes() -> int:
    """Return the memory of the machine, or the smallest limit of the control groups where that is less."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for folder in own_cgroup_folders("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = read_text(f"{folder}/{name}").strip()
            if limit.isdigit():
                memory = min(memory, int(limit))
    return memory


def gpus() -> list[dict[str, str]]:
    """Return index, name and uuid of the NVIDIA GPUs; only those of ``CUDA_VISIBLE_DEVICES`` if it is set."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [{"index": each.strip(), "name": "", "uuid": ""} for each in visible.split(",") if each.strip()]
    if not os.path.isdir(_NVIDIA_FOLDER) and not _is_in_path("nvidia-smi"):
        return []
    import subprocess

    query = ["nvidia-smi", "--query-gpu=index,name,uuid", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            query, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=_NVIDIA_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[word.strip() for word in line.split(",")] for line in done.stdout.decode(errors="replace").splitlines()]
    return [dict(zip(("index", "name", "uuid"), row)) for row in rows if len(row) == 3 and row[0].isdigit()]


def _is_in_path(program: str) -> bool:
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return any(os.access(os.path.join(folder, program), os.X_OK) for folder in folders)
