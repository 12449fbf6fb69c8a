"""How long a runner without a job stays, and what it waits for."""

import math
import time
from collections.abc import Callable
from typing import Final

from torc_framework.errors import TorcError
from torc_framework.models.exchange import ExchangeReply
from torc_framework.models.responses import JobCounts
from torc_framework.models.statuses import LIVE, UNFINISHED, JobStatus
from torc_framework.runner.connection.retries import stay_until
from torc_framework.text.quantities import count_text

_HELD: Final = tuple(status.label for status in LIVE)
_CAN_CHANGE: Final = (*_HELD, JobStatus.READY.label)
"""Statuses of jobs that change without a person: while a workflow has one of them, a runner may get a job."""

_NOT_DONE: Final = tuple(status.label for status in UNFINISHED)


class IdleWait:
    """The wait of a runner that has no job.

    Args:
        limit_s: How long it stays without a job.
        awaits_people: It also stays where nothing but a person can let it go on.
        read_counts: Queries the numbers of jobs by status.
        began: When the runner began, by the monotonic clock.
    """

    def __init__(
        self, limit_s: float, *, awaits_people: bool, read_counts: Callable[[], JobCounts], began: float
    ) -> None:
        self._limit_s, self._awaits_people, self._read_counts = limit_s, awaits_people, read_counts
        self._last_busy = began
        self._is_stuck = False
        self._what = ""

    def busy(self, now: float) -> None:
        """The runner has, or was given, something to do."""
        self._last_busy, self._is_stuck, self._what = max(self._last_busy, now), False, ""

    def note_reply(self, reply: ExchangeReply, now: float, *, is_idle: bool) -> None:
        """Learn what there is to wait for from a reply; an idle runner that got no job also queries the counts."""
        self._last_busy = max(self._last_busy, stay_until(now, reply.due_in_s))
        if not is_idle or reply.is_complete or reply.is_canceled:
            self._is_stuck, self._what = False, ""
        elif reply.due_in_s is not None:
            self._is_stuck, self._what = False, f"a retry that is due at {_clock(reply.due_in_s)}"
        else:
            self._look()

    def _look(self) -> None:
        try:
            counts = self._read_counts().counts
        except TorcError:
            return  # the next call of the exchange reports the trouble
        held = sum(counts.get(label, 0) for label in _HELD)
        judged = counts.get(JobStatus.PENDING_FAILED.label, 0)
        # Without unfinished jobs the workflow became complete since the reply, and the next reply tells that.
        self._is_stuck = any(map(counts.get, _NOT_DONE)) and not any(map(counts.get, _CAN_CHANGE))
        if held:
            self._what = f"{count_text(held, 'job')} that other runners hold"
        elif judged:
            self._what = f"a verdict on {count_text(judged, 'job')}"
        else:
            self._what = "new jobs"

    def until(self) -> float:
        """Return when to end if no job arrives before, by the monotonic clock."""
        return -math.inf if self._is_stuck and not self._awaits_people else self._last_busy + self._limit_s

    def text(self, now: float) -> str | None:
        """Return what the runner waits for, and until when; None if it does not wait."""
        left_s = self.until() - now
        return f"waits until {_clock(left_s)} for {self._what}" if self._what and left_s > 0 else None


def _clock(in_s: float) -> str:
    """Return the time of day after this many seconds, in local time."""
    return time.strftime("%H:%M:%S", time.localtime(time.time() + in_s))
