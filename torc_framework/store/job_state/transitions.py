"""The transitions of jobs: one function for each row of `TRANSITIONS`, with the name of the row.

No other module writes ``job.status``. Each function runs one statement that changes only jobs in the old statuses of
its row; jobs in other statuses stay as they are. `propagation` does what follows from a change (dependents, action
triggers, events), in the same transaction.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.statuses import TRANSITIONS, JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, number, numbers, param
from torc_framework.store.tables.core import JOB

_NOT_WAITING: Final = {"waiting_reason": sa.null()}
NO_NODE: Final = {"active_compute_node_id": sa.null(), **_NOT_WAITING}
_WITHOUT_RESULT: Final = {"ended_badly": number(0), "result_id": sa.null(), "not_before": sa.null()}
_FIRST_ATTEMPT: Final = {**NO_NODE, **_WITHOUT_RESULT, "attempt_id": number(1)}
_NEXT_ATTEMPT: Final = {**_WITHOUT_RESULT, "attempt_id": JOB.c.attempt_id + number(1)}


def _change(name: str, *where: sa.ColumnElement[bool], status: Any = None, **values: Any) -> sa.Update:
    """Return the statement of one transition, which changes only jobs in its old statuses."""
    transition = TRANSITIONS[name]
    target = number(transition.target) if status is None else status
    guard = JOB.c.status.in_(numbers(transition.sources))
    if JobStatus.TERMINATED in transition.sources:
        values["is_interrupted"] = number(0)
    return sa.update(JOB).where(*where, guard).values(status=target, **values)


_THIS: Final = JOB.c.id == param("job")
_THESE: Final = JOB.c.id.in_(ids_param())
_ALL: Final = JOB.c.workflow_id == param("workflow")

_FOUND_BLOCKED = Statement(_change("found_blocked", _THESE, **_FIRST_ATTEMPT))
_RUN_AGAIN: Final = {**NO_NODE, **_WITHOUT_RESULT}
_FOUND_READY = Statement(
    _change("found_ready", _ALL, JOB.c.blockers == number(0), JOB.c.status != number(JobStatus.READY), **_RUN_AGAIN),
    "workflow",
)
_FOUND_READY_AGAIN = Statement(
    _change(
        "found_ready",
        _ALL,
        JOB.c.status.in_(numbers({JobStatus.TERMINATED, JobStatus.PENDING_FAILED})),
        **_RUN_AGAIN,
    ),
    "workflow",
)
_FOUND_READY_AMONG = Statement(_change("found_ready", _THESE, JOB.c.blockers == number(0), **_RUN_AGAIN))
_FOUND_READY_ALONE = Statement(_change("found_ready", _THIS, JOB.c.blockers == number(0), **_RUN_AGAIN), "job")
_ALL_FOUND_BLOCKED = Statement(
    _change("found_blocked", _ALL, JOB.c.blockers > number(0), JOB.c.status == number(JobStatus.UNINITIALIZED)),
    "workflow",
)
_UNBLOCKED = Statement(_change("unblocked", _THESE))
_BLOCKER_FAILED = Statement(_change("blocker_failed", _THESE, ended_badly=number(1)))
_CLAIMED = Statement(_change("claimed", _THESE, active_compute_node_id=param("node"), not_before=sa.null()), "node")
_RELEASED = Statement(_change("released", _THESE, **NO_NODE))
_STARTED = Statement(
    _change(
        "attempt_started",
        _THESE,
        active_compute_node_id=param("node"),
        started_s=param("now"),
        **_NOT_WAITING,
    ),
    *("node", "now"),
)
_ENDED = Statement(
    _change(
        "attempt_ended",
        _THIS,
        status=param("target"),
        ended_badly=param("badly"),
        result_id=param("result"),
        **NO_NODE,
    ),
    "target",
    "badly",
    "result",
    "job",
)
_RECORDED = Statement(
    _change(
        "recorded", _THIS, status=param("target"), ended_badly=param("badly"), result_id=param("result"), **NO_NODE
    ),
    "target",
    "badly",
    "result",
    "job",
)
_INTERRUPTED = Statement(
    _change(
        "attempt_interrupted",
        _THIS,
        result_id=param("result"),
        ended_badly=number(0),
        is_interrupted=number(1),
        **NO_NODE,
    ),
    "result",
    "job",
)
_RESUMED = Statement(_change("resumed", _THESE, JOB.c.is_interrupted != number(0), **NO_NODE, **_NEXT_ATTEMPT))
_RETRIED = Statement(_change("attempt_retried", _THESE, **NO_NODE, **_NEXT_ATTEMPT))
_LOST = Statement(_change("attempt_lost", _THESE, **NO_NODE, **_NEXT_ATTEMPT))
_CANCELED = Statement(_change("canceled", _ALL, **NO_NODE, ended_badly=number(1)), "workflow")
_ALL_RESET = Statement(_change("reset", _ALL, **_FIRST_ATTEMPT), "workflow")
_RESET = Statement(_change("reset", _THESE, **_FIRST_ATTEMPT))
_VERDICTS: Final[Mapping[JobStatus, Mapping[str, Any]]] = {
    JobStatus.FAILED: {"ended_badly": number(1)},
    JobStatus.READY: _NEXT_ATTEMPT,
    JobStatus.UNINITIALIZED: {name: value for name, value in _FIRST_ATTEMPT.items() if name not in NO_NODE},
}
_JUDGED = {
    target: Statement(_change("judged", _THIS, status=number(target), **NO_NODE, **values), "job")
    for target, values in _VERDICTS.items()
}
_DISABLED = Statement(_change("disabled", _THIS), "job")
_ENABLED = Statement(_change("enabled", _THIS), "job")


def found_blocked(tx: Tx, job_ids: Sequence[int]) -> int:
    """These jobs wait for jobs that will run again; their own results do not count any more."""
    return tx.add_count("found_blocked", tx.changed_for(_FOUND_BLOCKED, job_ids))


def all_found_blocked(tx: Tx, workflow_id: int) -> int:
    """`found_blocked` for every uninitialized job that has blockers."""
    return tx.add_count("found_blocked", tx.changed(_ALL_FOUND_BLOCKED, workflow_id))


def found_ready(tx: Tx, workflow_id: int) -> int:
    """All jobs of the workflow without blockers become ready."""
    return tx.add_count("found_ready", tx.changed(_FOUND_READY, workflow_id))


def found_ready_alone(tx: Tx, job_id: int) -> int:
    """`found_ready` for one job."""
    return tx.add_count("found_ready", tx.changed(_FOUND_READY_ALONE, job_id))


def found_ready_among(tx: Tx, job_ids: Sequence[int]) -> None:
    """`found_ready` for those of these jobs that have no blockers."""
    tx.count_for("found_ready", _FOUND_READY_AMONG, job_ids)


def found_ready_again(tx: Tx, workflow_id: int) -> int:
    """`found_ready` for terminated jobs and those in ``pending_failed``: they had no blockers when they ran."""
    return tx.add_count("found_ready", tx.changed(_FOUND_READY_AGAIN, workflow_id))


def unblocked(tx: Tx, job_ids: Sequence[int]) -> None:
    """The last blocker of these jobs is over."""
    tx.count_for("unblocked", _UNBLOCKED, job_ids)


def blocker_failed(tx: Tx, job_ids: Sequence[int]) -> None:
    """A blocker of these jobs ended badly, and they have ``cancel_on_blocking_job_failure``."""
    tx.count_for("blocker_failed", _BLOCKER_FAILED, job_ids)


def claimed(tx: Tx, node_id: int | None, job_ids: Sequence[int]) -> None:
    """A runner claimed these jobs."""
    tx.count_for("claimed", _CLAIMED, job_ids, node_id)


def released(tx: Tx, job_ids: Sequence[int]) -> None:
    """A runner released these jobs without starting them."""
    tx.count_for("released", _RELEASED, job_ids)


def attempt_started(tx: Tx, node_id: int | None, job_ids: Sequence[int]) -> None:
    """Attempts of these jobs began on a runner."""
    tx.count_for("attempt_started", _STARTED, job_ids, node_id, time.time())


def attempt_ended(tx: Tx, endings: Sequence[tuple[int, int, int | None, int]]) -> None:
    """Attempts ended; each ending is (status, whether it ended badly, id of its result, job)."""
    tx.count_each("attempt_ended", _ENDED, endings)


def attempt_interrupted(tx: Tx, endings: Sequence[tuple[int, int]]) -> None:
    """Attempts ended only because their runner had to end; each ending is (id of its result, job)."""
    tx.count_each("attempt_interrupted", _INTERRUPTED, endings)


def resumed(tx: Tx, job_ids: Sequence[int]) -> None:
    """Those of these jobs that are interrupted become ready for their next attempt."""
    tx.count_for("resumed", _RESUMED, job_ids)


def recorded(tx: Tx, job_id: int, target: JobStatus, *, badly: bool, result_id: int | None) -> int:
    """A single call reported how the job ended; any earlier status is accepted."""
    return tx.add_count("recorded", tx.changed(_RECORDED, int(target), int(badly), result_id, job_id))


def attempt_retried(tx: Tx, job_ids: Sequence[int]) -> None:
    """These jobs become ready for another attempt after a failed one."""
    tx.count_for("attempt_retried", _RETRIED, job_ids)


def attempt_lost(tx: Tx, job_ids: Sequence[int]) -> None:
    """The ends of these jobs' attempts were not observed; the jobs become ready for another."""
    tx.count_for("attempt_lost", _LOST, job_ids)


def canceled(tx: Tx, workflow_id: int) -> int:
    """The workflow was canceled: all jobs that runners hold are canceled."""
    return tx.add_count("canceled", tx.changed(_CANCELED, workflow_id))


def reset(tx: Tx, job_ids: Sequence[int]) -> int:
    """These jobs become uninitialized, with attempt 1."""
    return tx.add_count("reset", tx.changed_for(_RESET, job_ids))


def all_reset(tx: Tx, workflow_id: int) -> int:
    """`reset` for every job of the workflow."""
    return tx.add_count("reset", tx.changed(_ALL_RESET, workflow_id))


def judged(tx: Tx, job_id: int, target: JobStatus) -> int:
    """A verdict was given on a job in ``pending_failed``; if it becomes ready, it has its next attempt."""
    return tx.add_count("judged", tx.changed(_JUDGED[target], job_id))


def disabled(tx: Tx, job_id: int) -> int:
    """A user disabled the job."""
    return tx.add_count("disabled", tx.changed(_DISABLED, job_id))


def enabled(tx: Tx, job_id: int) -> int:
    """A user enabled the job again."""
    return tx.add_count("enabled", tx.changed(_ENABLED, job_id))
