"""Location in which this process can create control groups for memory."""

from __future__ import annotations

import glob
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from torc_framework.supervision.errors import SupervisionError
from torc_framework.supervision.supervisor import cgroups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torc_framework.supervision.supervisor.cgroups import Cgroup

PROC: Final = Path("/proc/self")
_TRIAL_BYTES: Final = 64 << 20


class CgroupsUnavailable(SupervisionError):  # noqa: N818 - a property of the machine, not an error
    """Control groups cannot be created; the message is the reason, ``fix`` the advice."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.fix = fix


class _Mount(NamedTuple):
    version: int
    root: str
    folder: str


def _mounts(mountinfo: str, controller: str) -> Iterator[_Mount]:
    """Yield the mounted hierarchies that can have a controller: those of version 1, then those of version 2."""
    rows = [line.split(" - ") for line in mountinfo.splitlines() if " - " in line]
    found = [(left.split(), right.split()) for left, right in rows]
    for version, kind in ((1, "cgroup"), (2, "cgroup2")):
        for left, right in found:
            if right[0] == kind and (version == 2 or controller in right[-1].split(",")):
                yield _Mount(version, left[3], left[4])


def _own_paths(text: str, controller: str) -> dict[int, str]:
    """Return the path of this process's group in the hierarchy of each version that can have a controller."""
    paths = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            paths[1] = path
        elif not controllers:
            paths[2] = path
    return paths


def own_cgroup(proc: Path = PROC, controller: str = "memory") -> Cgroup | None:
    """Return the group of this process that a controller acts on; None if there is none or it cannot be read.

    Args:
        proc: Folder with the files of this process.
        controller: ``memory`` or ``cpu``.
    """
    try:
        paths = _own_paths((proc / "cgroup").read_text(), controller)
        mounts = list(_mounts((proc / "mountinfo").read_text(), controller))
    except OSError:
        return None
    for mount in mounts:
        path = paths.get(mount.version)
        if path is None or (mount.version == 2 and 1 in paths):
            continue  # the controller belongs to version 1 then
        inner = os.path.relpath(path, mount.root) if mount.root != "/" else path.lstrip("/")
        folder = Path(mount.folder, "" if inner.startswith("..") else inner)
        if folder.is_dir():
            return mount.version, str(folder)
    return None


def find_parent(own: Cgroup | None) -> Cgroup:
    """Return the group in which groups of attempts can be created, after a trial.

    In version 1 it is the own group. In version 2 a group with processes cannot delegate the memory controller (Linux,
    "Control Group v2", No Internal Process Constraint), so that it is the nearest ancestor that does.

    Args:
        own: The group of this process.

    Raises:
        CgroupsUnavailable: there is no such group.
    """
    if own is None:
        raise CgroupsUnavailable(
            "the kernel shows no control groups for memory", "mount them (cgroup2 on /sys/fs/cgroup), or run elsewhere"
        )
    version, folder = own
    parent = folder if version == 1 else _delegating(Path(folder))
    trial = version, f"{parent}/torc_trial_{os.getpid()}_{os.urandom(4).hex()}"
    fix = "run as a user who may write there, or have it delegated"
    try:
        cgroups.create(trial, _TRIAL_BYTES)
    except OSError as error:
        raise CgroupsUnavailable(f"no control group can be made in {parent} ({error.strerror})", fix) from error
    try:
        if subprocess.run(
            cgroups.run_inside(trial, ["/bin/sh", "-c", "exit 0"]), stderr=subprocess.DEVNULL, check=False
        ).returncode:
            raise CgroupsUnavailable(f"no process can be put into a control group in {parent}", fix)
    finally:
        cgroups.remove(trial, None, kill=True)
    return version, parent


def find_by_prefix(home: Cgroup, prefix: str) -> list[Cgroup]:
    """Return the groups with a prefix in all places where a process of group ``home`` can have created them."""
    version, folder = home
    parents = (Path(folder), *Path(folder).parents) if version == 2 else (Path(folder),)
    return [(version, str(found)) for parent in parents for found in parent.glob(f"{glob.escape(prefix)}*")]


def _delegating(folder: Path) -> str:
    for candidate in (folder, *folder.parents):
        try:
            delegated = (candidate / "cgroup.subtree_control").read_text().split()
        except OSError:
            break  # above the root of the hierarchy
        if (
            "memory" in delegated
            and os.access(candidate, os.W_OK)
            and os.access(candidate / cgroups.MEMBERS_FILE, os.W_OK)
        ):
            return str(candidate)
    raise CgroupsUnavailable(
        f"no control group above {folder} delegates memory to this user",
        "start the runner with 'systemd-run --user --scope', which gives it a group within the user's own",
    )
