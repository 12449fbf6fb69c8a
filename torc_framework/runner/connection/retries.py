"""Calls that a run repeats at its beginning and its end, and how long a runner waits for retries of jobs."""

import math
import time
from collections.abc import Callable
from typing import Final, TypeVar

from attrs import define, fields

from torc_framework.errors import ApiError, ServerUnreachableError, TorcError
from torc_framework.models.records import WorkflowRecord
from torc_framework.models.responses import JobCounts
from torc_framework.runner.process.settings import Progress, ProgressListener, RunOutcome

LAST_PATIENCE_S: Final = 10.0
"""How long a runner that was interrupted, or closes its record, repeats a call to an unreachable server."""
RESULT_PATIENCE_S: Final = 60.0
"""How long a runner that has finished repeats its question for the result: a server may be starting again."""
LATE_S: Final = 5.0
"""How long a runner stays after a retry was due; another runner may have claimed it."""
_PAUSE_S: Final = 0.5
_LAST_PAUSE_S: Final = 2.0
"""The pause between two tries doubles from the first to the last."""
_T = TypeVar("_T")


def retry_until_answered(
    call: Callable[[], _T],
    patience_s: Callable[[ServerUnreachableError | ApiError], float] = lambda _trouble: LAST_PATIENCE_S,
) -> _T:
    """Make a call, and repeat it for a while if the server does not answer or fails (status 5xx).

    Args:
        call: The call.
        patience_s: Called after each failure; returns for how many seconds after the first call it is repeated in all.
    """
    began, pause_s = time.monotonic(), _PAUSE_S
    while True:
        try:
            return call()
        except (ServerUnreachableError, ApiError) as error:
            if not is_away(error) or time.monotonic() - began > patience_s(error):
                raise
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LAST_PAUSE_S)


def ask_patiently(call: Callable[[], _T], show: Callable[[str], bool], longest_s: float, after_signal_s: float) -> _T:
    """Make a call of a registered runner outside of its loop; repeat it while the server is away.

    Args:
        call: The call.
        show: Shows what is waited for; returns whether a signal has arrived.
        longest_s: For how many seconds it is repeated in all.
        after_signal_s: The same once a signal has arrived.
    """
    return retry_until_answered(call, lambda error: after_signal_s if show(str(error)) else longest_s)


def count_at_end(
    outcome: RunOutcome, count: Callable[[], JobCounts], known: dict[str, int] | None, show: Callable[[str], bool]
) -> None:
    """Store the numbers of jobs by status in the outcome of a run.

    Args:
        outcome: The outcome.
        count: Asks the server.
        known: The numbers if no job is unfinished: then the server has all results, and need not be there any more.
        show: See `ask_patiently`.
    """
    try:
        counted = ask_patiently(count, show, RESULT_PATIENCE_S, LAST_PATIENCE_S)
        outcome.counts, outcome.interrupted_jobs = counted.counts, counted.interrupted
    except TorcError as error:
        if known is None or not is_away(error):
            raise
        outcome.counts = known
        outcome.troubles.append(f"the server was away at the end of the run: {error}")


def is_away(error: BaseException) -> bool:
    """Return whether an error means that the server does not answer or fails, as without its database."""
    return isinstance(error, ServerUnreachableError) or (isinstance(error, ApiError) and error.status >= 500)


@define
class StartPatience:
    """How long a run that begins waits for a server or database that is away; people are told of it.

    Args:
        show: Shows what is waited for.
        minutes: ``compute_node_wait_for_healthy_database_minutes`` of the workflow, its default if that is not known.
    """

    show: ProgressListener | None
    minutes: int = int(fields(WorkflowRecord).compute_node_wait_for_healthy_database_minutes.default or 0)
    _is_shown: bool = False

    def wait_for(self, call: Callable[[], _T]) -> _T:
        """Make a call, and repeat it while the server is away; a host or certificate that is wrong is no such case."""
        answer = retry_until_answered(call, self._patience_s)
        if self._is_shown:
            self._show(None)
        return answer

    def _patience_s(self, error: ServerUnreachableError | ApiError) -> float:
        if isinstance(error, ServerUnreachableError) and error.is_permanent:
            return -math.inf
        if self.minutes:
            self._show(f"{error} (for {self.minutes} min at most; Ctrl-C ends the wait)")
        return self.minutes * 60.0

    def _show(self, trouble: str | None) -> None:
        self._is_shown = trouble is not None
        if self.show is not None:
            self.show(Progress({}, 0, trouble))


def stay_until(now: float, due_in_s: float | None) -> float:
    """Return until when a runner stays for a retry that is not due yet; minus infinity if there is none."""
    return -math.inf if due_in_s is None else now + due_in_s + LATE_S
