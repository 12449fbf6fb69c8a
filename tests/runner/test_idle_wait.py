"""How long a runner without a job stays, and what it says that it waits for."""

import math

import pytest

from torc_framework.errors import ServerUnreachableError
from torc_framework.models.exchange import ExchangeReply
from torc_framework.models.responses import JobCounts
from torc_framework.runner.connection.idle_wait import IdleWait


def idle_wait(counts: dict[str, int], *, awaits_people: bool = True) -> IdleWait:
    """Return the wait of a runner that stays 90 s and has just got no job, at the time 10."""
    wait = IdleWait(
        90.0, awaits_people=awaits_people, read_counts=lambda: JobCounts(counts, sum(counts.values())), began=10.0
    )
    wait.note_reply(ExchangeReply(), 10.0, is_idle=True)
    return wait


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"running": 2, "pending": 1, "blocked": 1}, "3 jobs that other runners hold"),
        ({"pending_failed": 1, "blocked": 1}, "a verdict on 1 job"),
        ({"uninitialized": 1}, "new jobs"),
    ],
)
def test_what_a_runner_waits_for(counts: dict[str, int], text: str) -> None:
    wait = idle_wait(counts)
    assert (wait.text(10.0) or "").endswith(f" for {text}")
    assert (wait.until(), wait.text(100.0)) == (100.0, None)


def test_nothing_but_a_person_can_let_it_go_on() -> None:
    """The runner ends at once; not so while a job can change its status without a person."""
    assert idle_wait({"pending_failed": 1, "blocked": 3}, awaits_people=False).until() == -math.inf
    assert idle_wait({"uninitialized": 1, "completed": 1}, awaits_people=False).until() == -math.inf
    for status in ("running", "pending", "ready"):
        assert idle_wait({"blocked": 3, status: 1}, awaits_people=False).until() == 100.0


def test_other_runners_ended_the_last_jobs_since_the_reply() -> None:
    """The next reply says that the workflow is complete: until then nothing is stuck."""
    assert idle_wait({"completed": 3, "failed": 1}, awaits_people=False).until() == 100.0


def test_a_job_ends_the_wait() -> None:
    wait = idle_wait({"pending_failed": 1}, awaits_people=False)
    wait.busy(50.0)
    assert (wait.until(), wait.text(50.0)) == (140.0, None)


def test_a_retry_is_waited_for_also_beyond_the_limit() -> None:
    wait = idle_wait({"pending_failed": 1}, awaits_people=False)
    wait.note_reply(ExchangeReply(due_in_s=600.0), 10.0, is_idle=True)
    assert wait.until() >= 10.0 + 600.0
    assert "for a retry that is due at " in (wait.text(10.0) or "")


def test_a_server_that_does_not_answer_changes_nothing() -> None:
    def unreachable() -> JobCounts:
        raise ServerUnreachableError("no Torc server answers")

    wait = IdleWait(90.0, awaits_people=False, read_counts=unreachable, began=0.0)
    wait.note_reply(ExchangeReply(), 0.0, is_idle=True)
    assert (wait.until(), wait.text(0.0)) == (90.0, None)
