"""The endpoints of records, from their declarations: list, create, get, update, delete, delete all."""

from collections.abc import Iterator
from typing import Any, Final

from attrs import Factory, define

from torc_framework.server.bodies import parse_body
from torc_framework.server.endpoints import MAX_LIMIT, PAGE_PARAMETERS, Call, Endpoint, Parameter, Work, page
from torc_framework.server.scopes import (
    BODY,
    BODY_JOBS,
    KEPT_OWNER,
    OWN_NAME,
    QUERY,
    VISIBLE,
    WORKFLOW,
    Scope,
    of_record,
)
from torc_framework.store import records
from torc_framework.store.access import visible
from torc_framework.store.jobs import JOBS, create_jobs, delete_job, delete_jobs
from torc_framework.store.lookups import job_ids
from torc_framework.store.records import Page, Resource, Values
from torc_framework.store.resources import (
    FAILURE_HANDLERS,
    IN_WORKFLOWS,
    USER_DATA,
    WORKFLOWS,
    link_user_data,
    new_workflow,
)
from torc_framework.store.sql import Tx

_LIST_PARAMETERS: Final = {
    **PAGE_PARAMETERS,
    "sort_by": Parameter(str),
    "reverse_sort": Parameter(bool, default=False),
}
_IN_WORKFLOW: Final = {"workflow_id": Parameter(int, required=True)}
_LINKS: Final = {"consumer_job_id": Parameter(int), "producer_job_id": Parameter(int)}


@define
class JobBatch:
    """Body of ``bulk_jobs``."""

    jobs: list[Any] = Factory(list)


def record_endpoints() -> Iterator[Endpoint]:
    """Yield the endpoints of all kinds of records."""
    for resource in (WORKFLOWS, *IN_WORKFLOWS):
        yield from _endpoints(resource)
    yield Endpoint(
        "GET",
        "/workflows/{id}/failure_handlers",
        _list(FAILURE_HANDLERS),
        query=_list_parameters(FAILURE_HANDLERS),
        answers=FAILURE_HANDLERS.record,
        scope=WORKFLOW,
    )
    yield Endpoint("POST", "/bulk_jobs", _create_bulk_jobs, changes=True, body=JobBatch, tags=["jobs"], scope=BODY_JOBS)


def _endpoints(resource: Resource) -> Iterator[Endpoint]:
    every, one = f"/{resource.path}", f"/{resource.path}/{{id}}"
    common: dict[str, Any] = {"answers": resource.record, "tags": [resource.path]}
    in_workflow = {} if resource is WORKFLOWS else _IN_WORKFLOW
    new, listed, mine, changed = _scopes(resource)
    links = _LINKS if resource is USER_DATA else {}
    yield Endpoint(
        "POST", every, _create(resource), changes=True, body=resource.record, query=links, scope=new, **common
    )
    yield Endpoint(
        "GET", every, _list(resource), query=in_workflow | _list_parameters(resource), scope=listed, **common
    )
    yield Endpoint("GET", one, lambda tx, call: records.get(tx, resource, call.id), scope=mine, **common)
    yield Endpoint(
        "PUT", one, _update(resource), changes=True, body=resource.record, partial=True, scope=changed, **common
    )
    yield Endpoint("DELETE", one, _delete(resource), changes=True, scope=mine, **common)
    if in_workflow:
        yield Endpoint("DELETE", every, _delete_all(resource), changes=True, query=in_workflow, scope=QUERY, **common)


def _scopes(resource: Resource) -> tuple[Scope, Scope, Scope, Scope]:
    """Return who may create, list, see (and delete), and change records of a kind."""
    if resource is WORKFLOWS:
        return OWN_NAME, VISIBLE, WORKFLOW, KEPT_OWNER
    own = of_record(resource)
    return BODY, QUERY, own, own


def _list_parameters(resource: Resource) -> dict[str, Parameter]:
    parameters = {name: Parameter(filter_.kind, filter_.default) for name, filter_ in resource.filters.items()}
    if resource.relations:
        parameters["include_relationships"] = Parameter(bool, default=False)
    return parameters | _LIST_PARAMETERS


def _list(resource: Resource) -> Work:
    def list_records(tx: Tx, call: Call) -> Any:
        query = call.query
        workflow_id = call.ids.get("id", query.get("workflow_id"))
        wanted = Page(query["offset"], min(query["limit"], MAX_LIMIT), query["sort_by"], query["reverse_sort"])
        relations = bool(query.get("include_relationships"))
        seen = visible(call.caller, resource) if workflow_id is None else ()
        found, total = records.find_in(tx, resource, workflow_id, query, wanted, more=seen, relations=relations)
        return page(found, wanted.offset, total)

    return list_records


def _create(resource: Resource) -> Work:
    if resource is WORKFLOWS:
        return lambda tx, call: new_workflow(tx, call.body)
    if resource is JOBS:
        return lambda tx, call: create_jobs(tx, [call.body])[0]
    if resource is USER_DATA:
        return _create_user_data
    return lambda tx, call: records.create(tx, resource, call.body)


def _create_user_data(tx: Tx, call: Call) -> Values:
    record = records.create(tx, USER_DATA, call.body)
    link_user_data(tx, record, call.query["consumer_job_id"], call.query["producer_job_id"])
    return record


def _update(resource: Resource) -> Work:
    return lambda tx, call: records.update(tx, resource, call.id, call.body)


def _delete(resource: Resource) -> Work:
    if resource is JOBS:
        return lambda tx, call: delete_job(tx, call.id)
    return lambda tx, call: records.delete(tx, resource, call.id)


def _delete_all(resource: Resource) -> Work:
    def delete_all(tx: Tx, call: Call) -> dict[str, int]:
        workflow_id = call.query["workflow_id"]
        if resource is JOBS:
            records.require_workflow(tx, workflow_id)
            return {resource.counted_as: delete_jobs(tx, workflow_id, job_ids(tx, workflow_id))}
        return {resource.counted_as: records.delete_all(tx, resource, workflow_id)}

    return delete_all


def _create_bulk_jobs(tx: Tx, call: Call) -> dict[str, Any]:
    jobs = [parse_body(JOBS.record, job, complete=True)[0] for job in call.body.jobs]
    return {"jobs": create_jobs(tx, jobs)}
