"""The server's endpoints as methods that take and return the records of `torc_framework.models`."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import msgspec
from attrs import Factory, define, fields

from torc_framework.client.transport import Transport
from torc_framework.errors import ApiError
from torc_framework.models.exchange import ExchangeReply, ExchangeRequest
from torc_framework.models.plan import Barrier, Plan
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
    WorkflowStatusRecord,
)

DEFAULT_TIMEOUT_S: Final = 60.0
"""Seconds a request may wait for the server."""
PLAN_TIMEOUT_S: Final = 900.0
"""Seconds that storing a whole plan, or starting a run, may take."""
PAGE_SIZE: Final = 10_000
"""The most records that one list answer holds."""

_PATHS: Final[Mapping[type[Any], str]] = {
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

_R = TypeVar("_R", bound=Record)
_T = TypeVar("_T")
_JSON_OBJECT: Final = dict[str, Any]


@define
class Page(Generic[_T]):
    """One answer of a list endpoint."""

    items: list[_T]
    offset: int = 0
    max_limit: int = PAGE_SIZE
    count: int = 0
    total_count: int = 0
    has_more: bool = False


@define
class CompletionState:
    """Whether a workflow is over."""

    is_complete: bool
    is_canceled: bool = False
    needs_to_run_completion_script: bool = False


@define
class CreatedWorkflow:
    """What became of a plan: the new workflow's id, the current run, and how much was stored."""

    id: int
    run_id: int = 0
    job_count: int = 0
    file_count: int = 0


@define
class JobDependency:
    """One job waits for another."""

    job_id: int
    depends_on_job_id: int
    job_name: str = ""
    depends_on_job_name: str = ""
    workflow_id: int = 0


@define
class DependencyGraph:
    """All dependencies of a workflow: pairs (job, job it waits for), and groups that stand for M x N pairs."""

    dependencies: list[tuple[int, int]]
    groups: list[Barrier]


@define
class JobCounts:
    """Jobs of a workflow by status label."""

    counts: dict[str, int] = Factory(dict)
    total: int = 0


class TorcClient:
    """Speaks to one server.

    May be used from several threads at once. Answers are checked against the records' types;
    fields that this version does not know are ignored.

    Args:
        url: Base URL, with or without the path ``/torc-service/v1``, perhaps with ``user:password@``.
        timeout: Seconds a request may wait for the server, unless its method says otherwise.

    Every method may raise ServerUnreachableError (no answer) or ApiError (the server said no).
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = DEFAULT_TIMEOUT_S,
        username: str | None = None,
        password: str | None = None,
    ) -> None:
        self._transport = Transport(url, timeout=timeout, username=username, password=password)

    @property
    def url(self) -> str:
        """The base URL, without credentials: what jobs get as ``TORC_API_URL``."""
        return self._transport.url

    def close(self) -> None:
        """Close all connections; no other thread may be in a request."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- any record -------------------------------------------------------------------------------

    def create(self, record: _R) -> _R:
        """Store a new record; return it as the server has it, with its id."""
        if isinstance(record, WorkflowActionRecord):
            path = f"/workflows/{record.workflow_id}/actions"
        else:
            path = f"/{_PATHS[type(record)]}"
        return self._call(type(record), "POST", path, body=_present(record))

    def get(self, kind: type[_R], id_: int) -> _R:
        """Return one record."""
        return self._call(kind, "GET", f"/{_PATHS[kind]}/{id_}")

    def update(self, kind: type[_R], id_: int, changes: Mapping[str, Any]) -> _R:
        """Change the named fields of a record; return it as it is now."""
        return self._call(kind, "PUT", f"/{_PATHS[kind]}/{id_}", body=dict(changes))

    def replace(self, record: _R) -> _R:
        """Store a changed record; fields that are None stay as they are."""
        id_: int | None = getattr(record, "id", None)
        return self._call(type(record), "PUT", f"/{_PATHS[type(record)]}/{id_}", body=_present(record))

    def delete(self, kind: type[_R], id_: int) -> _R:
        """Delete a record with everything that belongs to it; return what was deleted."""
        return self._call(kind, "DELETE", f"/{_PATHS[kind]}/{id_}", timeout=PLAN_TIMEOUT_S)

    def delete_all(self, kind: type[_R], workflow_id: int) -> None:
        """Delete all records of one kind in a workflow."""
        self._call(
            _JSON_OBJECT, "DELETE", f"/{_PATHS[kind]}", query={"workflow_id": workflow_id}, timeout=PLAN_TIMEOUT_S
        )

    def page(self, kind: type[_R], **query: Any) -> Page[_R]:
        """Return one page of records; ``query`` holds filters, ``offset``, ``limit``, ``sort_by``, ``reverse_sort``."""
        if kind is FailureHandlerRecord:
            return self._call(Page[kind], "GET", f"/workflows/{query.pop('workflow_id')}/failure_handlers", query=query)  # type: ignore[valid-type]
        return self._call(Page[kind], "GET", f"/{_PATHS[kind]}", query=query)  # type: ignore[valid-type]

    def iterate(self, kind: type[_R], *, limit: int | None = None, offset: int = 0, **query: Any) -> Iterator[_R]:
        """Yield records page by page, ``limit`` at most."""
        left = limit
        while left is None or left > 0:
            size = PAGE_SIZE if left is None else min(left, PAGE_SIZE)
            page = self.page(kind, **query, limit=size, offset=offset)
            yield from page.items
            offset += len(page.items)
            left = None if left is None else left - len(page.items)
            if not page.has_more or not page.items:
                return

    def find(self, kind: type[_R], *, limit: int | None = None, offset: int = 0, **query: Any) -> list[_R]:
        """Return all records, ``limit`` at most."""
        return [*self.iterate(kind, limit=limit, offset=offset, **query)]

    # --- the server -------------------------------------------------------------------------------

    def ping(self) -> dict[str, Any]:
        """Return the server's word that it is well."""
        return self._call(_JSON_OBJECT, "GET", "/ping")

    def version(self) -> str:
        """Return the server's version text."""
        return self._call(str, "GET", "/version")

    # --- workflows --------------------------------------------------------------------------------

    def create_from_plan(self, plan: Plan, *, initialize: bool = False) -> CreatedWorkflow:
        """Store a whole workflow in one transaction; with ``initialize`` also begin its first run."""
        return self._call(
            CreatedWorkflow,
            "POST",
            "/workflows/from_plan",
            query={"initialize": initialize},
            raw=msgspec.json.encode(plan),
            timeout=PLAN_TIMEOUT_S,
        )

    def begin_run(
        self,
        workflow_id: int,
        *,
        file_mtimes: Mapping[int, float] | None = None,
        only_uninitialized: bool = False,
        force: bool = False,
    ) -> WorkflowStatusRecord:
        """Reset the workflow, count its run up and make it ready to run, in one transaction.

        Args:
            file_mtimes: Modification times of the input files that exist, by file id.
            only_uninitialized: Leave jobs that ran alone.
            force: Also when a runner still holds jobs.
        """
        body = {
            "file_mtimes": {str(file_id): mtime for file_id, mtime in (file_mtimes or {}).items()},
            "only_uninitialized": only_uninitialized,
            "force": force,
        }
        path = f"/workflows/{workflow_id}/begin_run"
        return self._call(WorkflowStatusRecord, "POST", path, body=body, timeout=PLAN_TIMEOUT_S)

    def exchange(
        self, workflow_id: int, request: ExchangeRequest, *, timeout: float = DEFAULT_TIMEOUT_S
    ) -> ExchangeReply:
        """Report to the server and take new jobs; waits on the server up to ``request.wait_s``."""
        return self._call(
            ExchangeReply,
            "POST",
            f"/workflows/{workflow_id}/exchange",
            raw=msgspec.json.encode(request),
            timeout=timeout + request.wait_s,
        )

    def workflow_status(self, workflow_id: int) -> WorkflowStatusRecord:
        """Return the state of a workflow as a whole."""
        return self._call(WorkflowStatusRecord, "GET", f"/workflows/{workflow_id}/status")

    def put_workflow_status(self, status: WorkflowStatusRecord, workflow_id: int) -> WorkflowStatusRecord:
        """Overwrite the state of a workflow as a whole."""
        return self._call(WorkflowStatusRecord, "PUT", f"/workflows/{workflow_id}/status", body=_present(status))

    def cancel(self, workflow_id: int) -> None:
        """Cancel a workflow: running and pending jobs become canceled, nothing more is handed out."""
        self._call(_JSON_OBJECT, "PUT", f"/workflows/{workflow_id}/cancel", body={})

    def initialize_jobs(
        self, workflow_id: int, *, only_uninitialized: bool = False, clear_ephemeral_user_data: bool = True
    ) -> None:
        """Evaluate dependencies anew: jobs become ready or blocked."""
        query = {"only_uninitialized": only_uninitialized, "clear_ephemeral_user_data": clear_ephemeral_user_data}
        path = f"/workflows/{workflow_id}/initialize_jobs"
        self._call(_JSON_OBJECT, "POST", path, query=query, body={}, timeout=PLAN_TIMEOUT_S)

    def is_complete(self, workflow_id: int) -> CompletionState:
        """Say whether no job of a workflow is unfinished."""
        return self._call(CompletionState, "GET", f"/workflows/{workflow_id}/is_complete")

    def is_uninitialized(self, workflow_id: int) -> bool:
        """Say whether no job of a workflow has been initialized."""
        answer = self._call(_JSON_OBJECT, "GET", f"/workflows/{workflow_id}/is_uninitialized")
        return bool(answer["is_uninitialized"])

    def job_counts(self, workflow_id: int) -> JobCounts:
        """Count the jobs of a workflow by status."""
        return self._call(JobCounts, "GET", f"/workflows/{workflow_id}/job_counts")

    def job_ids(self, workflow_id: int) -> list[int]:
        """Return the ids of a workflow's jobs."""
        answer = self._call(_JSON_OBJECT, "GET", f"/workflows/{workflow_id}/job_ids")
        return [int(job_id) for job_id in answer["job_ids"]]

    def reset_status(self, workflow_id: int, *, force: bool = False) -> None:
        """Clear canceled, archived and the completion script's flag."""
        self._call(_JSON_OBJECT, "POST", f"/workflows/{workflow_id}/reset_status", query={"force": force}, body={})

    def reset_job_status(self, workflow_id: int, *, failed_only: bool = False) -> int:
        """Make jobs uninitialized again; return how many."""
        path = f"/workflows/{workflow_id}/reset_job_status"
        answer = self._call(_JSON_OBJECT, "POST", path, query={"failed_only": failed_only}, body={})
        return int(answer["updated_count"])

    def job_dependencies(self, workflow_id: int) -> list[JobDependency]:
        """Return every pair of jobs of which one waits for the other."""
        return self._pages(JobDependency, f"/workflows/{workflow_id}/job_dependencies")

    def dependency_graph(self, workflow_id: int) -> DependencyGraph:
        """Return the dependencies between a workflow's jobs, by id, in as many entries as the server keeps."""
        return self._call(DependencyGraph, "GET", f"/workflows/{workflow_id}/graph", timeout=PLAN_TIMEOUT_S)

    def required_existing_files(self, workflow_id: int) -> list[int]:
        """Return the ids of files that must be there: inputs that no job writes, outputs of completed jobs."""
        answer = self._call(_JSON_OBJECT, "GET", f"/workflows/{workflow_id}/required_existing_files")
        return [int(item) for item in answer["files"]]

    def missing_user_data(self, workflow_id: int) -> list[int]:
        """Return the ids of user data that must have a value before a run."""
        answer = self._call(_JSON_OBJECT, "GET", f"/workflows/{workflow_id}/missing_user_data")
        return [int(item) for item in answer["user_data"]]

    def actions(self, workflow_id: int) -> list[WorkflowActionRecord]:
        """Return a workflow's actions."""
        return self._call(list[WorkflowActionRecord], "GET", f"/workflows/{workflow_id}/actions")

    def pending_actions(self, workflow_id: int, triggers: list[str] | None = None) -> list[WorkflowActionRecord]:
        """Return the actions that are due."""
        path = f"/workflows/{workflow_id}/actions/pending"
        return self._call(list[WorkflowActionRecord], "GET", path, query={"trigger_type": triggers})

    def claim_action(self, workflow_id: int, action_id: int, compute_node_id: int) -> bool:
        """Take an action for this runner; False if another has it."""
        path = f"/workflows/{workflow_id}/actions/{action_id}/claim"
        try:
            self._call(_JSON_OBJECT, "POST", path, body={"compute_node_id": compute_node_id})
        except ApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    def create_user_data(
        self, record: UserDataRecord, *, consumer_job_id: int | None = None, producer_job_id: int | None = None
    ) -> UserDataRecord:
        """Store user data and link it to jobs."""
        query = {"consumer_job_id": consumer_job_id, "producer_job_id": producer_job_id}
        return self._call(UserDataRecord, "POST", "/user_data", query=query, body=_present(record))

    # --- how --------------------------------------------------------------------------------------

    def _pages(self, kind: type[_T], path: str) -> list[_T]:
        items: list[_T] = []
        while True:
            page: Page[_T] = self._call(Page[kind], "GET", path, query={"offset": len(items), "limit": PAGE_SIZE})  # type: ignore[valid-type]
            items += page.items
            if not page.has_more or not page.items:
                return items

    def _call(
        self,
        kind: type[_T],
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: Any = None,
        raw: bytes | None = None,
        timeout: float | None = None,
    ) -> _T:
        if body is not None:
            raw = msgspec.json.encode(body)
        content = self._transport.request(method, path, query=query, body=raw, timeout=timeout)
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise ApiError(
                200, f"{self.url} did not answer as a Torc server does: {method} {path}: {error}", content[:500]
            ) from error


def _present(record: Record) -> dict[str, Any]:
    """Return the fields of a record that are not None."""
    return {
        attribute.name: value
        for attribute in fields(type(record))
        if (value := getattr(record, attribute.name)) is not None
    }
