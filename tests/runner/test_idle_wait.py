"""How long a runner without a job stays, and what it says that it waits for."""

import math

import pytest

from torc_framework.models.exchange import MOST_COUNTED_UNFINISHED, ExchangeReply
from torc_framework.runner.connection.idle_wait import IdleWait


def idle_wait(unfinished: dict[str, int], *, awaits_people: bool = True) -> IdleWait:
    """Return the wait of a runner that stays 90 s and has just got no job, at the time 10."""
    wait = IdleWait(90.0, awaits_people=awaits_people, began=10.0)
    wait.note_reply(ExchangeReply(unfinished=unfinished), 10.0, is_idle=True)
    return wait


@pytest.mark.parametrize(
    ("unfinished", "text"),
    [
        ({"running": 2, "pending": 1, "blocked": 1}, "3 jobs that other runners hold"),
        ({"running": MOST_COUNTED_UNFINISHED, "pending": 1}, "at least 1,001 jobs that other runners hold"),
        ({"pending_failed": 1, "blocked": 1}, "a verdict on 1 job"),
        ({"uninitialized": 1}, "new jobs"),
    ],
)
def test_what_a_runner_waits_for(unfinished: dict[str, int], text: str) -> None:
    wait = idle_wait(unfinished)
    assert (wait.text(10.0) or "").endswith(f" for {text}")
    assert (wait.until(), wait.text(100.0)) == (100.0, None)


def test_nothing_but_a_person_can_let_it_go_on() -> None:
    """The runner ends at once; not so while a job can change its status without a person."""
    assert idle_wait({"pending_failed": 1, "blocked": 3}, awaits_people=False).until() == -math.inf
    assert idle_wait({"uninitialized": 1}, awaits_people=False).until() == -math.inf
    for status in ("running", "pending", "ready"):
        assert idle_wait({"blocked": 3, status: 1}, awaits_people=False).until() == 100.0


def test_other_runners_ended_the_last_jobs_since_the_reply() -> None:
    """The next reply says that the workflow is complete: until then nothing is stuck."""
    assert idle_wait({}, awaits_people=False).until() == 100.0


def test_a_job_ends_the_wait() -> None:
    wait = idle_wait({"pending_failed": 1}, awaits_people=False)
    wait.busy(50.0)
    assert (wait.until(), wait.text(50.0)) == (140.0, None)


def test_a_retry_is_waited_for_also_beyond_the_limit() -> None:
    wait = idle_wait({"pending_failed": 1}, awaits_people=False)
    wait.note_reply(ExchangeReply(due_in_s=600.0), 10.0, is_idle=True)
    assert wait.until() >= 10.0 + 600.0
    assert "for a retry that is due at " in (wait.text(10.0) or "")


def test_a_reply_without_the_numbers_changes_nothing() -> None:
    wait = IdleWait(90.0, awaits_people=False, began=0.0)
    wait.note_reply(ExchangeReply(), 0.0, is_idle=True)
    assert (wait.until(), wait.text(0.0)) == (90.0, None)
