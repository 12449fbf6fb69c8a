"""Job statuses, and the one table of legal transitions between them.

Names and numbers are those of Torc's HTTP contract (``job_status``). The database stores the number, JSON has the
lower-case name. The sets of statuses below are derived from the tables.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from attrs import frozen


class JobStatus(IntEnum):
    """Status of a job."""

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
        """The lower-case name, as in JSON and on the command line."""
        return self.name.lower()

    @classmethod
    def from_label(cls, label: str) -> "JobStatus":
        """Return the status of that name.

        Raises:
            ValueError: there is no status with this name.
        """
        try:
            return _BY_LABEL[label]
        except KeyError:
            raise ValueError(f"unknown job status {label!r}; known: {', '.join(_BY_LABEL)}") from None


_BY_LABEL: Final = {status.name.lower(): status for status in JobStatus}


@frozen
class StatusFacts:
    """Properties of a status.

    Attributes:
        description: One clause for people.
        unblocks: Dependents may start (Torc: "complete").
        ends_attempt: A job may have this status after its attempt ended.
        done: A workflow whose jobs are all in such a status is complete.
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
"""Statuses after which the store checks whether dependents can start."""
END: Final = frozenset(s for s, f in STATUS_FACTS.items() if f.ends_attempt)
"""Statuses that a job may have after its attempt ended."""
DONE: Final = frozenset(s for s, f in STATUS_FACTS.items() if f.done)
"""Statuses that count as finished for the workflow."""
UNFINISHED: Final = frozenset(JobStatus) - DONE
"""Statuses that keep the workflow from being complete."""
LIVE: Final = frozenset({JobStatus.PENDING, JobStatus.RUNNING})
"""Statuses in which a runner holds the job."""
FAILURES: Final = (JobStatus.FAILED, JobStatus.TERMINATED, JobStatus.PENDING_FAILED)
"""Statuses of jobs whose own attempt did not succeed, in the order in which texts list them."""
UNSUCCESSFUL: Final = (*FAILURES, JobStatus.CANCELED)
"""Statuses of jobs that ended without success, in the order in which texts list them."""


@frozen
class Transition:
    """One legal change of a job's status.

    Attributes:
        sources: Statuses from which it starts; a job in any other status is not changed.
        targets: Statuses to which it leads; if there are several, the caller chooses one.
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
        set(UNFINISHED), set(END), "a result was recorded for an unfinished job, also without a running attempt"
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
        {_S.PENDING, _S.RUNNING}, {_S.READY}, "the runner of the attempt is gone and the attempt's end was not observed"
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
"""All changes of a job's status; the store has one function for each."""


def is_allowed(name: str, source: JobStatus, target: JobStatus) -> bool:
    """Return whether transition ``name`` leads from ``source`` to ``target``."""
    transition = TRANSITIONS[name]
    return source in transition.sources and target in transition.targets
