"""All kinds of records that belong to a workflow and have a path of their own in the API."""

from typing import Final

from torc_framework.store.record_kinds.files import FILES, USER_DATA
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.record_kinds.nodes import COMPUTE_NODES, SCHEDULED_COMPUTE_NODES
from torc_framework.store.record_kinds.requirements import FAILURE_HANDLERS, RESOURCE_REQUIREMENTS
from torc_framework.store.record_kinds.results import EVENTS, RESULTS
from torc_framework.store.record_kinds.schedulers import LOCAL_SCHEDULERS, SLURM_SCHEDULERS

IN_WORKFLOWS: Final = (
    JOBS,
    FILES,
    USER_DATA,
    RESOURCE_REQUIREMENTS,
    FAILURE_HANDLERS,
    SLURM_SCHEDULERS,
    LOCAL_SCHEDULERS,
    COMPUTE_NODES,
    SCHEDULED_COMPUTE_NODES,
    RESULTS,
    EVENTS,
)
