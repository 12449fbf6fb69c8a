"""Exports a workflow as one document."""

import json
from collections.abc import Iterator
from typing import Final

import sqlalchemy as sa

from torc_framework.models.export_document import EXPORT_VERSION
from torc_framework.store.database.sql import Statement, Tx, ids_param
from torc_framework.store.record_kinds.actions import ACTIONS
from torc_framework.store.record_kinds.files import FILES, USER_DATA
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.record_kinds.nodes import COMPUTE_NODES
from torc_framework.store.record_kinds.requirements import FAILURE_HANDLERS, RESOURCE_REQUIREMENTS
from torc_framework.store.record_kinds.results import EVENTS, RESULTS
from torc_framework.store.record_kinds.schedulers import LOCAL_SCHEDULERS, SLURM_SCHEDULERS
from torc_framework.store.record_kinds.workflows import WORKFLOWS
from torc_framework.store.records.crud import get, slices
from torc_framework.store.records.events import utc_text
from torc_framework.store.records.kind import PageRequest, RecordKind, Values
from torc_framework.store.tables import core as t

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
"""Lists that every document has, and the kinds of their records."""
PAGE_RECORDS: Final = 10_000
"""Records whose ids are in memory at a time; drivers read all rows of a query before they return the first."""
_WRITTEN = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.written_texts).where(t.JOB.c.id.in_(ids_param()), t.JOB.c.written_texts.is_not(None))
)


def export_workflow(tx: Tx, workflow_id: int, *, include_results: bool = False, include_events: bool = False) -> Values:
    """Return a workflow as the document that `import_workflow` reads; see `WorkflowDocument`.

    Each list of the document is an iterator of slices, which the caller reads within the transaction, one after the
    other, so that the document of a large workflow is never in memory as a whole.

    Raises:
        NotFoundError: there is no such workflow.
    """
    document: Values = {
        "export_version": EXPORT_VERSION,
        "exported_at": utc_text(),
        "workflow": get(tx, WORKFLOWS, workflow_id),
    }
    document |= {name: _all(tx, kind, workflow_id) for name, kind in PARTS.items()}
    if include_results:
        document["results"] = _all(tx, RESULTS, workflow_id)
    if include_results or include_events:
        document["compute_nodes"] = _all(tx, COMPUTE_NODES, workflow_id)
    if include_events:
        document["events"] = _all(tx, EVENTS, workflow_id)
    return document


def _all(tx: Tx, kind: RecordKind, workflow_id: int) -> Iterator[list[Values]]:
    """Yield the records of one kind in slices, in the order of their ids."""
    mine, last_id = [kind.table.c.workflow_id == workflow_id], 0
    while True:
        begin_id = last_id
        for part, _ in slices(tx, kind, mine, PageRequest(limit=PAGE_RECORDS, after_id=last_id), relations=True):
            last_id = part[-1]["id"]
            if kind is JOBS:
                _use_written_texts(tx, part)
            yield part
        if last_id == begin_id:
            return


def _use_written_texts(tx: Tx, jobs: list[Values]) -> None:
    """Replace the texts of jobs by ``written_texts``, in which user data has names and not ids."""
    written: dict[int, str] = dict(tx.rows_for(_WRITTEN, [job["id"] for job in jobs]))
    for job in jobs:
        job.update(json.loads(written.get(job["id"], "{}")))
