"""Endpoints about one workflow as a whole: its runs, its state, what it needs, what it is made of."""

from typing import Annotated, Any

import msgspec
from attrs import Factory, define
from fastapi import APIRouter, Query
from starlette.responses import Response

from torc_framework.models.records import WorkflowStatusRecord
from torc_framework.server.answers import RequestError, answer
from torc_framework.server.bodies import JsonBody, parse_record, warning
from torc_framework.server.paging import MAX_LIMIT, Limit, Offset, page
from torc_framework.store import actions, lookups, runs
from torc_framework.store.database import Database
from torc_framework.store.records import create

Triggers = Annotated[list[str] | None, Query()]


@define
class BeginRun:
    """Body of ``begin_run``."""

    file_mtimes: dict[int, float | None] = Factory(dict)
    only_uninitialized: bool = False
    force: bool = False


@define
class ActionClaim:
    """Body of an action's ``claim``."""

    compute_node_id: int | None = None


@define
class StatusChange:
    """Body of ``PUT status``: all four fields are written, absent ones as false."""

    run_id: int
    is_canceled: bool = False
    is_archived: bool = False
    has_detected_need_to_run_completion_script: bool = False


def shaped(body: Any, kind: type[Any]) -> Any:
    """Return a body as a value of ``kind``.

    Raises:
        RequestError: it does not have that shape.
    """
    try:
        return msgspec.convert({} if body is None else body, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise RequestError(f"body: {error}") from error


def workflow_router(database: Database) -> APIRouter:
    """Return the endpoints below ``/workflows/{id}``."""
    router = APIRouter(prefix="/workflows/{id}", tags=["workflows"])
    _add_runs(router, database)
    _add_questions(router, database)
    _add_actions(router, database)
    return router


def _add_runs(router: APIRouter, database: Database) -> None:
    @router.post("/begin_run")
    def begin_run(id: int, body: JsonBody) -> Response:  # noqa: A002 - the name in the path
        asked: BeginRun = shaped(body, BeginRun)
        with database.write() as tx:
            return answer(
                runs.begin_run(
                    tx, id, asked.file_mtimes, only_uninitialized=asked.only_uninitialized, force=asked.force
                )
            )

    @router.get("/status")
    def get_status(id: int) -> Response:  # noqa: A002
        with database.read() as tx:
            return answer(runs.status(tx, id))

    @router.put("/status")
    def put_status(id: int, body: JsonBody) -> Response:  # noqa: A002
        wanted: StatusChange = shaped(body, StatusChange)
        with database.write() as tx:
            return answer(
                runs.put_status(
                    tx,
                    WorkflowStatusRecord(
                        id=id,
                        run_id=wanted.run_id,
                        is_canceled=wanted.is_canceled,
                        is_archived=wanted.is_archived,
                        has_detected_need_to_run_completion_script=wanted.has_detected_need_to_run_completion_script,
                    ),
                )
            )

    @router.put("/cancel")
    def cancel(id: int) -> Response:  # noqa: A002
        with database.write() as tx:
            runs.cancel(tx, id)
        return answer({"message": f"Workflow {id} canceled"})

    @router.post("/initialize_jobs")
    def initialize_jobs(
        id: int,  # noqa: A002
        only_uninitialized: bool = False,
        clear_ephemeral_user_data: bool = True,
    ) -> Response:
        with database.write() as tx:
            runs.initialize_jobs(
                tx, id, only_uninitialized=only_uninitialized, clear_ephemeral_user_data=clear_ephemeral_user_data
            )
        return answer({"message": f"Initialized jobs of workflow {id}"})

    @router.post("/reset_status")
    def reset_status(id: int, force: bool = False) -> Response:  # noqa: A002
        with database.write() as tx:
            runs.reset_status(tx, id, force=force)
        return answer({"message": f"Reset status of workflow {id}"})

    @router.post("/reset_job_status")
    def reset_job_status(id: int, failed_only: bool = False) -> Response:  # noqa: A002
        with database.write() as tx:
            count = runs.reset_job_status(tx, id, failed_only=failed_only)
        more = {"reset_type": "failed_only"} if failed_only else {}
        return answer({"workflow_id": id, "updated_count": count, "status": "uninitialized", **more})


def _add_questions(router: APIRouter, database: Database) -> None:
    @router.get("/is_complete")
    def is_complete(id: int) -> Response:  # noqa: A002
        with database.read() as tx:
            return answer(runs.outcome(tx, id))

    @router.get("/is_uninitialized")
    def is_uninitialized(id: int) -> Response:  # noqa: A002
        with database.read() as tx:
            return answer({"is_uninitialized": runs.is_uninitialized(tx, id)})

    @router.get("/job_counts")
    def job_counts(id: int) -> Response:  # noqa: A002
        with database.read() as tx:
            runs.status(tx, id)
            counts = runs.job_counts(tx, id)
        return answer({"counts": counts, "total": sum(counts.values())})

    @router.get("/job_ids")
    def job_ids(id: int) -> Response:  # noqa: A002
        with database.read() as tx:
            runs.status(tx, id)
            found = lookups.job_ids(tx, id)
        return answer({"job_ids": found, "count": len(found)})

    @router.get("/required_existing_files")
    def required_existing_files(id: int) -> Response:  # noqa: A002
        with database.read() as tx:
            runs.status(tx, id)
            return answer({"files": [str(file) for file in lookups.required_existing_files(tx, id)]})

    @router.get("/missing_user_data")
    def missing_user_data(id: int) -> Response:  # noqa: A002
        with database.read() as tx:
            runs.status(tx, id)
            return answer({"user_data": lookups.missing_user_data(tx, id)})

    @router.get("/latest_event_timestamp")
    def latest_event_timestamp(id: int) -> Response:  # noqa: A002
        with database.read() as tx:
            runs.status(tx, id)
            return answer({"timestamp": lookups.latest_event_timestamp(tx, id)})

    @router.get("/job_dependencies")
    def job_dependencies(id: int, offset: Offset = 0, limit: Limit = MAX_LIMIT) -> Response:  # noqa: A002
        with database.read() as tx:
            runs.status(tx, id)
            pairs, total = lookups.job_dependencies(tx, id, offset, min(limit, MAX_LIMIT))
        return answer(page(pairs, offset, total))


def _add_actions(router: APIRouter, database: Database) -> None:
    @router.post("/actions")
    def create_action(id: int, body: JsonBody) -> Response:  # noqa: A002
        if isinstance(body, dict):
            body = {**body, "workflow_id": id}
        sent, unknown = parse_record(actions.ACTIONS.record, body, complete=True)
        with database.write() as tx:
            return answer(create(tx, actions.ACTIONS, sent), headers=warning(unknown))

    @router.get("/actions")
    def list_actions(id: int) -> Response:  # noqa: A002
        with database.read() as tx:
            return answer(actions.all_actions(tx, id))

    @router.get("/actions/pending")
    def list_pending_actions(id: int, trigger_type: Triggers = None) -> Response:  # noqa: A002
        with database.read() as tx:
            return answer(actions.due_actions(tx, id, trigger_type or ()))

    @router.post("/actions/{action_id}/claim")
    def claim_action(id: int, action_id: int, body: JsonBody) -> Response:  # noqa: A002
        claim: ActionClaim = shaped(body, ActionClaim)
        with database.write() as tx:
            actions.claim_action(tx, id, action_id, claim.compute_node_id)
        return answer({"action_id": action_id, "success": True, "claimed": True})
