"""The start of a run of an existing workflow: its inputs are checked, then one request begins the run."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import typer
from attrs import evolve, frozen

from torc_framework.cli.commands.running.file_places import EVERYWHERE_HERE, FilePlaces
from torc_framework.cli.commands.running.spec_loading import modification_time, refuse_missing
from torc_framework.cli.shared.session import Session
from torc_framework.client import TorcClient
from torc_framework.errors import TorcError, UserError
from torc_framework.models.records import FileRecord, UserDataRecord, WorkflowRecord, WorkflowStatusRecord
from torc_framework.models.responses import Reinitialized
from torc_framework.models.statuses import LIVE, UNSUCCESSFUL
from torc_framework.text.quantities import count_text
from torc_framework.text.status_text import STATUS_LOOKS


@frozen
class RunInputs:
    """Files and user data of a workflow, as found before a run.

    Attributes:
        mtimes: Modification times of its files by id; None for a file that does not exist.
        missing_files: Paths of files that jobs read whose files this machine sees, that no job writes, and that do not
            exist.
        missing_user_data: Names of user data that jobs read, that no job writes, and that have no value.
    """

    files: list[FileRecord]
    mtimes: dict[int, float | None]
    missing_files: list[str]
    missing_user_data: list[str]

    def refuse(self, *, force: bool = False) -> None:
        """Refuse to begin a run whose inputs are missing; with ``force`` only warn.

        Raises:
            UserError: input files or user data are missing.
        """
        try:
            refuse_missing(self.missing_files, self.missing_user_data)
        except UserError as error:
            if not force:
                raise
            typer.echo(f"Warning: {error}", err=True)


def inspect_run_inputs(client: TorcClient, workflow_id: int, places: FilePlaces = EVERYWHERE_HERE) -> RunInputs:
    """Check a workflow's files and user data; relative paths count from the current folder."""
    files = client.find(FileRecord, workflow_id=workflow_id)
    mtimes = {file.id: modification_time(file.path) for file in files if file.id is not None}
    gone = [file for file in files if file.id is not None and mtimes[file.id] is None]
    if gone:
        made = {file.id for file in client.iterate(FileRecord, workflow_id=workflow_id, is_output=True)}
        read = set(client.required_existing_files(workflow_id)) - made
        missing = places.read_here(client, workflow_id, read.intersection(file.id or 0 for file in gone))
        gone = [file for file in gone if file.id in missing]
    return RunInputs(files, mtimes, [file.path for file in gone], _missing_user_data(client, workflow_id))


def _missing_user_data(client: TorcClient, workflow_id: int) -> list[str]:
    """Return names of user data without a value that jobs read and no job writes."""
    wanted = set(client.missing_user_data(workflow_id))
    if wanted:
        relations = client.job_user_data_relationships(workflow_id)
        wanted -= {each.user_data_id for each in relations if each.producer_job_id is not None}
    if not wanted:
        return []
    records = client.find(UserDataRecord, workflow_id=workflow_id)
    return [record.name for record in records if record.id in wanted]


def begin_run(
    client: TorcClient,
    workflow_id: int,
    inputs: RunInputs | None = None,
    *,
    places: FilePlaces = EVERYWHERE_HERE,
    force: bool = False,
) -> WorkflowStatusRecord:
    """Reset a workflow, begin its next run and make its jobs ready.

    Args:
        inputs: Its inputs, if the caller has checked them.
        places: Of which jobs this machine sees the files.
        force: Begin also if inputs are missing, and if runners hold jobs.

    Raises:
        UserError: input files or user data are missing.
    """
    if inputs is None:
        inputs = inspect_run_inputs(client, workflow_id, places)
        inputs.refuse(force=force)
    existing = {file_id: mtime for file_id, mtime in inputs.mtimes.items() if mtime is not None}
    return client.begin_run(workflow_id, file_mtimes=existing, force=force)


def rerun(
    client: TorcClient,
    workflow_id: int,
    places: FilePlaces,
    *,
    dry_run: bool = False,
    force: bool = False,
    reset: Literal["all", "failed"] | None = None,
) -> Reinitialized:
    """Begin a run of the jobs whose inputs changed; return which jobs run again, and why.

    Args:
        places: Of which jobs this machine sees the files.
        reset: Jobs that run again whether or not their inputs changed.

    Raises:
        UserError: input files or user data are missing.
    """
    inputs = inspect_run_inputs(client, workflow_id, places)
    inputs.refuse(force=force)
    return client.reinitialize(workflow_id, inputs.mtimes, dry_run=dry_run, force=force, reset=reset)


def retry_failed_jobs(session: Session, source: int | Path, executor: str) -> None:
    """Make a workflow's failed, canceled and terminated jobs ready, and what follows them; print how many.

    The workflow is no longer canceled after that. Nothing is changed if no job failed or was canceled.

    Args:
        session: The session of the command.
        source: Id of the workflow; the path of a spec is refused.
        executor: Executor of the run that follows.

    Raises:
        UserError: the source is a spec, a runner works on the workflow, or inputs are missing.
    """
    if isinstance(source, Path):
        raise _spec_cannot_be_retried(session, source)
    client, workflow_id = session.client, source
    counts = client.job_counts(workflow_id).counts
    found = {status.label: count for status in UNSUCCESSFUL if (count := counts.get(status.label, 0))}
    if not found and not client.workflow_status(workflow_id).is_canceled:
        typer.echo(f"No job of workflow {workflow_id} has failed or was canceled.", err=True)
        return
    held = sum(counts.get(status.label, 0) for status in LIVE)
    if held:
        raise UserError(
            f"runners hold {count_text(held, 'job')} of workflow {workflow_id}; failed jobs can be retried when these "
            f"have ended. 'torc watch {workflow_id}' follows them; if their runner is gone, 'torc run {workflow_id}' "
            "takes them over"
        )
    rerun(client, workflow_id, FilePlaces.of(session, executor), reset="failed")
    listed = ", ".join(f"{count:,} {STATUS_LOOKS[label].word}" for label, count in found.items())
    total = sum(found.values())
    if total:
        typer.echo(f"{count_text(total, 'job')} {'runs' if total == 1 else 'run'} again: {listed}", err=True)
    else:
        typer.echo(f"Workflow {workflow_id} is no longer canceled.", err=True)


def _spec_cannot_be_retried(session: Session, path: Path) -> UserError:
    """Return the error that refuses to retry failed jobs of a spec, with the command for its newest workflow."""
    from torc_framework.spec import load_spec

    newest = None
    with suppress(TorcError):
        name = load_spec(path).name
        mine = session.client.iterate(WorkflowRecord, user=session.user)
        newest = max((each.id or 0 for each in mine if each.name == name), default=None)
    command = f"torc run {newest or 'ID'} --retry-failed"
    which = f"the newest workflow of {path}" if newest else "a workflow"
    return UserError(
        f"--retry-failed takes the id of a workflow, and 'torc run {path}' creates a new one; "
        f"'{command}' retries the failed jobs of {which}"
    )


def stale_outputs(client: TorcClient, workflow_id: int, inputs: RunInputs) -> list[str]:
    """Return paths of existing files that jobs will write, without those that their own job also reads."""
    existing = {file_id for file_id, mtime in inputs.mtimes.items() if mtime is not None}
    if not existing:
        return []
    written = {file.id for file in client.iterate(FileRecord, workflow_id=workflow_id, is_output=True)} & existing
    if written:
        relations = client.job_file_relationships(workflow_id)
        written -= {each.file_id for each in relations if each.producer_job_id in (None, each.consumer_job_id)}
    paths = [file.path for file in inputs.files if file.id in written]
    return [path for path in paths if not Path(path).is_dir()]


def delete_outputs(paths: Sequence[str], inputs: RunInputs) -> RunInputs:
    """Delete files; return the inputs without their modification times.

    Raises:
        UserError: a file cannot be deleted.
    """
    for path in paths:
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"cannot delete output file {path}: {error.strerror}; no run was begun") from None
    gone = {file.id for file in inputs.files if file.path in set(paths)}
    return evolve(inputs, mtimes={file_id: None if file_id in gone else at for file_id, at in inputs.mtimes.items()})
