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
    mtimes = {file.id: modified(file.path) for file in client.iterate(FileRecord, workflow_id=workflow_id) if file.id}
    if not force:
        missing_files, missing_data = missing(client, workflow_id)
        refuse_missing(missing_files, missing_data)
    found = {file_id: mtime for file_id, mtime in mtimes.items() if mtime is not None}
    return client.begin_run(workflow_id, file_mtimes=found, force=force)


def missing(client: TorcClient, workflow_id: int) -> tuple[list[str], list[str]]:
    """Return paths of files and names of user data that must be there before a run, and are not."""
    paths = [path for path in client.required_existing_files(workflow_id) if modified(path) is None]
    wanted = set(client.missing_user_data(workflow_id))
    if not wanted:
        return paths, []
    records = client.iterate(UserDataRecord, workflow_id=workflow_id)
    return paths, [record.name for record in records if record.id in wanted]
