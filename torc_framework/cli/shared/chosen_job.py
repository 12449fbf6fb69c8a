"""The job that a command line names: ``--job NAME|ID``, and the workflow in whose place an id of a job was given."""

from typing import Final

from torc_framework.cli.shared.session import Session
from torc_framework.errors import ApiError, UserError, suggestion
from torc_framework.models.records import JobRecord, WorkflowRecord

MOST_SEARCHED: Final = 100
"""Most of a user's workflows in which a job is searched by its name alone."""


def require_workflow(session: Session, workflow_id: int, command: str) -> WorkflowRecord:
    """Return a workflow.

    Args:
        command: The command, as it is typed, for the hint that a job has this id.

    Raises:
        ApiError: there is no such workflow.
        UserError: there is none, and a job has the id.
    """
    try:
        record: WorkflowRecord = session.client.get(WorkflowRecord, workflow_id)
    except ApiError as error:
        if error.status != 404 or (job := _job_of_id(session, workflow_id)) is None:
            raise
        raise UserError(
            f"no workflow has the id {workflow_id}; job {workflow_id} is {job.name!r} of workflow {job.workflow_id}: "
            f"'{command} --job {workflow_id}'"
        ) from None
    return record


def _job_of_id(session: Session, job_id: int) -> JobRecord | None:
    try:
        found: JobRecord = session.client.get(JobRecord, job_id)
    except ApiError as error:
        if error.status in (403, 404):
            return None
        raise
    return found


def chosen_job(session: Session, workflow_id: int | None, name: str) -> JobRecord:
    """Return the job of a name or id.

    Args:
        workflow_id: Its workflow; without it a name must be that of one job only in the user's workflows.

    Raises:
        ApiError: there is no such workflow, or no job of this id.
        UserError: no job has the name, or several have it, or the job is in another workflow.
    """
    found = _jobs_of_name(session, workflow_id, name)
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        known = ", ".join(dict.fromkeys(str(job.workflow_id) for job in found))
        where = f"workflow {workflow_id} has" if workflow_id is not None else f"workflows {known} have"
        raise UserError(f"{where} several jobs {name!r}; give {'its id' if workflow_id else 'the id of the workflow'}")
    if name.isascii() and name.isdigit():
        record: JobRecord = session.client.get(JobRecord, int(name))
        if workflow_id in (None, record.workflow_id):
            return record
        raise UserError(f"job {name} is in workflow {record.workflow_id}, not in {workflow_id}")
    if workflow_id is None:
        raise UserError(f"none of your workflows has a job {name!r}; give the workflow's id before it, or the job's id")
    names = [each.name for each in session.client.iterate(JobRecord, workflow_id=workflow_id, limit=1000)]
    raise UserError(f"workflow {workflow_id} has no job {name!r}{suggestion(name, names)}")


def _jobs_of_name(session: Session, workflow_id: int | None, name: str) -> list[JobRecord]:
    client = session.client
    if workflow_id is not None:
        return client.find(JobRecord, workflow_id=workflow_id, name=name, limit=2)
    if name.isascii() and name.isdigit():
        return []  # an id
    workflows = client.find(WorkflowRecord, user=session.user, is_archived=False, limit=MOST_SEARCHED + 1)
    if len(workflows) > MOST_SEARCHED:
        raise UserError(f"--job {name}: give the workflow's id before it, or the job's id")
    return [job for each in workflows for job in client.find(JobRecord, workflow_id=each.id, name=name, limit=2)]
