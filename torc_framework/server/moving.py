"""Endpoints that give a whole workflow away as one document, and take one."""

from typing import Final

from torc_framework.models.answers import ImportedWorkflow
from torc_framework.models.document import WorkflowDocument
from torc_framework.server.answers import InPieces
from torc_framework.server.endpoints import Call, Endpoint, Parameter
from torc_framework.server.scopes import NEW_OWNER, WORKFLOW
from torc_framework.store.export import export_workflow
from torc_framework.store.imports import import_workflow
from torc_framework.store.sql import Tx


def _export(tx: Tx, call: Call) -> InPieces:
    return InPieces(export_workflow(tx, call.id, **call.query))


def _import(tx: Tx, call: Call) -> ImportedWorkflow:
    document: WorkflowDocument = call.body
    owner = document.workflow.user if call.caller.is_anonymous else call.caller.name
    return import_workflow(tx, document, owner)


MOVING_ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/workflows/{id}/export",
        _export,
        query={"include_results": Parameter(bool, default=False), "include_events": Parameter(bool, default=False)},
        answers=WorkflowDocument,
        scope=WORKFLOW,
        summary="Get a whole workflow as one document.",
    ),
    Endpoint(
        "POST",
        "/workflows/import",
        _import,
        changes=True,
        body=WorkflowDocument,
        answers=ImportedWorkflow,
        scope=NEW_OWNER,
        summary="Create a workflow from such a document, with new ids, in one transaction; it belongs to the caller.",
    ),
)
