"""Beginning a run of an existing workflow: what must be there is checked, then one call does it all."""

from torc_framework.cli.specs import modified, refuse_missing
from torc_framework.client import TorcClient
from torc_framework.models.records import FileRecord, UserDataRecord, WorkflowStatusRecord


def begin_run(client: TorcClient, workflow_id: int, *, force: bool = False) -> WorkflowStatusRecord:
    """Reset a workflow, count its run up and make it ready.

    Args:
        force: Also with input files or user data missing, and with jobs in a runner's hands.

    Raises:
        UserError: input files or user data are missing.
    """
    files = client.find(FileRecord, workflow_id=workflow_id)
    mtimes = {file.id: mtime for file in files if file.id and (mtime := modified(file.path)) is not None}
    if not force:
        refuse_missing(*_missing(client, workflow_id, files))
    return client.begin_run(workflow_id, file_mtimes=mtimes, force=force)


def refuse_if_missing(client: TorcClient, workflow_id: int) -> None:
    """Refuse to begin a run that lacks something.

    Raises:
        UserError: input files or user data are missing.
    """
    refuse_missing(*_missing(client, workflow_id, client.find(FileRecord, workflow_id=workflow_id)))


def _missing(client: TorcClient, workflow_id: int, files: list[FileRecord]) -> tuple[list[str], list[str]]:
    """Return paths of files and names of user data that no job of the coming run writes, and that are not there.

    A run begins with every job reset: what a completed job wrote will be written again.
    """
    required = set(client.required_existing_files(workflow_id))
    if required:
        required -= {file.id for file in client.iterate(FileRecord, workflow_id=workflow_id, is_output=True)}
    paths = [file.path for file in files if file.id in required and modified(file.path) is None]
    wanted = set(client.missing_user_data(workflow_id))
    if not wanted:
        return paths, []
    records = client.find(UserDataRecord, workflow_id=workflow_id)
    return paths, [record.name for record in records if record.id in wanted]
