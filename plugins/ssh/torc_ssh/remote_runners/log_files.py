"""The files of an output directory on a host: which belong to a workflow, and where they go on this machine."""

import hashlib
import os
import posixpath
import re
from pathlib import Path
from typing import Final

from attrs import define, field, frozen

from torc_framework.api import ContainedFolder
from torc_ssh.remote_runners.runner_process import RunnerFiles
from torc_ssh.session import HostSession, listed_files

_STATE_FOLDER: Final = ".torc_runner"
"""Folder for what has to survive a runner; it contains no logs."""
_PRIVATE: Final = re.compile(r"torc_worker_[0-9]+\.(tunnel|ca\.pem)(\.new)?")
"""Files beside the logs that are of no use on another machine."""
_WORKFLOW: Final = re.compile(
    r"(?:^|/)(?:[^/]*_wf|torc_worker_)(\d+)[_.][^/]*$|(?:^|/)resource_metrics_[^/]*_(\d+)_\d+\.db[^/]*$"
)
"""Names of files that name their workflow."""
_TORC_NAMES: Final = re.compile(
    r"job_stdio|resource_utilization|\.torc_runner|(torc_worker_|job_runner_|action_wf|slurm_|dmesg_slurm_).*"
)
"""Names that torc gives to what it puts in an output directory."""
_RECORD: Final = re.compile(r"torc_worker_(\d+)\.json")
DIGEST_BYTES: Final = 1 << 20


@frozen
class RemoteFile:
    """A file in the output directory on a host.

    Attributes:
        path: Its path, relative to the output directory.
        size: Its size in bytes.
        mtime_ns: When it was changed, in nanoseconds since the epoch.
    """

    path: str
    size: int
    mtime_ns: int


@define
class LogList:
    """What an output directory on a host contains.

    Attributes:
        files: The files of one workflow, and those of none.
        left_out: Names that are no files, or that would leave the local folder.
    """

    files: list[RemoteFile] = field(factory=list)
    left_out: list[str] = field(factory=list)


async def list_logs(session: HostSession, files: RunnerFiles, target: Path) -> LogList:
    """Return the files of a workflow in its output directory on a host.

    Args:
        session: The host.
        files: The runner's files.
        target: Folder on this machine that the files are meant for.

    Raises:
        HelperError: there is no such directory (kind ``not_found``), or it cannot be read.
    """
    found = LogList()
    for each in listed_files(await session.request("list", path=files.output_dir)):
        path = each.path
        if path.split("/")[0] == _STATE_FOLDER or _PRIVATE.fullmatch(path) or _is_of_other_workflow(path, files):
            continue
        if each.kind == "file" and local_path(target, path) is not None:
            found.files.append(RemoteFile(path, each.size, each.mtime_ns))
        elif each.kind != "dir":
            found.left_out.append(path)
    return found


def _is_of_other_workflow(path: str, files: RunnerFiles) -> bool:
    named = _WORKFLOW.search(path)
    return named is not None and int(named[1] or named[2]) != files.workflow_id


def local_path(folder: Path, relative: str) -> Path | None:
    """Return the path of a file below a folder; None if it would lie elsewhere, as ``../x``, ``/x`` or below a link."""
    try:
        path = ContainedFolder(folder).below(relative)
        ways = [path, *path.parents[: relative.count("/")]]
        return None if any(way.is_symlink() for way in ways) else path
    except OSError:  # `OutsideFolderError`, or a name that is too long
        return None


def partial_path(path: Path) -> Path:
    """Return the path of the incomplete copy of a file; the same at the next call."""
    return path.with_name(f".torc-part-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file on this machine."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while data := file.read(DIGEST_BYTES):
            digest.update(data)
    return digest.hexdigest()


@define
class OutputFolder:
    """The names at the top of an output directory on a host.

    Attributes:
        foreign: Names that torc does not make.
        workflow_ids: Workflows whose runners have a record there.
        is_torc: Something in it was made by torc.
    """

    foreign: list[str] = field(factory=list)
    workflow_ids: list[int] = field(factory=list)
    is_torc: bool = False

    @classmethod
    async def read(cls, session: HostSession, path: str) -> "OutputFolder":
        """Read the names from a host.

        Raises:
            HelperError: there is no such directory (kind ``not_found``), or it cannot be read.
        """
        found = cls()
        for each in listed_files(await session.request("list", path=path)):
            name = each.path
            if "/" in name:
                continue
            if not _TORC_NAMES.fullmatch(name):
                found.foreign.append(name)
            else:
                found.is_torc = True
            if record := _RECORD.fullmatch(name):
                found.workflow_ids.append(int(record[1]))
        return found


def host_path(files: RunnerFiles, relative: str) -> str:
    """Return the path of a file on the host."""
    return posixpath.join(files.output_dir, relative)
