"""Bundles: the logs of a run in one compressed file."""

import io
import json
import os
import re
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from attrs import Factory, frozen

from torc_framework.errors import UserError
from torc_framework.logs.bundle_metadata import METADATA
from torc_framework.logs.log_names import LogName, read_name
from torc_framework.logs.log_sources import open_log, walk
from torc_framework.system.umask import current_umask

_SECRET: Final = re.compile(
    rb"(?im)^((?:export +|declare -x +)?[a-z0-9_]*"
    rb"(?:password|passwd|secret|token|credential|api_url|_key|_keys)[a-z0-9_]*)=.*$"
)
_MAX_ENVIRONMENT_BYTES: Final = 1 << 22


@frozen
class SkippedFile:
    """A file that was left out, and why."""

    file: str
    reason: str


@frozen
class Bundle:
    """A bundle that was written.

    Attributes:
        skipped: Files with the name of a log that were left out.
    """

    path: str
    workflow_id: int | None
    files: int
    size_bytes: int
    skipped: list[SkippedFile] = Factory(list)


def logs_in(folder: Path, workflow_id: int | None, skipped: list[tuple[str, str]]) -> list[tuple[Path, LogName]]:
    """Return the logs of one workflow or of all below a folder; see `walk` for ``skipped``."""
    found = ((path, read_name(path.name)) for path in walk(folder, skipped))
    return [
        (path, name)
        for path, name in found
        if name is not None and name.workflow_id is not None and workflow_id in (None, name.workflow_id)
    ]


def bundle(
    folder: Path, target: Path | None, *, workflow_id: int | None = None, facts: Mapping[str, Any] | None = None
) -> Bundle:
    """Write a bundle of the logs below a folder; the file gets its name once it is complete.

    Links are not followed, since their targets may be private files. In files of environment variables, values of
    variables whose names look like secrets are hidden.

    Args:
        target: The file, or the folder for ``wfID.tar.gz``; None is the current folder.
        workflow_id: Only logs of this workflow.
        facts: Facts about the workflow for the bundle's metadata.

    Raises:
        UserError: there are no logs, or the file cannot be written.
    """
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; name that of the run with --output-dir")
    skipped: list[tuple[str, str]] = []
    logs = logs_in(folder, workflow_id, skipped)
    if not logs:
        of = "" if workflow_id is None else f" of workflow {workflow_id}"
        raise UserError(f"there are no logs{of} in {folder}; name the folder of the run with --output-dir")
    workflows = sorted({name.workflow_id for _, name in logs if name.workflow_id is not None})
    stem = f"wf{workflows[0]}" if len(workflows) == 1 else folder.resolve().name or "logs"
    path = _target(target, f"{stem}.tar.gz")
    metadata = {
        "format": 1,
        "collected_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "workflow_ids": workflows,
        "files": len(logs),
        **(facts or {}),
    }
    try:
        unread = _write(path, stem, folder, logs, metadata)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    only = workflows[0] if len(workflows) == 1 else None
    left_out = [*(SkippedFile(*each) for each in skipped), *unread]
    return Bundle(str(path), only, len(logs) - len(unread), path.stat().st_size, left_out)


def _target(given: Path | None, name: str) -> Path:
    if given is None:
        return Path(name)
    return given / name if given.is_dir() else given


def _write(
    path: Path, stem: str, folder: Path, logs: Sequence[tuple[Path, LogName]], metadata: Mapping[str, Any]
) -> list[SkippedFile]:
    """Write the bundle; return the logs that could not be opened."""
    skipped: list[SkippedFile] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name_of_unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    unfinished = Path(name_of_unfinished)
    try:
        with os.fdopen(handle, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz", compresslevel=6) as archive:
            _add(archive, f"{stem}/{METADATA}", (json.dumps(metadata, indent=2, default=str) + "\n").encode())
            for log, name in logs:
                inside = f"{stem}/{log.relative_to(folder).as_posix()}"
                try:
                    file = open_log(log)
                except OSError as error:
                    skipped.append(SkippedFile(str(log), error.strerror or str(error)))
                    continue
                with file:
                    if name.kind == "environment":
                        content = file.read(_MAX_ENVIRONMENT_BYTES)
                        _add(archive, inside, _SECRET.sub(rb"\1=(hidden)", content))
                    else:
                        _add_file(archive, inside, file)
        unfinished.chmod(0o644 & ~current_umask())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return skipped


def _entry(name: str, size: int, mtime: float) -> tarfile.TarInfo:
    """Return an entry without the user and group of this process."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = size, int(mtime), 0o644
    return entry


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    archive.addfile(_entry(name, len(content), time.time()), io.BytesIO(content))


def _add_file(archive: tarfile.TarFile, name: str, log: IO[bytes]) -> None:
    """Add a log at its present length, also if it is still being written."""
    state = os.fstat(log.fileno())
    archive.addfile(_entry(name, state.st_size, state.st_mtime), _PaddedFile(log))


class _PaddedFile(io.RawIOBase):
    """A file that is padded with newlines if it becomes shorter while it is read: tarfile needs the announced size."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner

    def read(self, size: int = -1) -> bytes:
        """Return as many bytes as asked for."""
        content = self._inner.read(size)
        return content + b"\n" * (size - len(content))
