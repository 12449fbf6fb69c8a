"""The endpoints of records, from their declarations: list, create, get, update, delete, delete all."""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, Final

import sqlalchemy as sa
from fastapi import APIRouter
from starlette.responses import Response

from torc_framework.server.answers import answer
from torc_framework.server.bodies import JsonBody, parse_record, warning
from torc_framework.server.paging import MAX_LIMIT, Limit, Offset, page
from torc_framework.store import records
from torc_framework.store.database import Database
from torc_framework.store.jobs import JOBS, create_jobs, delete_job, delete_jobs
from torc_framework.store.lookups import job_ids
from torc_framework.store.records import Page, Resource, Values
from torc_framework.store.resources import (
    CURRENT_RESULT,
    FAILURE_HANDLERS,
    IN_WORKFLOWS,
    RESULTS,
    USER_DATA,
    WORKFLOWS,
    link_user_data,
    new_workflow,
)
from torc_framework.store.sql import Tx

Create = Callable[[Tx, Mapping[str, Any]], Values]
_PAGE_PARAMETERS: Final = {
    "offset": (Offset, 0),
    "limit": (Limit, MAX_LIMIT),
    "sort_by": (str | None, None),
    "reverse_sort": (bool, False),
}


def record_router(database: Database) -> APIRouter:
    """Return the endpoints of all kinds of records."""
    router = APIRouter()
    for resource in (WORKFLOWS, *IN_WORKFLOWS):
        crud = _Crud(database, resource)
        options: dict[str, Any] = {"tags": [resource.path], "response_model": None}
        collection, one = f"/{resource.path}", f"/{resource.path}/{{id}}"
        router.add_api_route(collection, crud.create, methods=["POST"], **options)
        router.add_api_route(collection, crud.list_endpoint(), methods=["GET"], **options)
        router.add_api_route(one, crud.get, methods=["GET"], **options)
        router.add_api_route(one, crud.update, methods=["PUT"], **options)
        router.add_api_route(one, crud.delete, methods=["DELETE"], **options)
        if resource is not WORKFLOWS:
            router.add_api_route(collection, crud.delete_all, methods=["DELETE"], **options)
        if resource is FAILURE_HANDLERS:
            path = "/workflows/{workflow_id}/failure_handlers"
            router.add_api_route(path, crud.list_endpoint(), methods=["GET"], **options)
    _add_bulk_jobs(router, database)
    return router


def _create(resource: Resource) -> Create:
    special: dict[str, Create] = {WORKFLOWS.path: new_workflow, JOBS.path: _create_one_job}
    return special.get(resource.path, lambda tx, sent: records.create(tx, resource, sent))


def _create_one_job(tx: Tx, sent: Mapping[str, Any]) -> Values:
    return create_jobs(tx, [sent])[0]


class _Crud:
    """The endpoints of one kind of record."""

    def __init__(self, database: Database, resource: Resource) -> None:
        self._database = database
        self._resource = resource
        if resource is USER_DATA:
            self.create = self.create_linked  # type: ignore[method-assign]

    def create(self, body: JsonBody) -> Response:
        """Store a new record."""
        return self._create_as(body, lambda _tx, _record: None)

    def create_linked(
        self, body: JsonBody, consumer_job_id: int | None = None, producer_job_id: int | None = None
    ) -> Response:
        """Store user data, and say which jobs read and write it."""
        return self._create_as(body, lambda tx, record: link_user_data(tx, record, consumer_job_id, producer_job_id))

    def _create_as(self, body: Any, then: Callable[[Tx, Values], None]) -> Response:
        sent, unknown = parse_record(self._resource.record, body, complete=True)
        with self._database.write() as tx:
            record = _create(self._resource)(tx, sent)
            then(tx, record)
        return answer(record, headers=warning(unknown))

    def get(self, id: int) -> Response:  # noqa: A002 - the name in the path
        """Return one record."""
        with self._database.read() as tx:
            return answer(records.get(tx, self._resource, id))

    def update(self, id: int, body: JsonBody) -> Response:  # noqa: A002
        """Change the fields that are sent."""
        sent, unknown = parse_record(self._resource.record, body, complete=False)
        with self._database.write() as tx:
            return answer(records.update(tx, self._resource, id, sent), headers=warning(unknown))

    def delete(self, id: int) -> Response:  # noqa: A002
        """Delete one record."""
        with self._database.write() as tx:
            if self._resource is JOBS:
                return answer(delete_job(tx, id))
            return answer(records.delete(tx, self._resource, id))

    def delete_all(self, workflow_id: int) -> Response:
        """Delete all records of this kind in a workflow."""
        with self._database.write() as tx:
            if self._resource is JOBS:
                records.require_workflow(tx, workflow_id)
                count = delete_jobs(tx, workflow_id, job_ids(tx, workflow_id))
            else:
                count = records.delete_all(tx, self._resource, workflow_id)
        return answer({self._resource.counted_as: count})

    def list_endpoint(self) -> Callable[..., Response]:
        """Return the endpoint of the list, with this kind's filters as query parameters."""

        def list_records(**query: Any) -> Response:
            return self._list(query)

        parameters: dict[str, tuple[Any, Any]] = {} if self._resource is WORKFLOWS else {"workflow_id": (int, ...)}
        parameters |= {name: (filter_.kind | None, None) for name, filter_ in self._resource.filters.items()}
        parameters |= _PAGE_PARAMETERS
        if self._resource.relations:
            parameters["include_relationships"] = (bool, False)
        if self._resource is RESULTS:
            parameters["all_runs"] = (bool, False)
        list_records.__signature__ = _signature(parameters)  # type: ignore[attr-defined]
        list_records.__doc__ = "Return one page of the records that all given filters let through."
        return list_records

    def _list(self, query: Mapping[str, Any]) -> Response:
        resource = self._resource
        conditions: list[sa.ColumnElement[bool]] = [
            filter_.condition(query[name]) for name, filter_ in resource.filters.items() if query.get(name) is not None
        ]
        if query.get("all_runs") is False:
            conditions.append(CURRENT_RESULT)
        wanted = Page(query["offset"], min(query["limit"], MAX_LIMIT), query["sort_by"], query["reverse_sort"])
        with self._database.read() as tx:
            if "workflow_id" in query:
                records.require_workflow(tx, query["workflow_id"])
                conditions.append(resource.table.c.workflow_id == query["workflow_id"])
            relations = bool(query.get("include_relationships"))
            found, total = records.find(tx, resource, conditions, wanted, relations=relations)
        return answer(page(found, wanted.offset, total))


def _signature(parameters: Mapping[str, tuple[Any, Any]]) -> Signature:
    return Signature(
        [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                annotation=kind,
                default=Parameter.empty if default is ... else default,
            )
            for name, (kind, default) in parameters.items()
        ]
    )


def _add_bulk_jobs(router: APIRouter, database: Database) -> None:
    @router.post("/bulk_jobs", tags=["jobs"], response_model=None)
    def create_bulk_jobs(body: JsonBody) -> Response:
        jobs = body.get("jobs") if isinstance(body, dict) else None
        parsed = [parse_record(JOBS.record, job, complete=True) for job in (jobs if isinstance(jobs, list) else [None])]
        unknown = sorted({name for _, names in parsed for name in names})
        with database.write() as tx:
            made = create_jobs(tx, [sent for sent, _ in parsed])
        return answer({"jobs": made}, headers=warning(unknown))
