"""A workflow as one document."""

import json
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.document import EXPORT_VERSION
from torc_framework.store import tables as t
from torc_framework.store.actions import ACTIONS
from torc_framework.store.events import utc_text
from torc_framework.store.jobs import JOBS
from torc_framework.store.records import Page, Resource, Values, find, get
from torc_framework.store.resources import (
    COMPUTE_NODES,
    EVENTS,
    FAILURE_HANDLERS,
    FILES,
    LOCAL_SCHEDULERS,
    RESOURCE_REQUIREMENTS,
    RESULTS,
    SLURM_SCHEDULERS,
    USER_DATA,
    WORKFLOWS,
)
from torc_framework.store.sql import Statement, Tx, param

PARTS: Final = {
    "files": FILES,
    "user_data": USER_DATA,
    "resource_requirements": RESOURCE_REQUIREMENTS,
    "slurm_schedulers": SLURM_SCHEDULERS,
    "local_schedulers": LOCAL_SCHEDULERS,
    "failure_handlers": FAILURE_HANDLERS,
    "jobs": JOBS,
    "workflow_actions": ACTIONS,
}
"""Lists of the document that are always there, and the records in them."""
_WRITTEN = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.written_texts).where(
        t.JOB.c.workflow_id == param("workflow"), t.JOB.c.written_texts.is_not(None)
    ),
    "workflow",
)


def export_workflow(tx: Tx, workflow_id: int, *, include_results: bool = False, include_events: bool = False) -> Values:
    """Return a workflow as the document that `import_workflow` reads; see `WorkflowDocument`.

    Raises:
        NotFoundError: there is no such workflow.
    """
    document: Values = {
        "export_version": EXPORT_VERSION,
        "exported_at": utc_text(),
        "workflow": get(tx, WORKFLOWS, workflow_id),
    }
    document |= {name: _all(tx, resource, workflow_id) for name, resource in PARTS.items()}
    written = {job_id: json.loads(texts) for job_id, texts in tx.rows(_WRITTEN, workflow_id)}
    for job in document["jobs"]:
        job.update(written.get(job["id"], {}))
    if include_results:
        document["results"] = _all(tx, RESULTS, workflow_id)
    if include_results or include_events:
        document["compute_nodes"] = _all(tx, COMPUTE_NODES, workflow_id)
    if include_events:
        document["events"] = _all(tx, EVENTS, workflow_id)
    return document


def _all(tx: Tx, resource: Resource, workflow_id: int) -> list[dict[str, Any]]:
    mine = [resource.table.c.workflow_id == workflow_id]
    return find(tx, resource, mine, Page(limit=-1), relations=bool(resource.relations))[0]
