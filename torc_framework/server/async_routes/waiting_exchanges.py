"""The runners' exchanges that wait for jobs of one workflow, and which of them a commit wakes.

A commit that concerns every runner, such as the end of the workflow, wakes all of them. A commit that made jobs ready
wakes a few of those with free places. An exchange that was woken reads from the database and then wakes further ones,
unless it found that no job is ready any more. So each ready job is seen by every exchange that could take it, or is
claimed, while the cost of one ready job does not grow with the number of exchanges that wait.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, takewhile
from typing import Final

from attrs import Factory, define

from torc_framework.models.exchange import Vacancy

WOKEN_BY_COMMIT: Final = 16
"""Most exchanges that a commit with ready jobs wakes."""
WOKEN_BY_READ: Final = 2
"""Most exchanges that an exchange wakes when it has read; more than one, so that many ready jobs soon wake many."""


@define(eq=False)
class WaitingCall:
    """One call that waits.

    Attributes:
        wake: Set when the call should read from the database.
        is_over: The call must answer now with what it has.
    """

    wake: asyncio.Event = Factory(asyncio.Event)
    is_over: bool = False

    def end(self) -> None:
        """Make the call answer now with what it has."""
        self.is_over = True
        self.wake.set()


@define(eq=False)
class WaitingExchange(WaitingCall):
    """A runner's exchange that waits for jobs.

    Attributes:
        node_id: The runner.
        seq: Number of its call.
        slots: Number of jobs that it could start now; without any, it is not woken for ready jobs.
        unstarted: Number of jobs that it holds and has not started.
        vacancy: What it waits for; None if it cannot start jobs, or none of the ready ones.
        is_vacancy_told: Another runner has been told of the vacancy.
        found_nothing: Its last read found that no job is ready, and nothing else for its runner.
        commits_read: Number of commits with ready jobs at its last read, as `WaitingExchanges` counts them.
        has_to_read: It was woken for ready jobs and has not read since.
    """

    node_id: int = 0
    seq: int = 0
    slots: int = 0
    unstarted: int = 0
    vacancy: Vacancy | None = None
    is_vacancy_told: bool = False
    found_nothing: bool = False
    commits_read: int = 0
    has_to_read: bool = False


class WaitingExchanges:
    """The exchanges that wait for jobs of one workflow; used in the event loop only.

    Args:
        woken_by_commit: Most of them that a commit with ready jobs wakes.
        woken_by_read: Most of them that one of them wakes when it has read.

    Attributes:
        all: All of them, in the order of their registration.
    """

    def __init__(self, woken_by_commit: int = WOKEN_BY_COMMIT, woken_by_read: int = WOKEN_BY_READ) -> None:
        self._woken_by_commit, self._woken_by_read = woken_by_commit, woken_by_read
        self.all: dict[WaitingExchange, None] = {}
        # Those with free places that are not being woken; the first one's last read is the longest ago.
        self._asleep: dict[WaitingExchange, None] = {}
        self._commits = 0
        self._commits_used_up = 0  # none of the jobs is left that became ready in this number of commits

    def add(self, exchange: WaitingExchange) -> None:
        """Add an exchange, which reads before it waits."""
        self.all[exchange] = None

    def remove(self, exchange: WaitingExchange) -> None:
        """Remove an exchange; if it was woken and has not read, others are woken in its place."""
        del self.all[exchange]
        self._asleep.pop(exchange, None)
        if exchange.has_to_read:
            self._wake_some(self._woken_by_read)

    def wake_all(self) -> None:
        """Wake every exchange."""
        self._asleep.clear()
        for exchange in self.all:
            exchange.wake.set()

    def wake_for_ready_jobs(self) -> None:
        """Wake a few exchanges with free places, after a commit that made jobs ready."""
        self._commits += 1
        self._wake_some(self._woken_by_commit)

    @contextmanager
    def reading(self, exchange: WaitingExchange) -> Iterator[None]:
        """Let an exchange read from the database in the block; wake others then, unless it `found_nothing`."""
        self._asleep.pop(exchange, None)
        if exchange.slots > 0:
            self._asleep[exchange] = None
        exchange.commits_read, exchange.has_to_read, exchange.found_nothing = self._commits, False, False
        try:
            yield
        finally:
            if exchange.found_nothing:
                self._commits_used_up = max(self._commits_used_up, exchange.commits_read)
            self._wake_some(self._woken_by_read)

    def _wake_some(self, count: int) -> None:
        """Wake exchanges that have not read since the last commit with ready jobs, unless none of its jobs is left."""
        if self._commits_used_up == self._commits:
            return
        unread = takewhile(lambda exchange: exchange.commits_read < self._commits, self._asleep)
        for exchange in list(islice(unread, count)):
            del self._asleep[exchange]
            exchange.has_to_read = True
            exchange.wake.set()
