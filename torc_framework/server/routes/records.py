"""Endpoints of records, made from the records' declarations: list, create, get, update, delete, delete all."""

import logging
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from attrs import define

from torc_framework.models import responses as a
from torc_framework.models.records import JobRecord
from torc_framework.server.auth.permissions import (
    FILTERED_BY_ACCESS,
    NEW_WORKFLOW_OF_CALLER,
    OWNER_UNCHANGED,
    WORKFLOW_IN_BODY,
    WORKFLOW_IN_PATH,
    WORKFLOW_IN_QUERY,
    WORKFLOWS_OF_JOBS,
    Permission,
    record_permission,
)
from torc_framework.server.dispatch.endpoint import Endpoint, EndpointFunction, page, page_request
from torc_framework.server.http.endpoint_calls import FORCE, ID_PAGE_PARAMETERS, EndpointCall, Parameter
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.server.http.request_bodies import MAX_FINDINGS, CompositeBody, parse_body
from torc_framework.store.access.checks import visibility_conditions
from torc_framework.store.database.base import Database
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import DatabaseError
from torc_framework.store.record_kinds.files import FILES, USER_DATA, link_user_data
from torc_framework.store.record_kinds.jobs import JOBS, check_batch, create_jobs, delete_job, delete_jobs
from torc_framework.store.record_kinds.kinds import IN_WORKFLOWS
from torc_framework.store.record_kinds.requirements import FAILURE_HANDLERS, RESOURCE_REQUIREMENTS
from torc_framework.store.record_kinds.workflow_queries import job_ids
from torc_framework.store.record_kinds.workflows import WORKFLOWS
from torc_framework.store.records import crud
from torc_framework.store.records.kind import RecordKind, Values
from torc_framework.store.workflows.deletion import begin_deletion, finish_deletions

_log = logging.getLogger("torc.server")
_LIST_PARAMETERS: Final = {
    **ID_PAGE_PARAMETERS,
    "sort_by": Parameter(str),
    "reverse_sort": Parameter(bool, default=False),
}
_IN_WORKFLOW: Final = {"workflow_id": Parameter(int, required=True)}
_LINKS: Final = {"consumer_job_id": Parameter(int), "producer_job_id": Parameter(int)}
_JOBS: Final = {"items": {"$ref": "#/components/schemas/JobRecord"}}
_COUNTED: Final = {FILES.path: a.DeletedFiles, USER_DATA.path: a.DeletedUserData}
"""Response classes of "delete all" for the kinds whose response is not `DeletedCount`."""


@define
class JobBatch(CompositeBody):
    """Body of ``bulk_jobs``."""

    jobs: Annotated[list[Any], msgspec.Meta(extra_json_schema=_JOBS)]

    def parse_records(self) -> list[str]:
        """Parse the jobs, unless there are too many."""
        check_batch(len(self.jobs))
        unknown: set[str] = set()
        for position, job in enumerate(self.jobs):
            try:
                self.jobs[position], ignored = parse_body(JobRecord, job, complete=True)
            except RequestError as error:
                raise RequestError(f"jobs[{position}]: {error}", error.status) from error
            if len(unknown) < MAX_FINDINGS:
                unknown.update(ignored)
        return sorted(unknown)


def record_endpoints() -> Iterator[Endpoint]:
    """Yield the endpoints of all kinds of records."""
    for resource in (WORKFLOWS, *IN_WORKFLOWS):
        yield from _endpoints(resource)
    yield Endpoint(
        "GET",
        "/workflows/{id}/failure_handlers",
        _list(FAILURE_HANDLERS),
        query=list_parameters(FAILURE_HANDLERS),
        response=a.Page[FAILURE_HANDLERS.record],  # type: ignore[name-defined]  # a type made at run time
        tags=[FAILURE_HANDLERS.path],
        permission=WORKFLOW_IN_PATH,
        summary="List a workflow's failure handlers.",
    )
    yield Endpoint(
        "POST",
        "/bulk_jobs",
        lambda tx, call: a.CreatedJobs(create_jobs(tx, call.body.jobs)),  # type: ignore[arg-type]  # records are dictionaries
        changes=True,
        body=JobBatch,
        response=a.CreatedJobs,
        tags=[JOBS.path],
        permission=WORKFLOWS_OF_JOBS,
        summary="Create many jobs of one workflow, all or none.",
    )


def _endpoints(resource: RecordKind) -> Iterator[Endpoint]:
    every, one = f"/{resource.path}", f"/{resource.path}/{{id}}"
    kind, tags = resource.record, [resource.path]
    name = resource.title[0].lower() + resource.title[1:]
    several = resource.path.replace("_", " ")
    plural = resource in (USER_DATA, RESOURCE_REQUIREMENTS)
    a_record = name if plural else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
    as_it_was = "them as they were" if plural else "it as it was"
    in_workflow = {} if resource is WORKFLOWS else _IN_WORKFLOW
    create, list_, own, change = _permissions(resource)

    def endpoint(method: str, path: str, function: EndpointFunction, summary: str, **more: Any) -> Endpoint:
        more = {"response": kind, "permission": own, **more}
        return Endpoint(method, path, function, method != "GET", tags=tags, summary=summary, **more)

    force = FORCE if resource in (JOBS, WORKFLOWS) else {}
    links = _LINKS if resource is USER_DATA else {}
    yield endpoint("POST", every, _create(resource), f"Create {a_record}.", body=kind, query=links, permission=create)
    yield endpoint(
        "GET",
        every,
        _list(resource),
        f"List {several}.",
        query=in_workflow | list_parameters(resource),
        response=a.Page[kind],  # type: ignore[valid-type]  # a type made at run time
        permission=list_,
    )
    yield endpoint("GET", one, _get(resource), f"Get {a_record}.")
    yield endpoint("PUT", one, _update(resource), f"Change {a_record}.", body=kind, partial=True, permission=change)
    yield endpoint(
        "DELETE",
        one,
        _delete(resource),
        f"Delete {a_record}; returns {as_it_was}.",
        query=force,
        afterwards=_finish_deletions if resource is WORKFLOWS else None,
    )
    if in_workflow:
        counted = _COUNTED.get(resource.path, a.DeletedCount)
        yield endpoint(
            "DELETE",
            every,
            _delete_all(resource),
            f"Delete all {several} of a workflow.",
            query=in_workflow | force,
            response=counted,
            permission=WORKFLOW_IN_QUERY,
        )


def _permissions(resource: RecordKind) -> tuple[Permission, Permission, Permission, Permission]:
    """Return the permissions to create, to list, to get or delete, and to change records of a kind."""
    if resource is WORKFLOWS:
        return NEW_WORKFLOW_OF_CALLER, FILTERED_BY_ACCESS, WORKFLOW_IN_PATH, OWNER_UNCHANGED
    own = record_permission(resource)
    return WORKFLOW_IN_BODY, WORKFLOW_IN_QUERY, own, own


def list_parameters(resource: RecordKind) -> dict[str, Parameter]:
    """Return the query parameters of a list of records of a kind."""
    parameters = {
        name: Parameter(filter_.type_, filter_.default, repeated=filter_.repeated)
        for name, filter_ in resource.filters.items()
    }
    if resource is JOBS:
        parameters["q"] = Parameter(str)
    if resource.relations:
        parameters["include_relationships"] = Parameter(bool, default=False)
    return parameters | _LIST_PARAMETERS


def _list(resource: RecordKind) -> EndpointFunction:
    def list_records(tx: Tx, call: EndpointCall) -> Any:
        query = call.query
        workflow_id = call.ids.get("id", query.get("workflow_id"))
        wanted = page_request(call)
        relations = bool(query.get("include_relationships"))
        if relations:
            call.check_size(crud.PAGE_BYTES)
        more = visibility_conditions(call.caller, resource) if workflow_id is None else []
        if query.get("q"):
            from torc_framework.store.workflow_views.filter_conditions import filter_conditions

            more = filter_conditions(tx, query["workflow_id"], query["q"])
        found, total = crud.find_in_workflow(tx, resource, workflow_id, query, wanted, more=more, relations=relations)
        return page(found, wanted.offset, total)

    return list_records


def _create_workflow(tx: Tx, call: EndpointCall) -> Values:
    from torc_framework.store.workflows.plans import new_workflow  # reads in a command's process do without plans

    return new_workflow(tx, call.body)


def _create(resource: RecordKind) -> EndpointFunction:
    if resource is WORKFLOWS:
        return _create_workflow
    if resource is JOBS:
        return lambda tx, call: create_jobs(tx, [call.body])[0]
    if resource is USER_DATA:
        return _create_user_data
    return lambda tx, call: crud.create(tx, resource, call.body)


def _create_user_data(tx: Tx, call: EndpointCall) -> Values:
    record = crud.create(tx, USER_DATA, call.body)
    link_user_data(tx, record, call.query["consumer_job_id"], call.query["producer_job_id"])
    return record


def _get(resource: RecordKind) -> EndpointFunction:
    def get(tx: Tx, call: EndpointCall) -> Values:
        if call.allowed_bytes is not None:
            call.check_size(crud.size_of(tx, resource, resource.table.c.id == call.id))
        return crud.get(tx, resource, call.id)

    return get


def _update(resource: RecordKind) -> EndpointFunction:
    return lambda tx, call: crud.update(tx, resource, call.id, call.body)


def _delete(resource: RecordKind) -> EndpointFunction:
    if resource is JOBS:
        return lambda tx, call: delete_job(tx, call.id, force=call.query["force"])
    if resource is WORKFLOWS:
        return lambda tx, call: begin_deletion(tx, call.id, force=call.query["force"])
    return lambda tx, call: crud.delete(tx, resource, call.id)


def _finish_deletions(database: Database) -> None:
    """Delete the rows of the deleted workflow; if that fails, the next start of the server continues."""
    try:
        finish_deletions(database)
    except DatabaseError as error:
        _log.error("the rows of deleted workflows stay until the next start of the server: %s", error)


def _delete_all(resource: RecordKind) -> EndpointFunction:
    def delete_all(tx: Tx, call: EndpointCall) -> Any:
        workflow_id = call.query["workflow_id"]
        if resource is JOBS:
            crud.require_workflow(tx, workflow_id)
            count = delete_jobs(tx, workflow_id, job_ids(tx, workflow_id), force=call.query["force"])
        else:
            count = crud.delete_all(tx, resource, workflow_id)
        if resource is USER_DATA:
            return a.DeletedUserData(f"Deleted {count} user data records", count)
        return _COUNTED.get(resource.path, a.DeletedCount)(count)

    return delete_all
