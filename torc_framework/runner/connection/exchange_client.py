"""The client side of the exchange: carries reports to the server and jobs back, in threads of its own.

Two calls can be under way: one that reports, and one that only waits on the server for jobs. A report never waits
behind the waiting call: the server answers an older call of a runner as soon as a newer one arrives.

If an answer does not arrive, the server may have claimed jobs for this runner that the runner does not know of. The
next call therefore lists every held job (``holding``), and is made only when no other call is under way. The server
then hands out what got lost, and nothing twice. docs/explanation/exchange-and-takeover.md has a worked example.
"""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, Protocol

from attrs import Factory, define

from torc_framework.errors import ApiError, ServerUnreachableError
from torc_framework.models.exchange import (
    EndedReport,
    ExchangeReply,
    ExchangeRequest,
    Offer,
    StartedReport,
    WaitingReport,
)
from torc_framework.models.responses import DATABASE_GONE
from torc_framework.runner.connection.retries import LAST_PATIENCE_S
from torc_framework.system.processes import start_thread_with_retry

LINGER_S: Final = 0.05
"""How long reports are collected while there is enough to do."""
BATCH: Final = 256
"""This many reports are sent without waiting for more."""
MAX_BATCH: Final = 5000
"""Most reports in one call."""
QUIET_S: Final = 0.05
"""How long after the last answer a waiting call is made."""
QUIET_WITH_UNSTARTED_S: Final = 0.02
"""The same while jobs are held that have not started: the waiting call tells of runners that could start them."""
TIMEOUT_S: Final = 60.0
"""Time limit of a call."""
INLINE_TIMEOUT_S: Final = 10.0
"""Time limit of a call in the runner's own thread, which handles no signals meanwhile."""
WAIT_S: Final = 20.0
"""How long the server may hold a waiting call."""
FIRST_RETRY_S: Final = 0.1
LAST_RETRY_S: Final = 5.0
"""The pause between two tries doubles from the first to the last."""
ROUND_TRIP_WEIGHT: Final = 0.3
"""Weight of the newest call in the smoothed time of calls."""
SILENCE_S: Final = 1.5
"""How long calls fail, or one is not answered, before that counts as trouble that people are told of."""
_TRANSIENT_STATUSES: Final = frozenset({408, 425, 429})
"""Statuses below 500 after which a call is repeated: timeout, too early, too many requests (RFC 9110, 8470, 6585)."""


_LOG: Final = logging.getLogger("torc_framework.runner")


class ExchangeServer(Protocol):
    """The server, as `TorcClient` presents it."""

    def exchange(self, workflow_id: int, request: ExchangeRequest, *, timeout: float) -> ExchangeReply:
        """Send a request and return the reply."""


@define(kw_only=True)
class RunnerDemand(Offer):
    """The runner's offer at this moment, and what decides when the next call is made.

    Attributes:
        starving: There is room but no job to start, so that reports are sent without delay.
        alone: No job is held at all, so that the runner's own thread makes the call.
        ask: There is room and the server has not been asked since, so that a call is made without any report.
        may_wait: A waiting call makes sense.
        flush: Send all reports now, and end the waiting call.
        counts: Ask for counts.
        recount: A call is made without any report, for counts.
        unstarted: Number of jobs that are held and not started.
        running_out: Ids of running jobs for whose chains the call asks.
    """

    starving: bool = False
    alone: bool = False
    ask: bool = False
    may_wait: bool = True
    flush: bool = False
    counts: bool = False
    recount: bool = False
    unstarted: int = 0
    running_out: list[int] = Factory(list)


@define
class ExchangeAnswer:
    """The outcome of one call: a reply or an error."""

    request: ExchangeRequest
    reply: ExchangeReply | None = None
    error: Exception | None = None


class ExchangeThread:
    """A thread that makes one call at a time and wakes the runner after each."""

    def __init__(
        self, call: Callable[[ExchangeRequest, float], ExchangeReply], wake: Callable[[], None], name: str
    ) -> None:
        self._call, self._wake, self._name = call, wake, name
        self._requests: SimpleQueue[ExchangeRequest | None] = SimpleQueue()
        self._answers: SimpleQueue[ExchangeAnswer] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.current: ExchangeRequest | None = None

    def send(self, request: ExchangeRequest) -> None:
        """Make a call; no other may be under way."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            start_thread_with_retry(self._thread)
        self.current = request
        self._requests.put(request)

    def call(self, request: ExchangeRequest) -> None:
        """Make a call in the thread that calls this, which saves two changes of thread."""
        self.current = request
        self._answers.put(self._answer(request, INLINE_TIMEOUT_S))

    def has_answer(self) -> bool:
        """Return whether the current call is over."""
        return not self._answers.empty()

    def take(self) -> ExchangeAnswer | None:
        """Return the answer to the current call; None if it has not arrived."""
        if self.current is None or self._answers.empty():
            return None
        self.current = None
        return self._answers.get()

    def close(self) -> None:
        """End the thread, and with it its connection, after the current call if there is one."""
        self._requests.put(None)
        if self._thread is not None and self.current is None:
            self._thread.join()

    def _work(self) -> None:
        while (request := self._requests.get()) is not None:
            self._answers.put(self._answer(request, TIMEOUT_S))
            self._wake()

    def _answer(self, request: ExchangeRequest, timeout_s: float) -> ExchangeAnswer:
        try:
            return ExchangeAnswer(request, self._call(request, timeout_s))
        except Exception as error:  # raised again where the answer is read
            return ExchangeAnswer(request, error=error)


@define
class Outbox:
    """Reports that have not been sent, or whose call failed."""

    started: dict[tuple[int, int], StartedReport] = Factory(dict)
    ended: list[EndedReport] = Factory(list)
    released: list[int] = Factory(list)
    waiting: dict[tuple[int, int], WaitingReport] = Factory(dict)
    since: float = 0.0
    """When the oldest of them was added."""

    def __len__(self) -> int:
        return len(self.started) + len(self.ended) + len(self.released) + len(self.waiting)


class ExchangeClient:
    """Exchanges reports and jobs with the server.

    Attributes:
        trouble: Why the server could not carry out the last call; None once it can. The call is repeated meanwhile.
        is_draining: The newest reply says that the runner is to take no more jobs.
        round_trip_s: How long calls with reports take, smoothed, in seconds.

    Args:
        server: The server.
        base: Makes a request with the fields that all requests share: run, compute node, sort method, scheduler.
        workflow_id: The workflow.
        wake: Called in another thread when an answer has arrived.
        patience_s: How long calls are repeated before the server counts as unreachable.
    """

    def __init__(
        self,
        server: ExchangeServer,
        base: Callable[[], ExchangeRequest],
        workflow_id: int,
        wake: Callable[[], None],
        patience_s: float,
    ) -> None:
        def call(request: ExchangeRequest, timeout_s: float) -> ExchangeReply:
            return server.exchange(workflow_id, request, timeout=timeout_s)

        self._base, self.patience_s, self._workflow_id = base, patience_s, workflow_id
        self.trouble: str | None = None
        self._reporter = ExchangeThread(call, wake, "torc-report")
        self._waiter = ExchangeThread(call, wake, "torc-wait")
        self.outbox = Outbox()
        self._seq = 0
        self._drain_seq = 0
        self.is_draining = False
        self.round_trip_s = 0.0
        self._last_answer_at = float("-inf")
        self._answer_lost = False
        self._failing_since: float | None = None
        self._sent_at = 0.0
        self._retry_at = 0.0
        self._retry_pause_s = FIRST_RETRY_S

    # --- reports ---------------------------------------------------------------------------------

    def report_started(self, report: StartedReport, now: float) -> None:
        """Report that an attempt began."""
        self._note_oldest(now)
        self.outbox.started[report.job_id, report.attempt_id] = report

    def report_ended(self, report: EndedReport, now: float) -> None:
        """Report that an attempt ended; a report of its start that was not sent is dropped."""
        self._note_oldest(now)
        self.outbox.started.pop((report.job_id, report.attempt_id), None)
        self.outbox.ended.append(report)

    def release(self, job_ids: list[int], now: float) -> None:
        """Release jobs that have not begun."""
        if job_ids:
            self._note_oldest(now)
            self.outbox.released += job_ids

    def report_waiting(self, reports: list[WaitingReport], now: float) -> None:
        """Report what attempts wait for; the server ignores it for those that have begun."""
        if reports:
            self._note_oldest(now)
            self.outbox.waiting |= {(report.job_id, report.attempt_id): report for report in reports}

    def forget(self, job_id: int) -> list[EndedReport]:
        """Drop the reports on a job; return those on its end."""
        box = self.outbox
        box.started = {key: report for key, report in box.started.items() if key[0] != job_id}
        box.waiting = {key: report for key, report in box.waiting.items() if key[0] != job_id}
        dropped = [report for report in box.ended if report.job_id == job_id]
        box.ended = [report for report in box.ended if report.job_id != job_id]
        return dropped

    def _note_oldest(self, now: float) -> None:
        if not self.outbox:
            self.outbox.since = now

    def is_idle(self) -> bool:
        """Return whether no call is under way, no report waits and no answer is missing."""
        is_quiet = self._reporter.current is None and self._waiter.current is None
        return is_quiet and not self.outbox and not self._answer_lost

    def close(self) -> None:
        """Make no more calls."""
        self._reporter.close()
        self._waiter.close()

    @property
    def is_failing(self) -> bool:
        """Whether the last call failed."""
        return self._failing_since is not None

    # --- calls -----------------------------------------------------------------------------------

    def pump(self, now: float, demand: RunnerDemand, holding: Callable[[], list[int]]) -> None:
        """Make the calls that are due."""
        if self._reporter.current is not None and now - self._sent_at >= SILENCE_S and self.trouble is None:
            self._note_trouble(f"it has not answered for {SILENCE_S:g} s")
        if now < self._retry_at or self._reporter.current is not None:
            return
        self._sent_at = now
        if self._answer_lost:
            if self._waiter.current is None:
                self._reporter.send(self._request(demand, holding()))
        elif self._is_due(now, demand):
            report = self._reporter.call if demand.alone else self._reporter.send
            report(self._request(demand))
        elif self._may_wait(now, demand):
            request = self._request(demand)
            request.wait_s = WAIT_S
            self._waiter.send(request)

    def _is_due(self, now: float, demand: RunnerDemand) -> bool:
        if not self.outbox:
            waiting = self._waiter.current
            return (
                demand.recount
                or (demand.ask and (waiting is None or not waiting.slots))
                or (demand.flush and waiting is not None and waiting.seq == self._seq)
            )
        has_room = demand.starving and bool(self.outbox.ended or self.outbox.released)
        is_urgent = has_room or demand.flush or self.outbox.released or len(self.outbox) >= BATCH
        return bool(is_urgent) or now - self.outbox.since >= LINGER_S

    def _may_wait(self, now: float, demand: RunnerDemand) -> bool:
        quiet = not self.outbox and now - self._last_answer_at >= _quiet_s(demand)
        return demand.may_wait and not demand.flush and quiet and self._waiter.current is None

    def _request(self, demand: RunnerDemand, holding: list[int] | None = None) -> ExchangeRequest:
        request = self._base()
        self._seq += 1
        request.seq = self._seq
        box = self.outbox
        request.started, request.waiting = list(box.started.values()), list(box.waiting.values())
        request.released = box.released
        request.ended, rest = box.ended[:MAX_BATCH], box.ended[MAX_BATCH:]
        self.outbox = Outbox(ended=rest, since=box.since)
        request.holding = holding
        request.slots, request.free, request.total = demand.slots, demand.free, demand.total
        request.ahead, request.want_counts, request.unstarted = demand.ahead, demand.counts, demand.unstarted
        request.want_following, request.want_unfinished = demand.running_out, demand.alone and demand.slots > 0
        request.is_draining = self.is_draining
        return request

    def answers(self, now: float) -> list[ExchangeAnswer]:
        """Return the replies that have arrived.

        Raises:
            ApiError: the server refused a call.
            ServerUnreachableError: calls have failed for longer than ``patience_s``.
        """
        arrived = [answer for caller in (self._reporter, self._waiter) if (answer := caller.take())]
        for answer in arrived:
            if answer.error is not None:
                self._failed(answer.request, answer.error, now)
            elif answer.reply is not None and answer.reply.is_superseded:
                self._put_back(answer.request)
                answer.reply = None
            else:
                self._succeeded(answer.request, now)
                if answer.reply is not None and answer.request.seq > self._drain_seq:
                    self._drain_seq, self.is_draining = answer.request.seq, answer.reply.is_draining
        return [answer for answer in arrived if answer.reply is not None]

    def _succeeded(self, request: ExchangeRequest, now: float) -> None:
        self._last_answer_at = now
        if not request.wait_s:
            self.round_trip_s += ROUND_TRIP_WEIGHT * (now - self._sent_at - self.round_trip_s)
        self._failing_since, self._retry_pause_s, self._retry_at = None, FIRST_RETRY_S, 0.0
        if self.trouble is not None:
            self.trouble = None
            _LOG.info("event=server_answers_again")
        if request.holding is not None:
            self._answer_lost = False

    def _put_back(self, request: ExchangeRequest) -> None:
        """Put the reports of a call whose answer is lost back into the outbox; the next one says what is held."""
        self._answer_lost = True
        box = self.outbox
        started = {(report.job_id, report.attempt_id): report for report in request.started}
        over = {(report.job_id, report.attempt_id) for report in box.ended}
        box.started = {key: report for key, report in (started | box.started).items() if key not in over}
        box.ended = request.ended + box.ended
        box.released = request.released + box.released
        box.waiting = {(report.job_id, report.attempt_id): report for report in request.waiting} | box.waiting

    def _failed(self, request: ExchangeRequest, error: Exception, now: float) -> None:
        """Schedule another call with the reports of this one, unless the server refused it."""
        self._put_back(request)
        is_transient = isinstance(error, ServerUnreachableError) or (
            isinstance(error, ApiError) and (error.status >= 500 or error.status in _TRANSIENT_STATUSES)
        )
        if self._failing_since is None:
            self._failing_since = now
        failing_s = now - self._failing_since
        if not is_transient:
            raise error
        if _is_database_gone(error) and failing_s > min(LAST_PATIENCE_S, self.patience_s):
            raise self._given_up(error, "put the file back, and ")
        if failing_s > self.patience_s:
            raise self._given_up(error) if isinstance(error, ApiError) else error
        if str(error) != self.trouble and (failing_s >= SILENCE_S or getattr(error, "status", 0) >= 500):
            self._note_trouble(str(error))
        self._retry_at = now + self._retry_pause_s
        self._retry_pause_s = min(2 * self._retry_pause_s, LAST_RETRY_S)

    def _note_trouble(self, trouble: str) -> None:
        self.trouble = trouble
        _LOG.info("event=server_cannot_go_on reason=%r patience_s=%.0f", trouble, self.patience_s)

    def _given_up(self, error: Exception, first: str = "") -> ServerUnreachableError:
        """Return the error that ends the runner, with the command that continues.

        Args:
            first: What a person must do before.
        """
        unreachable = ServerUnreachableError(
            f"{error}; what ended since is kept: {first}'torc run {self._workflow_id}' goes on"
        )
        unreachable.__cause__ = error
        return unreachable

    def next_due(self, now: float, demand: RunnerDemand) -> float | None:
        """Return when `pump` should be called again; None if there is nothing to do before an answer arrives."""
        waits = self._waiter.current is not None
        if self._reporter.has_answer():
            return now
        if self._reporter.current is not None or (self._answer_lost and waits):
            return None
        if self._answer_lost or now < self._retry_at:
            return self._retry_at
        if self.outbox:
            return self.outbox.since + LINGER_S
        return self._last_answer_at + _quiet_s(demand) if demand.may_wait and not waits else None


def _quiet_s(demand: RunnerDemand) -> float:
    """Return how long after the last answer a waiting call is made, in seconds."""
    return QUIET_WITH_UNSTARTED_S if demand.unstarted else QUIET_S


def _is_database_gone(error: Exception) -> bool:
    """Return whether the server answers but its database file is gone."""
    body = error.body if isinstance(error, ApiError) else None
    details = body.get("error") if isinstance(body, dict) else None
    return isinstance(details, dict) and details.get("error") == DATABASE_GONE
