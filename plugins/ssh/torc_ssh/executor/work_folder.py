"""The working folder of a workflow on a host, and where the files of this machine are there."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from attrs import frozen

from torc_framework.api import RunnerContext

LOG_FOLDER: Final = ".torc_logs"
"""Folder within the working folder for logs that are not home yet."""
OUTPUT_FOLDER: Final = "torc_output"
"""Folder within the working folder that ``TORC_OUTPUT_DIR`` names."""
DEPTH: Final = 3
"""So many folders above the working folder are copied too, so that `../data/x` is a path within the root."""


class UnmappedPathError(ValueError):
    """A path that no file of the host can stand for."""


@frozen
class WorkFolder:
    """Maps paths of this machine to paths of a host.

    A relative path is relative to the working folder on both. An absolute path is the same on both. With a shared
    folder every path is the same.

    Attributes:
        local: Absolute path of the working folder here.
        remote: Absolute path of the working folder on the host.
        root: Absolute path of the folder on the host that holds everything of this workflow.
        is_shared: Both are the same folder.
    """

    local: str
    remote: str
    root: str
    is_shared: bool = False

    def paths(self, path: str) -> tuple[str, str]:
        """Return the absolute paths, here and on the host, of a file that a spec names.

        Raises:
            UnmappedPathError: the path leaves the root by ``..``.
        """
        if "\0" in path:
            raise UnmappedPathError(f"path {path!r} contains a null character")
        here = os.path.normpath(os.path.join(self.local, path))  # noqa: PTH118 - Path does not remove '..'
        if self.is_shared or os.path.isabs(path):  # noqa: PTH117 - called for each file of each job
            return here, here
        there = os.path.normpath(os.path.join(self.remote, path))  # noqa: PTH118 - as above
        if not there.startswith(self.root + "/"):
            raise UnmappedPathError(
                f"path {path!r} is more than {DEPTH} folders above the working folder; write it as an absolute path"
            )
        return here, there

    def shown(self, path: str) -> str:
        """Return the path of a file of this machine for people: relative to the working folder if it is below."""
        return path.removeprefix(self.local.rstrip("/") + "/")

    def log(self, path: str) -> str:
        """Return the path on the host of a log file of this machine; the null device is the same everywhere."""
        return (
            path if self.is_shared or path == os.devnull else f"{self.remote}/{LOG_FOLDER}/{PurePosixPath(path).name}"
        )

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a job as they are right on the host."""
        environment = dict(given)
        if self.is_shared:
            return environment
        if "TORC_OUTPUT_DIR" in environment:
            environment["TORC_OUTPUT_DIR"] = f"{self.remote}/{OUTPUT_FOLDER}"
        if password_file := environment.pop("TORC_PASSWORD_FILE", ""):
            environment["TORC_PASSWORD"] = Path(password_file).read_text(encoding="utf-8").strip("\r\n")
        return environment


def work_folder(context: RunnerContext, remote_dir: str, home: str, *, is_shared: bool) -> WorkFolder:
    """Return the working folder of a workflow on a host with this home folder.

    The last folders of the local path are repeated below the root, so that relative paths with ``..`` stay inside.
    """
    local = context.working_dir
    if is_shared:
        return WorkFolder(local, local, local, is_shared=True)
    place = "\0".join((context.hostname, context.output_dir, local))
    digest = hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:10]
    parent = os.path.normpath(os.path.join(home, remote_dir))  # noqa: PTH118 - Path does not remove '..'
    root = f"{parent}/wf{context.workflow_id}_{digest}"
    return WorkFolder(local, "/".join((root, *Path(local).parts[1:][-DEPTH:])), root)
