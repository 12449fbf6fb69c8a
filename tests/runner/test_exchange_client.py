"""The conversation with the server when answers get lost, and when calls are made at all."""

import threading
from collections.abc import Iterator

import pytest
from attrs import define, field

from torc_framework.errors import ApiError, ServerUnreachableError
from torc_framework.models.exchange import (
    ClaimedJob,
    EndedReport,
    ExchangeReply,
    ExchangeRequest,
    StartedReport,
    WaitingReport,
)
from torc_framework.models.resources import Resources
from torc_framework.runner.connection.exchange_client import (
    BATCH,
    LINGER_S,
    ExchangeAnswer,
    ExchangeClient,
    RunnerDemand,
)

ROOM = RunnerDemand(slots=1, starving=True)
BUSY = RunnerDemand(may_wait=False)


@define
class Line:
    """A server whose answers the test gives one by one."""

    requests: list[ExchangeRequest] = field(factory=list)
    answers: list[ExchangeReply | Exception] = field(factory=list)
    woken: threading.Semaphore = field(factory=lambda: threading.Semaphore(0))

    def exchange(self, workflow_id: int, request: ExchangeRequest, *, timeout: float) -> ExchangeReply:
        """Return the next answer of the script."""
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def line() -> Line:
    """Return a line without answers."""
    return Line()


@pytest.fixture
def client(line: Line) -> Iterator[ExchangeClient]:
    """Return an exchange client of the scripted server."""
    made = ExchangeClient(line, lambda: ExchangeRequest(1, 1), 1, line.woken.release, patience_s=10)
    yield made
    made.close()


def ended(job_id: int) -> EndedReport:
    """Return the report on an ended attempt."""
    return EndedReport(job_id, 1, "completed", 0, 1.0, 1.0)


def say(
    client: ExchangeClient, line: Line, now: float, wishes: RunnerDemand = ROOM, holding: list[int] | None = None
) -> list[ExchangeAnswer]:
    """Make the calls that are due, and wait for the answer."""
    before = len(line.requests)
    client.pump(now, wishes, lambda: holding or [])
    if len(line.requests) == before and client.is_idle():
        return []
    assert line.woken.acquire(timeout=10)
    return client.answers(now)


def test_reports_linger_only_while_there_is_work(client: ExchangeClient, line: Line) -> None:
    """A starving runner reports at once, a busy one after `LINGER_S`, or with `BATCH` reports."""
    line.answers = [ExchangeReply()] * 3
    client.report_ended(ended(1), 0.0)
    assert say(client, line, 0.0)[0].request.ended == [ended(1)]
    client.report_ended(ended(2), 1.0)
    client.pump(1.01, BUSY, list)
    assert len(line.requests) == 1
    assert client.next_due(1.01, BUSY) == pytest.approx(1.0 + LINGER_S)
    assert say(client, line, 1.001 + LINGER_S, BUSY)
    for number in range(BATCH):
        client.report_ended(ended(number), 2.0)
    assert len(say(client, line, 2.0, BUSY)[0].request.ended) == BATCH


def test_the_way_to_the_server_is_measured(client: ExchangeClient, line: Line) -> None:
    """By calls with reports; how long the server holds a waiting call says nothing about the way."""
    line.answers = [ExchangeReply()] * 21
    for number in range(20):
        client.report_ended(ended(number), 10.0 * number)
        client.pump(10.0 * number, ROOM, list)
        assert line.woken.acquire(timeout=10)
        client.answers(10.0 * number + 0.4)
    assert client.round_trip_s == pytest.approx(0.4, rel=0.01)
    client.pump(300.0, RunnerDemand(), list)
    assert line.woken.acquire(timeout=10)
    client.answers(320.0)
    assert client.round_trip_s == pytest.approx(0.4, rel=0.01)


def test_an_end_says_that_it_began(client: ExchangeClient, line: Line) -> None:
    """Start and end of a short attempt are one report."""
    line.answers = [ExchangeReply()]
    client.report_started(StartedReport(1, 1, 0.5), 0.0)
    client.report_ended(ended(1), 0.0)
    (answer,) = say(client, line, 0.0)
    assert answer.request.started == []


def test_waits_only_when_it_is_quiet(client: ExchangeClient, line: Line) -> None:
    """A waiting call is made when nothing was said for a while, and without reports."""
    line.answers = [ExchangeReply(), ExchangeReply()]
    client.report_ended(ended(1), 0.0)
    assert say(client, line, 0.0)[0].request.wait_s == 0
    client.pump(0.01, RunnerDemand(), list)
    assert len(line.requests) == 1
    assert say(client, line, 0.06, RunnerDemand())[0].request.wait_s > 0


def test_lost_answers_are_asked_for_again(client: ExchangeClient, line: Line) -> None:
    """The same reports are sent in the same order, with all held jobs."""
    line.answers = [ServerUnreachableError("gone"), ServerUnreachableError("gone"), ExchangeReply()]
    client.report_ended(ended(1), 0.0)
    client.release([7], 0.0)
    assert say(client, line, 0.0) == []
    client.report_ended(ended(2), 0.01)
    client.pump(0.05, ROOM, list)
    assert len(line.requests) == 1, "not before the pause is over"
    assert say(client, line, 0.11, holding=[3, 4]) == []
    (answer,) = say(client, line, 1.0, holding=[3])
    assert [each.job_id for each in answer.request.ended] == [1, 2]
    assert answer.request.released == [7]
    assert answer.request.holding == [3]
    assert [request.seq for request in line.requests] == [1, 2, 3]
    line.answers = [ExchangeReply()]
    client.report_ended(ended(3), 2.0)
    assert say(client, line, 2.0)[0].request.holding is None


def test_a_lost_waiting_call_may_have_carried_jobs(client: ExchangeClient, line: Line) -> None:
    """The next call lists the held jobs."""
    job = ClaimedJob(5, "a", "true", 1, Resources())
    line.answers = [ServerUnreachableError("gone"), ExchangeReply(jobs=[job])]
    assert say(client, line, 1.0, RunnerDemand()) == []
    (answer,) = say(client, line, 2.0, RunnerDemand(), holding=[1])
    assert answer.request.holding == [1]
    assert answer.reply is not None
    assert answer.reply.jobs == [job]


def test_patience_has_an_end(client: ExchangeClient, line: Line) -> None:
    """After it the error is raised; nothing was dropped."""
    line.answers = [ServerUnreachableError("gone")] * 2
    client.report_ended(ended(1), 0.0)
    say(client, line, 0.0)
    with pytest.raises(ServerUnreachableError):
        say(client, line, 11.0)
    assert client.outbox.ended == [ended(1)]


@pytest.mark.parametrize(("status", "tries"), [(422, False), (404, False), (503, True), (500, True), (429, True)])
def test_a_refusal_is_final(client: ExchangeClient, line: Line, status: int, tries: bool) -> None:
    """The server said no; only its own troubles pass."""
    line.answers = [ApiError(status, "no")]
    client.report_ended(ended(1), 0.0)
    if tries:
        assert say(client, line, 0.0) == []
        assert client.is_failing
    else:
        with pytest.raises(ApiError):
            say(client, line, 0.0)


def test_what_attempts_wait_for_is_sent_again_unless_there_is_something_newer(
    client: ExchangeClient, line: Line
) -> None:
    """After a failed call the newest reason of each attempt is sent, once."""
    line.answers += [ServerUnreachableError("gone"), ExchangeReply()]
    client.report_waiting([], 0.0)
    assert client.is_idle()
    client.report_waiting([WaitingReport(1, 1, "old"), WaitingReport(2, 1, "same")], 0.0)
    say(client, line, 1.0, BUSY)
    client.report_waiting([WaitingReport(1, 1, "new")], 1.0)
    say(client, line, 9.0, BUSY)
    assert line.requests[1].waiting == [WaitingReport(1, 1, "new"), WaitingReport(2, 1, "same")]
    assert client.is_idle()
