"""Explains why the jobs that are left can never run on this runner."""

from typing import Final

from torc_framework.client import TorcClient
from torc_framework.errors import OperatorError
from torc_framework.models.records import JobRecord, ResourceRequirementsRecord
from torc_framework.models.resource_fit import requested_resources, resource_shortfalls
from torc_framework.models.resources import Resources

_LOOKED_AT: Final = 1000


def explain_unfit_jobs(client: TorcClient, workflow_id: int, total: Resources, number: int) -> str:
    """Return a sentence: how many jobs do not fit and, if the server answers, what the first of them lacks."""
    what = "1 ready job does not fit this runner" if number == 1 else f"{number:,} ready jobs do not fit this runner"
    try:
        records = {each.id: each for each in client.find(ResourceRequirementsRecord, workflow_id=workflow_id)}
        for job in client.iterate(JobRecord, workflow_id=workflow_id, status="ready", limit=_LOOKED_AT):
            record = records.get(job.resource_requirements_id)
            if record is not None and (amounts := resource_shortfalls(requested_resources(record), total)):
                return f"{what}; job {job.name!r} asks for {', '.join(amounts)}"
    except OperatorError:
        return what
    return f"{what}, or {'is' if number == 1 else 'are'} bound to another scheduler"
