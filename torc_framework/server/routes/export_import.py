"""Endpoints that export a whole workflow as one document, and create a workflow from such a document.

The modules that do the work are imported for the first call of each, because the start of a server does without.
"""

from typing import Final

from torc_framework.models.export_document import WorkflowDocument
from torc_framework.models.responses import RECORD_COUNTS_HEADER, ImportedWorkflow
from torc_framework.server.auth.permissions import IMPORTED_BY_CALLER, WORKFLOW_IN_PATH
from torc_framework.server.dispatch.endpoint import Endpoint
from torc_framework.server.http.endpoint_calls import EndpointCall, Parameter
from torc_framework.server.http.endpoint_results import SlicedObject
from torc_framework.store.database.sql import Tx


def _export(tx: Tx, call: EndpointCall) -> SlicedObject:
    from torc_framework.store.workflows.export_document import export_workflow

    return SlicedObject(export_workflow(tx, call.id, **call.query), RECORD_COUNTS_HEADER)


def _import(tx: Tx, call: EndpointCall) -> ImportedWorkflow:
    from torc_framework.store.workflows.import_document import import_workflow

    document: WorkflowDocument = call.body
    owner = document.workflow.user if call.caller.is_anonymous else call.caller.name
    return import_workflow(tx, document, owner)


EXPORT_IMPORT_ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/workflows/{id}/export",
        _export,
        query={"include_results": Parameter(bool, default=False), "include_events": Parameter(bool, default=False)},
        response=WorkflowDocument,
        permission=WORKFLOW_IN_PATH,
        has_any_size=True,
        summary="Get a whole workflow as one document.",
    ),
    Endpoint(
        "POST",
        "/workflows/import",
        _import,
        changes=True,
        body=WorkflowDocument,
        response=ImportedWorkflow,
        permission=IMPORTED_BY_CALLER,
        summary="Create a workflow from such a document, with new ids, in one transaction; it belongs to the caller.",
    ),
)
