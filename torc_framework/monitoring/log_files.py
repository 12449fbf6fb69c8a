"""Which files are the logs of a workflow, and how they are opened.

A path is made of the output directory that the record of a runner names, and of the file's name for an attempt, a
runner or an allocation; no part of it comes from a request. Below the output directory no link is followed, and only
regular files are opened, so that neither a link in a job's folder nor a pipe leads elsewhere or blocks.
"""

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.logs.attempt_location import AttemptFinder, LocatedAttempt
from torc_framework.models.attempt_logs import output_dir_of, runner_log_name
from torc_framework.models.records import ComputeNodeRecord, ResultRecord, ScheduledComputeNodeRecord
from torc_framework.models.runner_location import machine_of
from torc_framework.models.stdio import DELETED
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.overview import job_of
from torc_framework.monitoring.refusals import RefusedError

Stream = Literal["stdout", "stderr"]
STREAMS: Final[tuple[Stream, ...]] = ("stdout", "stderr")
MOST_ATTEMPTS: Final = 100
"""Latest attempts of a job that are listed."""
_SUFFIXES: Final = {"stdout": ".o", "stderr": ".e"}


@frozen
class WantedLog:
    """The log that a request is about: of an attempt, of a runner, or of an allocation.

    Attributes:
        node_id: A runner, of whose run ``run_id`` the log is wanted.
        allocation_id: The record of an allocation.
    """

    job_id: int | None = None
    run_id: int | None = None
    attempt_id: int | None = None
    node_id: int | None = None
    allocation_id: int | None = None
    stream: Stream = "stdout"


@frozen
class LogPlace:
    """Where a log is.

    Attributes:
        folder: The output directory.
        names: Folder and name below it.
        hostname: The machine that wrote it; None if that is not known.
        advice: What to say if the file does not exist.
    """

    folder: Path
    names: tuple[str, ...]
    hostname: str | None = None
    advice: str = ""

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.folder.joinpath(*self.names)


def attempts(context: WorkContext, client: TorcClient, workflow_id: int, job_id: int) -> dict[str, Any]:
    """Return the attempts of a job with their logs, as JSON values."""
    job = job_of(client, workflow_id, job_id)
    finder = AttemptFinder(client, job)
    results = {
        (each.run_id, each.attempt_id): each
        for each in client.iterate(ResultRecord, workflow_id=workflow_id, job_id=job_id, all_runs=True)
    }
    found = finder.attempts()
    return {
        "job_id": job_id,
        "job_name": job.name,
        "attempt_count": len(found),
        "attempts": [
            _attempt(finder.locate(state), results.get((state.run_id, state.attempt_id)), job_id)
            for state in found[-MOST_ATTEMPTS:]
        ],
    }


def _attempt(located: LocatedAttempt, result: ResultRecord | None, job_id: int) -> dict[str, Any]:
    state = located.state
    return {
        "run_id": state.run_id,
        "attempt_id": state.attempt_id,
        "status": state.status,
        "is_live": state.is_live,
        "compute_node_id": state.compute_node_id,
        "hostname": located.hostname,
        "is_here": located.is_here,
        "exit_class": state.exit_class,
        "result": result,
        "stdio": state.stdio.mode,
        "logs_deleted": state.has_deleted_logs,
        "logs": {name: _log(located, name) for name in STREAMS},
        "command": f"torc jobs logs {job_id} --run-id {state.run_id} --attempt {state.attempt_id}",
    }


def _log(located: LocatedAttempt, stream: Stream) -> dict[str, Any]:
    path: Path | None = getattr(located.logs, stream)
    if path is None:
        return {"path": None, "exists": False, "size": None, "note": located.state.stdio.not_kept(stream)}
    note = DELETED if located.state.has_deleted_logs else None
    if located.state.stdio.is_combined:
        note = "standard output and standard error are in one file (stdio: combined)"
    try:
        facts = path.lstat()
    except (OSError, ValueError):
        return {"path": str(path), "exists": False, "size": None, "note": note}
    return {"path": str(path), "exists": stat.S_ISREG(facts.st_mode), "size": facts.st_size, "note": note}


# --- the place of a log ---------------------------------------------------------------------------


def place_of(context: WorkContext, client: TorcClient, workflow_id: int, wanted: WantedLog) -> LogPlace:
    """Return where a log is.

    Raises:
        RefusedError: the request names none, or there is none (400, 404).
        ApiError: there is no such job, runner or allocation.
    """
    if wanted.job_id is not None:
        return _of_attempt(client, workflow_id, wanted)
    if wanted.node_id is not None:
        return _of_runner(client, workflow_id, wanted)
    if wanted.allocation_id is not None:
        return _of_allocation(context, client, workflow_id, wanted)
    raise RefusedError(400, "name the log: job, node or allocation")


def _of_attempt(client: TorcClient, workflow_id: int, wanted: WantedLog) -> LogPlace:
    job = job_of(client, workflow_id, wanted.job_id or 0)
    finder = AttemptFinder(client, job, wanted.run_id, wanted.attempt_id)
    located = finder.locate(finder.require_last())
    path: Path | None = getattr(located.logs, wanted.stream)
    if path is None:
        raise RefusedError(404, located.state.stdio.not_kept(wanted.stream))
    advice = DELETED if located.state.has_deleted_logs else f"torc jobs logs {job.id} --output-dir DIR reads a copy"
    if located.is_here and located.state.is_live:
        advice = "it has written nothing yet"
    return LogPlace(path.parent.parent, (path.parent.name, path.name), located.hostname, advice)


def _of_runner(client: TorcClient, workflow_id: int, wanted: WantedLog) -> LogPlace:
    node = client.get(ComputeNodeRecord, wanted.node_id or 0)
    folder = output_dir_of(node)
    if node.workflow_id != workflow_id or folder is None:
        raise RefusedError(404, f"workflow {workflow_id} has no runner {wanted.node_id} with a log")
    run_id = wanted.run_id or client.workflow_status(workflow_id).run_id
    return LogPlace(folder, (runner_log_name(node.hostname, workflow_id, run_id),), machine_of(node))


def _of_allocation(context: WorkContext, client: TorcClient, workflow_id: int, wanted: WantedLog) -> LogPlace:
    record = client.get(ScheduledComputeNodeRecord, wanted.allocation_id or 0)
    if record.workflow_id != workflow_id or record.scheduler_type != "slurm" or not record.batch_id.isdigit():
        raise RefusedError(404, f"workflow {workflow_id} has no allocation {wanted.allocation_id} with a log")
    name = f"slurm_output_wf{workflow_id}_sl{record.batch_id}{_SUFFIXES[wanted.stream]}"
    folders = _folders_of_allocation(client, workflow_id, record) or [context.output_dir]
    folder = next((each for each in folders if (each / name).is_file()), folders[0])
    advice = f"torc logs bundle {workflow_id} collects logs where they are"
    return LogPlace(folder, (name,), None, advice)


def _folders_of_allocation(client: TorcClient, workflow_id: int, record: ScheduledComputeNodeRecord) -> list[Path]:
    """Return the output directories of the workflow's runners, that of the allocation's own runner first."""
    found: dict[Path, bool] = {}
    for node in client.iterate(ComputeNodeRecord, workflow_id=workflow_id):
        described = node.scheduler if isinstance(node.scheduler, dict) else {}
        if (folder := output_dir_of(node)) is not None:
            found[folder] = found.get(folder, False) or described.get("scheduler_id") == record.id
    return sorted(found, key=lambda folder: not found[folder])


# --- opening --------------------------------------------------------------------------------------


@contextmanager
def open_log(place: LogPlace, reader: str | None) -> Iterator[int]:
    """Open a log; give its file descriptor.

    Args:
        reader: Name of a reader who is not the owner of this process: only what this account may read, or everyone.

    Raises:
        RefusedError: it does not exist here, is no regular file, or the reader may not read it.
    """
    try:
        descriptor = _open_below(place)
    except FileNotFoundError:
        raise RefusedError(404, _missing(place), path=str(place.path), hostname=place.hostname) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RefusedError(403, f"{place.path} cannot be read: {reason}", path=str(place.path)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RefusedError(403, f"{place.path} is no regular file", path=str(place.path))
        if reader is not None and not _may_read(place, descriptor, reader):
            raise RefusedError(403, f"{place.path} is for its owner to read", path=str(place.path))
        yield descriptor
    finally:
        os.close(descriptor)


def _missing(place: LogPlace) -> str:
    where = f"{place.path} does not exist"
    if place.hostname is not None and place.hostname != os.uname().nodename:
        where = f"the log is on {place.hostname}: {place.path}"
    return f"{where}; {place.advice}" if place.advice else where


def _open_below(place: LogPlace) -> int:
    """Open a file below its output directory without following links."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(place.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in place.names[:-1]:
            inner = os.open(name, os.O_PATH | os.O_DIRECTORY | flags, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(place.names[-1], os.O_RDONLY | os.O_NONBLOCK | flags, dir_fd=folder)
    finally:
        os.close(folder)


def _may_read(place: LogPlace, descriptor: int, reader: str) -> bool:
    """Return whether a file belongs to the account of this name, or everyone may read it on its way from the root."""
    facts = os.fstat(descriptor)
    try:
        if pwd.getpwnam(reader).pw_uid == facts.st_uid:
            return True
    except (KeyError, ValueError):
        pass
    folders = place.path.resolve().parents
    return bool(facts.st_mode & stat.S_IROTH) and all(each.stat().st_mode & stat.S_IXOTH for each in folders)
