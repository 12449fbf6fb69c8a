"""How long a runner without a job stays, and what it waits for."""

import math
import time
from collections.abc import Mapping
from typing import Final

from torc_framework.models.exchange import MOST_COUNTED_UNFINISHED, ExchangeReply
from torc_framework.models.statuses import LIVE, JobStatus
from torc_framework.runner.connection.retries import stay_until
from torc_framework.text.quantities import count_text

_HELD: Final = tuple(status.label for status in LIVE)
_CAN_CHANGE: Final = frozenset({*_HELD, JobStatus.READY.label})
"""Statuses of jobs that change without a person: while a workflow has one of them, a runner may get a job."""


class IdleWait:
    """The wait of a runner that has no job.

    Args:
        limit_s: How long it stays without a job.
        awaits_people: It also stays where nothing but a person can let it go on.
        began: When the runner began, by the monotonic clock.
    """

    def __init__(self, limit_s: float, *, awaits_people: bool, began: float) -> None:
        self._limit_s, self._awaits_people = limit_s, awaits_people
        self._last_busy = began
        self._is_stuck = False
        self._what = ""

    def busy(self, now: float) -> None:
        """The runner has, or was given, something to do."""
        self._last_busy, self._is_stuck, self._what = max(self._last_busy, now), False, ""

    def note_reply(self, reply: ExchangeReply, now: float, *, is_idle: bool) -> None:
        """Learn what there is to wait for from a reply."""
        self._last_busy = max(self._last_busy, stay_until(now, reply.due_in_s))
        if not is_idle or reply.is_complete or reply.is_canceled:
            self._is_stuck, self._what = False, ""
        elif reply.due_in_s is not None:
            self._is_stuck, self._what = False, f"a retry that is due at {_clock(reply.due_in_s)}"
        elif reply.unfinished is not None:
            self._note_unfinished(reply.unfinished)

    def _note_unfinished(self, unfinished: Mapping[str, int]) -> None:
        held = [unfinished.get(label, 0) for label in _HELD]
        judged = unfinished.get(JobStatus.PENDING_FAILED.label, 0)
        # Without unfinished jobs the workflow became complete while the server answered; the next reply tells that.
        self._is_stuck = bool(unfinished) and _CAN_CHANGE.isdisjoint(unfinished)
        if any(held):
            self._what = f"{_jobs_text(*held)} that other runners hold"
        elif judged:
            self._what = f"a verdict on {_jobs_text(judged)}"
        else:
            self._what = "new jobs"

    def until(self) -> float:
        """Return when to end if no job arrives before, by the monotonic clock."""
        return -math.inf if self._is_stuck and not self._awaits_people else self._last_busy + self._limit_s

    def text(self, now: float) -> str | None:
        """Return what the runner waits for, and until when; None if it does not wait."""
        left_s = self.until() - now
        return f"waits until {_clock(left_s)} for {self._what}" if self._what and left_s > 0 else None


def _jobs_text(*counted: int) -> str:
    """Return the number of jobs of some statuses, from the numbers up to which the server counts."""
    text = count_text(sum(counted), "job")
    return f"at least {text}" if MOST_COUNTED_UNFINISHED in counted else text


def _clock(in_s: float) -> str:
    """Return the time of day after this many seconds, in local time."""
    return time.strftime("%H:%M:%S", time.localtime(time.time() + in_s))
