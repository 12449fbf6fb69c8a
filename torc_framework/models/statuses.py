"""Job statuses, and the one table of legal transitions between them.

Names and numbers are those of Torc's HTTP contract (``job_status``); the database keeps the
number, JSON the lower-case name. Every set below is derived from the tables, never typed again.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from attrs import frozen


class JobStatus(IntEnum):
    """Where a job is in its life."""

    UNINITIALIZED = 0
    BLOCKED = 1
    READY = 2
    PENDING = 3
    RUNNING = 4
    COMPLETED = 5
    FAILED = 6
    CANCELED = 7
    TERMINATED = 8
    DISABLED = 9
    PENDING_FAILED = 10

    @property
    def label(self) -> str:
        """The name a person types and JSON carries."""
        return self.name.lower()

    @classmethod
    def from_label(cls, label: str) -> "JobStatus":
        """Return the status of that name.

        Raises:
            ValueError: no status has this name.
        """
        try:
            return _BY_LABEL[label]
        except KeyError:
            raise ValueError(f"unknown job status {label!r}; known: {', '.join(_BY_LABEL)}") from None


_BY_LABEL: Final = {status.name.lower(): status for status in JobStatus}


@frozen
class StatusFacts:
    """What is true of a status.

    Attributes:
        description: One sentence for people.
        unblocks: Dependents may go on (Torc: "complete").
        ends_attempt: An ended attempt may leave the job here.
        done: Counts as finished when the workflow's completion is asked.
    """

    description: str
    unblocks: bool = False
    ends_attempt: bool = False
    done: bool = False


STATUS_FACTS: Final[Mapping[JobStatus, StatusFacts]] = {
    JobStatus.UNINITIALIZED: StatusFacts("created; dependencies not evaluated yet"),
    JobStatus.BLOCKED: StatusFacts("waits for other jobs"),
    JobStatus.READY: StatusFacts("may be claimed by a runner"),
    JobStatus.PENDING: StatusFacts("claimed by a runner, not started"),
    JobStatus.RUNNING: StatusFacts("an attempt is running"),
    JobStatus.COMPLETED: StatusFacts("succeeded", unblocks=True, ends_attempt=True, done=True),
    JobStatus.FAILED: StatusFacts("failed", unblocks=True, ends_attempt=True, done=True),
    JobStatus.CANCELED: StatusFacts(
        "canceled by a person or by the failure of a dependency",
        unblocks=True,
        ends_attempt=True,
        done=True,
    ),
    JobStatus.TERMINATED: StatusFacts(
        "stopped by the system, such as at the end of the walltime",
        unblocks=True,
        ends_attempt=True,
        done=True,
    ),
    JobStatus.DISABLED: StatusFacts("taken out of the workflow by a person", done=True),
    JobStatus.PENDING_FAILED: StatusFacts("failed; waits for a verdict of a person or an assistant", ends_attempt=True),
}

UNBLOCKING: Final = frozenset(s for s, f in STATUS_FACTS.items() if f.unblocks)
"""Statuses after which dependents are looked at again."""
END: Final = frozenset(s for s, f in STATUS_FACTS.items() if f.ends_attempt)
"""Statuses in which an ended attempt may leave its job."""
DONE: Final = frozenset(s for s, f in STATUS_FACTS.items() if f.done)
"""Statuses that count as finished for the workflow."""
UNFINISHED: Final = frozenset(JobStatus) - DONE
"""Statuses that keep the workflow from being complete."""
LIVE: Final = frozenset({JobStatus.PENDING, JobStatus.RUNNING})
"""Statuses in which a runner holds the job."""


@frozen
class Transition:
    """One legal change of a job's status.

    Attributes:
        sources: Statuses it may start from; from any other it does nothing.
        target: The status it leads to, or None when the caller names one of ``targets``.
        targets: The statuses a caller may name.
        meaning: What happened, for people.
    """

    sources: frozenset[JobStatus]
    targets: frozenset[JobStatus]
    meaning: str

    @property
    def target(self) -> JobStatus:
        """The one target.

        Raises:
            ValueError: the transition has several targets.
        """
        (only,) = self.targets
        return only


def _transition(sources: set[JobStatus], targets: set[JobStatus], meaning: str) -> Transition:
    return Transition(frozenset(sources), frozenset(targets), meaning)


_S = JobStatus

TRANSITIONS: Final[Mapping[str, Transition]] = {
    "found_blocked": _transition(
        set(JobStatus) - {_S.DISABLED, _S.PENDING, _S.RUNNING}, {_S.BLOCKED}, "initialize found unfinished dependencies"
    ),
    "found_ready": _transition(
        {_S.UNINITIALIZED, _S.BLOCKED, _S.READY, _S.TERMINATED, _S.PENDING_FAILED},
        {_S.READY},
        "initialize found every dependency finished",
    ),
    "unblocked": _transition({_S.BLOCKED}, {_S.READY}, "the last dependency finished"),
    "blocker_failed": _transition(
        {_S.BLOCKED}, {_S.CANCELED}, "a dependency failed and the job asks to be canceled then"
    ),
    "claimed": _transition({_S.READY}, {_S.PENDING}, "a runner took the job"),
    "released": _transition({_S.PENDING}, {_S.READY}, "a runner gave the job back without starting it"),
    "attempt_started": _transition({_S.PENDING}, {_S.RUNNING}, "an attempt began"),
    "attempt_ended": _transition({_S.READY, _S.PENDING, _S.RUNNING}, set(END), "an attempt ended"),
    "recorded": _transition(
        set(UNFINISHED), set(END), "a result was recorded for the job, whatever it was waiting for"
    ),
    "attempt_interrupted": _transition(
        {_S.READY, _S.PENDING, _S.RUNNING}, {_S.TERMINATED}, "an attempt ended only because its runner had to end"
    ),
    "resumed": _transition({_S.TERMINATED}, {_S.READY}, "an interrupted job runs again"),
    "attempt_retried": _transition(
        {_S.PENDING, _S.RUNNING, _S.FAILED, _S.TERMINATED, _S.PENDING_FAILED},
        {_S.READY},
        "a failed attempt is followed by another",
    ),
    "attempt_lost": _transition(
        {_S.PENDING, _S.RUNNING}, {_S.READY}, "the runner of the attempt is gone, nobody knows its end"
    ),
    "canceled": _transition({_S.PENDING, _S.RUNNING}, {_S.CANCELED}, "the workflow was canceled"),
    "reset": _transition(
        set(JobStatus) - {_S.UNINITIALIZED, _S.DISABLED}, {_S.UNINITIALIZED}, "a person asked to run it again"
    ),
    "judged": _transition(
        {_S.PENDING_FAILED}, {_S.FAILED, _S.UNINITIALIZED, _S.READY}, "a verdict was given on a failure"
    ),
    "disabled": _transition({_S.UNINITIALIZED}, {_S.DISABLED}, "a person took the job out"),
    "enabled": _transition({_S.DISABLED}, {_S.UNINITIALIZED}, "a person put the job back"),
}
"""The only ways in which a job's status changes; the store has one function for each."""


def is_allowed(name: str, source: JobStatus, target: JobStatus) -> bool:
    """Say whether transition ``name`` leads from ``source`` to ``target``."""
    transition = TRANSITIONS[name]
    return source in transition.sources and target in transition.targets
