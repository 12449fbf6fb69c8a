"""The base class of the client: one request, the records of every kind, and lists that are read page by page."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec
from attrs import NOTHING, fields

from torc_framework.client.calls import paging
from torc_framework.client.calls.paging import JsonObject, ListPosition, Page
from torc_framework.client.http.request_sender import RequestSender
from torc_framework.errors import ApiError
from torc_framework.models.records import (
    ComputeNodeRecord,
    EventRecord,
    FailureHandlerRecord,
    FileRecord,
    JobRecord,
    LocalSchedulerRecord,
    Record,
    ResourceRequirementsRecord,
    ResultRecord,
    ScheduledComputeNodeRecord,
    SlurmSchedulerRecord,
    UserDataRecord,
    WorkflowActionRecord,
    WorkflowRecord,
)

if TYPE_CHECKING:
    from torc_framework.client.http.connection import RequestBody
    from torc_framework.client.http.event_stream import EventStream

DEFAULT_TIMEOUT_S: Final = 60.0
"""Seconds that a request may wait for the server."""
PLAN_TIMEOUT_S: Final = 900.0
"""Seconds that the creation of a workflow from a plan, or the start of a run, may take."""

RECORD_PATHS: Final[Mapping[type[Any], str]] = {
    WorkflowRecord: "workflows",
    JobRecord: "jobs",
    FileRecord: "files",
    UserDataRecord: "user_data",
    ResourceRequirementsRecord: "resource_requirements",
    FailureHandlerRecord: "failure_handlers",
    SlurmSchedulerRecord: "slurm_schedulers",
    LocalSchedulerRecord: "local_schedulers",
    ComputeNodeRecord: "compute_nodes",
    ScheduledComputeNodeRecord: "scheduled_compute_nodes",
    ResultRecord: "results",
    EventRecord: "events",
}
"""Path of the collection of each kind of record."""

_R = TypeVar("_R", bound=Record)
_T = TypeVar("_T")


class ClientBase:
    """Requests, and the methods that are the same for records of every kind."""

    def __init__(self, transport: RequestSender) -> None:
        self._transport = transport

    @property
    def url(self) -> str:
        """The base URL without credentials, for messages."""
        return self._transport.url

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables with which another process, such as a job, uses the same server as the same user.

        They hold the password or the token of the server and are secret.
        """
        return self._transport.environment

    def close(self) -> None:
        """Close all connections; no other thread may be sending a request."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- any record -------------------------------------------------------------------------------

    def create(self, record: _R) -> _R:
        """Store a new record; return it as the server stored it, with its id."""
        if isinstance(record, WorkflowActionRecord):
            path = f"/workflows/{record.workflow_id}/actions"
        else:
            path = f"/{RECORD_PATHS[type(record)]}"
        return self._call(type(record), "POST", path, body=given_fields(record))

    def get(self, kind: type[_R], id_: int) -> _R:
        """Return one record."""
        return self._call(kind, "GET", f"/{RECORD_PATHS[kind]}/{id_}")

    def update(self, kind: type[_R], id_: int, changes: Mapping[str, Any]) -> _R:
        """Change the named fields of a record; return the changed record."""
        return self._call(kind, "PUT", f"/{RECORD_PATHS[kind]}/{id_}", body=dict(changes))

    def replace(self, record: _R) -> _R:
        """Store a changed record; fields that are None stay as they are."""
        id_: int | None = getattr(record, "id", None)
        return self._call(type(record), "PUT", f"/{RECORD_PATHS[type(record)]}/{id_}", body=given_fields(record))

    def delete(self, kind: type[_R], id_: int, *, force: bool = True) -> _R:
        """Delete a record with everything that belongs to it; return the deleted record.

        Args:
            kind: Class of the record.
            id_: Its id.
            force: Delete jobs, or a workflow with jobs, that are pending or running; their runners stop them.

        Raises:
            ApiError: with status 409 if ``force`` is false and jobs are pending or running.
        """
        return self._call(
            kind, "DELETE", f"/{RECORD_PATHS[kind]}/{id_}", query=force_query(force), timeout=PLAN_TIMEOUT_S
        )

    def delete_all(self, kind: type[_R], workflow_id: int, *, force: bool = True) -> int:
        """Delete all records of one kind in a workflow; return how many. ``force`` is that of `delete`."""
        query = {"workflow_id": workflow_id, **force_query(force)}
        response = self._call(JsonObject, "DELETE", f"/{RECORD_PATHS[kind]}", query=query, timeout=PLAN_TIMEOUT_S)
        count: int = response["deleted_count"] if "deleted_count" in response else response["count"]
        return count

    def page(self, kind: type[_R], **query: Any) -> Page[_R]:
        """Return one page of records.

        Args:
            kind: Class of the records.
            query: Filters, ``offset``, ``limit``, ``sort_by``, ``reverse_sort``, and ``after_id``: the id of the record
                after which the page begins, which takes the server no time for the records before. With it,
                ``total_count`` is the number of records of the page, and one more if others follow.
        """
        if kind is FailureHandlerRecord:
            return self._page(kind, f"/workflows/{query.pop('workflow_id')}/failure_handlers", query)
        return self._page(kind, f"/{RECORD_PATHS[kind]}", query)

    def iterate(self, kind: type[_R], *, limit: int | None = None, offset: int = 0, **query: Any) -> Iterator[_R]:
        """Yield records page by page, ``limit`` at most; the rest of ``query`` is that of `page`."""
        left = limit
        place = ListPosition(offset, is_by_id=not query.get("sort_by") and not query.get("reverse_sort"))
        while left is None or left > 0:
            size = paging.PAGE_SIZE if left is None else min(left, paging.PAGE_SIZE)
            page = self.page(kind, **query, limit=size, **place.query)
            if not place.accepts([getattr(item, "id", 0) for item in page.items], page.total_count):
                continue
            yield from page.items
            left = None if left is None else left - len(page.items)
            if not page.has_more or not page.items:
                return

    def find(self, kind: type[_R], *, limit: int | None = None, offset: int = 0, **query: Any) -> list[_R]:
        """Return all records at once, ``limit`` at most; `iterate` keeps one page in memory at a time."""
        return [*self.iterate(kind, limit=limit, offset=offset, **query)]

    # --- events -----------------------------------------------------------------------------------

    def event_stream(
        self,
        workflow_id: int,
        *,
        last_event_id: int | None = None,
        level: str = "info",
        patience: float | None = None,
    ) -> "EventStream":
        """Return an iterator over the events of a workflow as they happen; for the arguments see `EventStream`."""
        from torc_framework.client.http.event_stream import EventStream

        return EventStream(self._transport, workflow_id, last_event_id=last_event_id, level=level, patience=patience)

    # --- requests ---------------------------------------------------------------------------------

    def _walk(self, kind: type[_T], path: str, shape: Any = Page, **query: Any) -> Iterator[_T]:
        """Yield the items of a list of what has an id, page by page; ``shape`` is the class of its pages."""
        place = ListPosition()
        while True:
            page = self._call(shape[kind], "GET", path, query={**query, **place.query, "limit": paging.PAGE_SIZE})
            if not place.accepts([item.id for item in page.items], page.total_count):
                continue
            yield from page.items
            if not page.has_more or not page.items:
                return

    def _walk_relations(self, kind: type[_T], path: str, *names: str) -> Iterator[_T]:
        """Yield the items of a list of what has no id, page by page.

        A server older than the parameter ``after`` ignores it and returns the begin of the list; then the pages are
        requested by their offset.

        Args:
            kind: The class of the items.
            path: The path of the list.
            names: The fields with ids by which the list is ordered; None counts as 0. If these are two, ``after`` has
                the number of items with these ids as well, because several items may have the same.
        """
        offset = 0
        after: tuple[int, ...] = (0, 0, 0)  # from the beginning, and the server counts none of the items that follow
        place: dict[str, Any] = {"after": "0,0,0"}
        while True:
            page = self._page(kind, path, {**place, "limit": paging.PAGE_SIZE})
            keys = [tuple(getattr(item, name) or 0 for name in names) for item in page.items]
            if keys and "after" in place and keys[0] < after[: len(names)]:
                place = {"offset": offset}
                continue
            yield from page.items
            offset += len(page.items)
            if not page.has_more or not page.items:
                return
            after = paging.after_last(keys, after) if len(names) == 2 else keys[-1]
            place = {"offset": offset} if "offset" in place else {"after": ",".join(map(str, after))}

    def _page(self, kind: type[_T], path: str, query: dict[str, Any]) -> Page[_T]:
        return self._call(Page[kind], "GET", path, query=query)  # type: ignore[valid-type]  # a type made at run time

    def _call(
        self,
        kind: type[_T],
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: Any = None,
        raw: "RequestBody | None" = None,
        content_type: str = "application/json",
        timeout: float | None = None,
        repeatable: bool = False,
    ) -> _T:
        """Return the response to one request as a ``kind``.

        Args:
            kind: Class of the response.
            method: HTTP method.
            path: Path below the base URL, quoted.
            query: Values of the query; None values are left out.
            body: Body, to be encoded as JSON.
            raw: Body that is encoded already.
            content_type: Media type of the body.
            timeout: Seconds to wait for any part of the response; None is the client's own.
            repeatable: The request is idempotent although its method is POST.
        """
        if body is not None:
            raw = msgspec.json.encode(body)
        content = self._transport.request(
            method, path, query=query, body=raw, content_type=content_type, timeout=timeout, repeatable=repeatable
        )
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise ApiError(
                200, f"{self.url} did not answer as a Torc server does: {method} {path}: {error}", content[:500]
            ) from error


def given_fields(record: Any) -> JsonObject:
    """Return the fields of a record that are not None, and the required ones: the value of an event may be null."""
    return {
        attribute.name: value
        for attribute in fields(type(record))
        if (value := getattr(record, attribute.name)) is not None or attribute.default is NOTHING
    }


def force_query(force: bool) -> dict[str, Any]:
    """Return the query of a delete; ``force`` is the server's default."""
    return {} if force else {"force": False}
