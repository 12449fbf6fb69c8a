"""The two calls that carry a run: the exchange with a runner, and the creation of a workflow from a plan.

They are plain ASGI routes, and msgspec decodes their bodies straight into the models. An exchange on a local database
runs in the event loop if the write lock is free, which spares the change of thread; otherwise it runs in a thread.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import msgspec
from attrs import evolve
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework.models.exchange import ExchangeReply, ExchangeRequest
from torc_framework.models.plan import Plan
from torc_framework.server.async_routes.waiting_calls import WaitingCall, WaitingCalls
from torc_framework.server.dispatch.large_bodies import LargeBodyPool
from torc_framework.server.http.access_log import add_log_fields
from torc_framework.server.http.body_limits import refuse_nul
from torc_framework.server.http.endpoint_calls import caller_of, workflow_id_of
from torc_framework.server.http.responses import RequestError, json_response
from torc_framework.server.settings import API_PREFIX
from torc_framework.store.access.callers import Caller
from torc_framework.store.access.checks import check_own_name, check_workflow
from torc_framework.store.database.base import Database
from torc_framework.store.database.sql import Tx
from torc_framework.store.exchange.exchange import exchange, has_something_for_runner
from torc_framework.store.runs import lifecycle
from torc_framework.store.workflows.plans import create_plan

MAX_WAIT_S: Final = 300.0
"""Longest wait of an exchange, seconds, because proxies and clients give up on silent connections."""

_T = TypeVar("_T")
_EXCHANGE: Final = msgspec.json.Decoder(ExchangeRequest)
_PLAN: Final = msgspec.json.Decoder(Plan)


class _ExchangeHead(msgspec.Struct):
    """The part of a large exchange that the server decodes itself before a worker decodes the whole."""

    compute_node_id: int
    seq: int = 0


_HEAD: Final = msgspec.json.Decoder(_ExchangeHead)


def decode_body(decoder: msgspec.json.Decoder[_T], body: bytes) -> _T:
    """Return a decoded body.

    Raises:
        RequestError: the body is not JSON (400), or does not fit the class (422).
    """
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        wrong_shape = isinstance(error, msgspec.ValidationError)
        raise RequestError(f"body: {error}", 422 if wrong_shape else 400) from error


class RunnerApi:
    """The routes of the exchange and of the creation from a plan."""

    def __init__(self, database: Database, waiting_calls: WaitingCalls, large_bodies: LargeBodyPool) -> None:
        self._database = database
        self._waiting_calls = waiting_calls
        self._large_bodies = large_bodies

    def routes(self) -> list[Route]:
        """Return the routes; the application puts them first, because starlette searches its routes in order."""
        return [
            Route(f"{API_PREFIX}/workflows/{{id:int}}/exchange", self.exchange, methods=["POST"]),
            Route(f"{API_PREFIX}/workflows/from_plan", self.from_plan, methods=["POST"]),
        ]

    async def exchange(self, request: Request) -> Response:
        """Record a runner's reports and hand out jobs; wait up to ``wait_s`` while there is nothing to answer."""
        workflow_id = workflow_id_of(request)
        caller = caller_of(request)
        body = await request.body()
        if self._large_bodies.takes(body):
            head = decode_body(_HEAD, body)
            self._waiting_calls.end_older_exchanges(workflow_id, head.compute_node_id, head.seq)
            return await self._large_bodies.carry_out("exchange", request, body)
        exchange_request = decode_body(_EXCHANGE, body)
        if exchange_request.wait_s <= 0:
            self._waiting_calls.end_older_exchanges(workflow_id, exchange_request.compute_node_id, exchange_request.seq)
            reply = await self._exchange(caller, workflow_id, exchange_request)
            _log_exchange(request, exchange_request, reply)
            return json_response(reply)
        deadline = asyncio.get_running_loop().time() + min(exchange_request.wait_s, MAX_WAIT_S)
        with self._waiting_calls.exchange(workflow_id, exchange_request.compute_node_id, exchange_request.seq) as call:
            reply = await self._exchange(caller, workflow_id, exchange_request)
            while not _has_content(reply) and await self._wait(call, deadline, reply.due_in_s):
                if await request.is_disconnected():
                    break  # the runner would not receive the jobs
                if await self._may_have_reply(workflow_id, exchange_request):
                    reply = await self._exchange(caller, workflow_id, _without_reports(exchange_request))
        _log_exchange(request, exchange_request, reply)
        return json_response(reply)

    async def _wait(self, call: WaitingCall, deadline: float, due_in_s: float | None) -> bool:
        """Wait; return whether the database may hold a new answer: the call was woken, or a delayed job is due."""
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        is_delay_first = due_in_s is not None and due_in_s < left
        try:
            await asyncio.wait_for(call.wake.wait(), due_in_s if is_delay_first else left)
        except TimeoutError:
            return is_delay_first
        call.wake.clear()
        return not call.is_over

    async def _may_have_reply(self, workflow_id: int, exchange_request: ExchangeRequest) -> bool:
        if self._database.is_local:
            return self._check_for_reply(workflow_id, exchange_request)
        return await run_in_threadpool(self._check_for_reply, workflow_id, exchange_request)

    def _check_for_reply(self, workflow_id: int, exchange_request: ExchangeRequest) -> bool:
        with self._database.read() as tx:
            return has_something_for_runner(tx, workflow_id, exchange_request.compute_node_id, exchange_request.run_id)

    async def _exchange(self, caller: Caller, workflow_id: int, exchange_request: ExchangeRequest) -> ExchangeReply:
        if self._database.is_local:
            with self._database.write_if_free() as tx:
                if tx is not None:
                    return _permitted_exchange(tx, caller, workflow_id, exchange_request)
        return await run_in_threadpool(_exchange_under_lock, self._database, caller, workflow_id, exchange_request)

    async def from_plan(self, request: Request) -> Response:
        """Store a whole plan in one transaction; with ``initialize=true`` begin its first run."""
        body = await request.body()
        if self._large_bodies.takes(body):
            return await self._large_bodies.carry_out("from_plan", request, body)
        return await run_in_threadpool(_from_plan, self._database, request, body)


def runner_api_operations(database: Database) -> dict[str, Callable[[Request, bytes], Response]]:
    """Return the operations for large bodies; an exchange with a large body does not wait for jobs."""
    return {"exchange": partial(_large_exchange, database), "from_plan": partial(_from_plan, database)}


def _large_exchange(database: Database, request: Request, body: bytes) -> Response:
    exchange_request = decode_body(_EXCHANGE, body)
    reply = _exchange_under_lock(database, caller_of(request), workflow_id_of(request), exchange_request)
    _log_exchange(request, exchange_request, reply)
    return json_response(reply)


def _exchange_under_lock(
    database: Database, caller: Caller, workflow_id: int, exchange_request: ExchangeRequest
) -> ExchangeReply:
    with database.write() as tx:
        return _permitted_exchange(tx, caller, workflow_id, exchange_request)


def _from_plan(database: Database, request: Request, body: bytes) -> Response:
    flag = request.query_params.get("initialize", "false").lower()
    if flag not in ("true", "false"):
        raise RequestError(f"query 'initialize': {flag!r} is neither true nor false")
    refuse_nul(body)
    plan = decode_body(_PLAN, body)
    check_own_name(caller_of(request), plan.workflow.user)
    with database.write_bulk() as tx:
        stored = create_plan(tx, plan, initialized=flag == "true")
        run_id = _first_run(tx, stored.id) if flag == "true" else 0
    add_log_fields(request, workflow_id=stored.id, job_count=stored.counts["job_count"])
    return json_response({"id": stored.id, "run_id": run_id, **stored.counts})


def _permitted_exchange(tx: Tx, caller: Caller, workflow_id: int, exchange_request: ExchangeRequest) -> ExchangeReply:
    if caller.is_restricted:
        check_workflow(tx, caller, workflow_id)
    return exchange(tx, workflow_id, exchange_request)


def _first_run(tx: Tx, workflow_id: int) -> int:
    lifecycle.begin_planned_run(tx, workflow_id)
    lifecycle.announce_run(tx, workflow_id, run_id=1)
    return 1


def _log_exchange(request: Request, exchange_request: ExchangeRequest, reply: ExchangeReply) -> None:
    """Add the numbers of reports and jobs to the log line of an exchange."""
    reported, claimed = len(exchange_request.ended), len(reply.jobs)
    is_routine = not reported and not claimed
    add_log_fields(
        request,
        is_routine=is_routine,
        compute_node_id=exchange_request.compute_node_id,
        reported=reported,
        claimed=claimed,
    )


def _without_reports(exchange_request: ExchangeRequest) -> ExchangeRequest:
    """Return a request with the same offer and without the reports, which are recorded."""
    return evolve(exchange_request, seq=0, started=[], ended=[], released=[], waiting=[], holding=None, wait_s=0.0)


def _has_content(reply: ExchangeReply) -> bool:
    """Return whether a reply holds anything that the runner must know now."""
    return bool(reply.jobs or reply.refused) or reply.is_complete or reply.is_canceled
