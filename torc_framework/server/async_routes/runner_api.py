"""The two calls that carry a run: the exchange with a runner, and the creation of a workflow from a plan.

They are plain ASGI routes, and msgspec decodes their bodies straight into the models. An exchange on a local database
runs in the event loop if the write lock is free, which spares the change of thread; otherwise it runs in a thread.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar, cast

import msgspec
from attrs import evolve
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework.models.exchange import ExchangeReply, ExchangeRequest, Vacancy
from torc_framework.models.plan_parts import PLAN_PATH
from torc_framework.server.async_routes.plan_bodies import (
    create_from_document,
    create_from_lines,
    decode_body,
    holds_plan_lines,
)
from torc_framework.server.async_routes.waiting_calls import WaitingCalls
from torc_framework.server.async_routes.waiting_exchanges import WaitingCall, WaitingExchange
from torc_framework.server.dispatch.asgi_endpoint import AsgiEndpoint
from torc_framework.server.dispatch.change_queue import ChangeQueue
from torc_framework.server.dispatch.large_bodies import LargeBodyPool
from torc_framework.server.http.access_log import add_log_fields
from torc_framework.server.http.endpoint_calls import caller_of, workflow_id_of
from torc_framework.server.http.responses import json_response
from torc_framework.server.http.spooled_bodies import spooled_body
from torc_framework.server.settings import API_PREFIX
from torc_framework.store.access.callers import Caller
from torc_framework.store.access.checks import check_workflow
from torc_framework.store.database.base import Database
from torc_framework.store.database.sql import Tx
from torc_framework.store.exchange.exchange import exchange, has_something_for_runner
from torc_framework.store.runs.workflow_status import unfinished_counts

T = TypeVar("T")

MAX_WAIT_S: Final = 300.0
"""Longest wait of an exchange, seconds, because proxies and clients give up on silent connections."""

_EXCHANGE: Final = msgspec.json.Decoder(ExchangeRequest)


class _ExchangeHead(msgspec.Struct):
    """The part of a large exchange that the server decodes itself before a worker decodes the whole."""

    compute_node_id: int
    seq: int = 0


_HEAD: Final = msgspec.json.Decoder(_ExchangeHead)


class RunnerApi:
    """The routes of the exchange and of the creation from a plan."""

    def __init__(
        self, database: Database, changes: ChangeQueue, waiting_calls: WaitingCalls, large_bodies: LargeBodyPool
    ) -> None:
        self._database = database
        self._changes = changes
        self._waiting_calls = waiting_calls
        self._large_bodies = large_bodies

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(f"{API_PREFIX}/workflows/{{id}}/exchange", AsgiEndpoint(self.exchange), methods=["POST"]),
            Route(f"{API_PREFIX}{PLAN_PATH}", AsgiEndpoint(self.from_plan), methods=["POST"]),
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
        else:
            reply = await self._waited_exchange(request, caller, workflow_id, exchange_request)
        self._add_vacancies(workflow_id, exchange_request, reply)
        if exchange_request.want_unfinished and not reply.jobs:
            reply.unfinished = await self._read(partial(unfinished_counts, workflow_id=workflow_id))
        _log_exchange(request, exchange_request, reply)
        return json_response(reply)

    async def _waited_exchange(
        self, request: Request, caller: Caller, workflow_id: int, exchange_request: ExchangeRequest
    ) -> ExchangeReply:
        """Carry out an exchange that waits while there is nothing to answer."""
        node_id = exchange_request.compute_node_id
        deadline = asyncio.get_running_loop().time() + min(exchange_request.wait_s, MAX_WAIT_S)
        with self._waiting_calls.exchange(workflow_id, exchange_request) as call:
            with self._waiting_calls.reading(workflow_id, call):
                reply = await self._exchange(caller, workflow_id, exchange_request)
                self._add_vacancies(workflow_id, exchange_request, reply)
                is_empty = not _is_news(exchange_request, reply)
                if is_empty and await self._note_vacancy(call, workflow_id, exchange_request):
                    self._waiting_calls.end_exchanges_with_unstarted_jobs(workflow_id, node_id)
            while not _is_news(exchange_request, reply) and await self._wait(call, deadline, reply.due_in_s):
                if await request.is_disconnected():
                    break  # the runner would not receive the jobs
                with self._waiting_calls.reading(workflow_id, call):
                    if not await self._note_vacancy(call, workflow_id, exchange_request):
                        answer = await self._exchange(
                            caller, workflow_id, _without_reports(exchange_request), waited=True
                        )
                        if answer.is_superseded:  # another server has carried out a newer call
                            break
                        reply = answer
                        if not _is_news(exchange_request, reply):  # others took the jobs, or it cannot start them
                            await self._note_vacancy(call, workflow_id, exchange_request)
        return reply

    async def _note_vacancy(self, call: WaitingExchange, workflow_id: int, exchange_request: ExchangeRequest) -> bool:
        """Note what a call waits for; return whether the database has nothing for its runner.

        If it has something, the runner waits for nothing that others hold: it gets that, or cannot start it.
        """
        call.vacancy = None
        has_something = partial(has_something_for_runner, workflow_id=workflow_id, request=exchange_request)
        call.found_nothing = not await self._read(has_something)
        if call.found_nothing and exchange_request.slots > 0:
            call.vacancy = Vacancy(exchange_request.slots, exchange_request.free)
        return call.found_nothing

    def _add_vacancies(self, workflow_id: int, exchange_request: ExchangeRequest, reply: ExchangeReply) -> None:
        """Tell a runner that holds unstarted jobs which others wait for jobs."""
        if exchange_request.unstarted:
            reply.vacancies += self._waiting_calls.take_vacancies(workflow_id, exchange_request.compute_node_id)

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

    async def _read(self, query: Callable[[Tx], T]) -> T:
        """Carry out a short query: on a local database in the event loop."""
        if self._database.is_local:
            return self._read_now(query)
        return await run_in_threadpool(self._read_now, query)

    def _read_now(self, query: Callable[[Tx], T]) -> T:
        with self._database.read() as tx:
            return query(tx)

    async def _exchange(
        self, caller: Caller, workflow_id: int, exchange_request: ExchangeRequest, *, waited: bool = False
    ) -> ExchangeReply:
        change = partial(
            _permitted_exchange,
            caller=caller,
            workflow_id=workflow_id,
            exchange_request=exchange_request,
            do_others_wait=self._waiting_calls.have_others_vacancies(workflow_id, exchange_request.compute_node_id),
            waited=waited,
        )
        return cast("ExchangeReply", await self._changes.carry_out(change, workflow_id, is_short=True))

    async def from_plan(self, request: Request) -> Response:
        """Store a whole plan in one transaction; with ``initialize=true`` begin its first run."""
        if not holds_plan_lines(request):
            body = await request.body()
            if self._large_bodies.takes(body):
                return await self._large_bodies.carry_out("from_plan", request, body)
            return await run_in_threadpool(create_from_document, self._database, request, body)
        with await spooled_body(request) as spooled:
            create = partial(create_from_lines, self._database)
            if self._large_bodies.takes(spooled):
                return await self._large_bodies.carry_out_lines("from_plan_lines", create, request, spooled)
            return await run_in_threadpool(create, request, spooled)


def runner_api_operations(database: Database) -> dict[str, Callable[[Request, Any], Response]]:
    """Return the operations for large bodies; an exchange with a large body does not wait for jobs."""
    return {
        "exchange": partial(_large_exchange, database),
        "from_plan": partial(create_from_document, database),
        "from_plan_lines": partial(create_from_lines, database),
    }


def _large_exchange(database: Database, request: Request, body: bytes) -> Response:
    exchange_request = decode_body(_EXCHANGE, body)
    reply = _exchange_under_lock(database, caller_of(request), workflow_id_of(request), exchange_request)
    _log_exchange(request, exchange_request, reply)
    return json_response(reply)


def _exchange_under_lock(
    database: Database, caller: Caller, workflow_id: int, exchange_request: ExchangeRequest
) -> ExchangeReply:
    with database.write(workflow_id) as tx:
        return _permitted_exchange(tx, caller, workflow_id, exchange_request)


def _permitted_exchange(
    tx: Tx,
    caller: Caller,
    workflow_id: int,
    exchange_request: ExchangeRequest,
    *,
    do_others_wait: bool = False,
    waited: bool = False,
) -> ExchangeReply:
    if caller.is_restricted:
        check_workflow(tx, caller, workflow_id)
    return exchange(tx, workflow_id, exchange_request, do_others_wait=do_others_wait, waited=waited)


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
    return evolve(exchange_request, started=[], ended=[], released=[], waiting=[], holding=None, wait_s=0.0)


def _is_news(exchange_request: ExchangeRequest, reply: ExchangeReply) -> bool:
    """Return whether a reply holds anything that the runner must know now."""
    if reply.is_draining != exchange_request.is_draining:
        return True
    has_work = bool(reply.jobs or reply.refused or reply.vacancies)
    return has_work or reply.is_complete or reply.is_canceled or reply.is_superseded
