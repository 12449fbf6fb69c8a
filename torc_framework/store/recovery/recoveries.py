"""Recovers a workflow: raises the resource requirements of failed jobs and makes them run again, in one transaction.

Only the named jobs and all jobs downstream of them are reset; every other job keeps its status, also terminated ones.
Requirements that other jobs share are not changed: the recovered jobs get records of their own. Ephemeral user data is
kept, because the jobs that wrote it do not run again.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from attrs import evolve, frozen

from torc_framework.models.recovery import RecoveryEntry, RecoveryOrder, RecoveryReceipt, Repair
from torc_framework.models.resources import format_duration, format_memory
from torc_framework.models.statuses import FAILURES, LIVE, JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, numbers, param
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.job_state import interruptions, transitions
from torc_framework.store.job_state.dependency_counters import downstream, recount
from torc_framework.store.job_state.implied_dependencies import add_implied_dependencies
from torc_framework.store.records.events import TransactionEvents, utc_text
from torc_framework.store.records.kind import PageRequest
from torc_framework.store.records.requirements import DEFAULT_REQUIREMENTS
from torc_framework.store.runs import lifecycle
from torc_framework.store.runs.workflow_status import check_run, job_counts, workflow_status
from torc_framework.store.tables import core as t
from torc_framework.store.tables.allocations import SCHEDULED_COMPUTE_NODE
from torc_framework.store.tables.recovery import RECOVERY

_OPEN: Final = LIVE | {JobStatus.READY, JobStatus.UNINITIALIZED}
"""Statuses of jobs that still run without a recovery."""
_ASKED: Final = (
    sa.select(
        t.JOB.c.id,
        t.JOB.c.name,
        t.JOB.c.status,
        t.JOB.c.attempt_id,
        t.RESOURCE_REQUIREMENTS.c.id,
        t.RESOURCE_REQUIREMENTS.c.name,
        t.RESOURCE_REQUIREMENTS.c.memory,
        t.RESOURCE_REQUIREMENTS.c.runtime,
        t.RESOURCE_REQUIREMENTS.c.num_cpus,
        t.RESOURCE_REQUIREMENTS.c.memory_bytes,
        t.RESOURCE_REQUIREMENTS.c.runtime_s,
    )
    .join_from(t.JOB, t.RESOURCE_REQUIREMENTS, t.RESOURCE_REQUIREMENTS.c.id == t.JOB.c.resource_requirements_id)
    .where(t.JOB.c.id.in_(ids_param()), t.JOB.c.workflow_id == param("workflow"))
)
_FOUND = Statement(_ASKED, "workflow")
_SET = Statement(
    sa.update(t.JOB).where(t.JOB.c.id == param("job")).values(resource_requirements_id=param("requirements")),
    "requirements",
    "job",
)
_FORGET_HASHES = Statement(sa.update(t.JOB).where(t.JOB.c.id.in_(ids_param())).values(input_hash=sa.null()))
_UNINITIALIZED = Statement(
    sa.select(t.JOB.c.id).where(
        t.JOB.c.workflow_id == param("workflow"), t.JOB.c.status.in_(numbers({JobStatus.UNINITIALIZED}))
    ),
    "workflow",
)
_SUFFIX: Final = re.compile(r"_recovered_r\d+(_\d+)?$")


@frozen
class _Amounts:
    """The requirements of a job as numbers; bytes and seconds."""

    memory_bytes: int
    runtime_s: int
    num_cpus: int

    def grown(self, repair: Repair) -> "_Amounts":
        """Return these amounts, raised to those of a repair."""
        return _Amounts(
            max(self.memory_bytes, repair.memory_bytes or 0),
            max(self.runtime_s, repair.runtime_s or 0),
            max(self.num_cpus, repair.num_cpus or 0),
        )

    def larger(self, other: "_Amounts") -> "_Amounts":
        return _Amounts(
            max(self.memory_bytes, other.memory_bytes),
            max(self.runtime_s, other.runtime_s),
            max(self.num_cpus, other.num_cpus),
        )

    def more_than(self, other: "_Amounts") -> tuple[bool, bool, bool]:
        """Return for memory, run time and CPUs whether they are more."""
        return self.memory_bytes > other.memory_bytes, self.runtime_s > other.runtime_s, self.num_cpus > other.num_cpus


@frozen
class _JobToRecover:
    """A job that runs again, with its present requirements."""

    repair: Repair
    name: str
    requirements_id: int
    requirements_name: str
    memory: str
    runtime: str
    amounts: _Amounts


@frozen
class _RunPair:
    """The workflow, the run whose jobs failed, and the run in which they run again."""

    workflow_id: int
    old: int
    new: int


@frozen
class _GrantedRequirements:
    """The requirements of a job after the recovery, as in the record."""

    id: int
    memory: str
    runtime: str
    num_cpus: int


def recover(tx: Tx, workflow_id: int, order: RecoveryOrder) -> RecoveryReceipt:
    """Carry out a recovery, and begin the run in which the jobs run again; a dry run changes nothing.

    Raises:
        NotFoundError: the workflow or a job of the order does not exist.
        RuleError: runners work on the workflow, it is not over, or a job has changed since the order was made.
    """
    check_recoverable(tx, workflow_id)
    check_run(tx, workflow_id, order.run_id)
    asked = _look_up(tx, workflow_id, order)
    if not asked:
        return RecoveryReceipt(order.run_id, 0, [])
    with tx.connection.begin_nested() as changes:
        receipt = _carry_out(tx, workflow_id, order, asked)
        if order.dry_run:
            changes.rollback()
            tx.discard_notifications()
    return receipt


def _carry_out(tx: Tx, workflow_id: int, order: RecoveryOrder, asked: Sequence[_JobToRecover]) -> RecoveryReceipt:
    lifecycle.begin_planned_run(tx, workflow_id)
    run_id = workflow_status(tx, workflow_id).run_id
    runs = _RunPair(workflow_id, order.run_id, run_id)
    granted = _grant(tx, runs, asked)
    count = _reset(tx, workflow_id, [each.repair.job_id for each in asked])
    entries = _record(tx, runs, asked, granted)
    lifecycle.announce_run(tx, workflow_id, run_id, again=True)
    return RecoveryReceipt(run_id, count, entries)


def check_recoverable(tx: Tx, workflow_id: int) -> None:
    """Refuse to recover a workflow that is archived, on which runners work or are about to, or that is not over.

    Jobs in ``pending_failed``, and the jobs downstream of them, do not prevent a recovery.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: the workflow cannot be recovered now.
    """
    status = workflow_status(tx, workflow_id)
    if status.is_archived:
        raise RuleError("Cannot recover an archived workflow. Unarchive it first.")
    node, scheduled = t.COMPUTE_NODE, SCHEDULED_COMPUTE_NODE
    is_open = scheduled.c.status.in_(("pending", "active"))
    working = {
        "active compute node(s)": _count(tx, node, node.c.workflow_id == workflow_id, node.c.is_active),
        "pending or active scheduled compute node(s)": _count(
            tx, scheduled, scheduled.c.workflow_id == workflow_id, is_open
        ),
    }
    for what, count in working.items():
        if count:
            raise RuleError(f"Cannot recover workflow {workflow_id}: there are {count} {what}. Wait until they ended.")
    counts = job_counts(tx, workflow_id)
    left = sum(counts.get(state.label, 0) for state in _OPEN) + interruptions.count_interrupted(tx, workflow_id)
    if left and not status.is_canceled:
        raise RuleError(
            f"Cannot recover workflow {workflow_id}: it is not complete, {left} job(s) can still run. "
            f"'torc run {workflow_id}' goes on with them."
        )


def find_recoveries(tx: Tx, workflow_id: int, wanted: PageRequest) -> tuple[list[RecoveryEntry], int]:
    """Return one page of the recovered jobs of a workflow, oldest first, and their number, from ``after_id`` on.

    Raises:
        NotFoundError: there is no such workflow.
    """
    workflow_status(tx, workflow_id)
    mine = (RECOVERY.c.workflow_id == workflow_id, RECOVERY.c.id > (wanted.after_id or 0))
    query = sa.select(RECOVERY).where(*mine).order_by(RECOVERY.c.id).offset(wanted.offset).limit(wanted.limit)
    rows = tx.connection.execute(query).mappings()
    return [RecoveryEntry(**row) for row in rows], _count(tx, RECOVERY, *mine)


def _count(tx: Tx, table: sa.Table, *where: Any) -> int:
    return int(tx.connection.execute(sa.select(sa.func.count()).select_from(table).where(*where)).scalar_one())


def _look_up(tx: Tx, workflow_id: int, order: RecoveryOrder) -> list[_JobToRecover]:
    """Return the jobs of an order with their present requirements."""
    repairs = {repair.job_id: repair for repair in order.repairs}
    if not repairs and not order.dry_run:
        raise RuleError("a recovery names at least one job")
    found: dict[int, _JobToRecover] = {}
    for job_id, name, status, attempt_id, req_id, req_name, memory, runtime, *amounts in tx.rows_for(
        _FOUND, sorted(repairs), workflow_id
    ):
        repair = repairs[job_id]
        if status not in FAILURES or attempt_id != repair.attempt_id:
            raise RuleError(
                f"Job {job_id} ({name}) is {JobStatus(status).label} at attempt {attempt_id}: it has changed since "
                f"attempt {repair.attempt_id} was looked at"
            )
        cpus, size, seconds = amounts
        found[job_id] = _JobToRecover(repair, name, req_id, req_name, memory, runtime, _Amounts(size, seconds, cpus))
    for job_id in repairs:
        if job_id not in found:
            raise NotFoundError("Job", job_id)
    return [found[job_id] for job_id in sorted(found)]


def _grant(tx: Tx, runs: _RunPair, asked: Sequence[_JobToRecover]) -> dict[int, _GrantedRequirements]:
    """Raise the requirements of the jobs; return the new ones of each.

    Jobs that shared requirements and need more of the same amounts share the new requirements, too: the largest of
    their amounts.
    """
    granted: dict[int, _GrantedRequirements] = {}
    sharing: dict[tuple[int, tuple[bool, bool, bool]], list[_JobToRecover]] = defaultdict(list)
    for each in asked:
        sharing[each.requirements_id, each.amounts.grown(each.repair).more_than(each.amounts)].append(each)
    for (requirements_id, lacking), jobs in sharing.items():
        first = jobs[0]
        if not any(lacking):
            now = _GrantedRequirements(requirements_id, first.memory, first.runtime, first.amounts.num_cpus)
        else:
            wanted = first.amounts
            for job in jobs:
                wanted = wanted.larger(job.amounts.grown(job.repair))
            now = _GrantedRequirements(
                requirements_id,
                format_memory(wanted.memory_bytes) if lacking[0] else first.memory,
                format_duration(wanted.runtime_s) if lacking[1] else first.runtime,
                wanted.num_cpus,
            )
            now = _store(tx, runs, now, wanted, jobs)
        granted |= {job.repair.job_id: now for job in jobs}
    return granted


def _store(
    tx: Tx, runs: _RunPair, now: _GrantedRequirements, wanted: _Amounts, jobs: Sequence[_JobToRecover]
) -> _GrantedRequirements:
    """Store new requirements in the record if only these jobs have it, otherwise in a new record."""
    table, execute = t.RESOURCE_REQUIREMENTS, tx.connection.execute
    values = {
        "memory": now.memory,
        "runtime": now.runtime,
        "num_cpus": now.num_cpus,
        "memory_bytes": wanted.memory_bytes,
        "runtime_s": wanted.runtime_s,
    }
    mine = [t.JOB.c.workflow_id == runs.workflow_id, t.JOB.c.resource_requirements_id == now.id]
    if _count(tx, t.JOB, *mine) == len(jobs) and jobs[0].requirements_name != DEFAULT_REQUIREMENTS:
        execute(sa.update(table).where(table.c.id == now.id).values(**values))
        return now
    old = execute(sa.select(table).where(table.c.id == now.id)).mappings().one()
    name = _free_name(tx, runs.workflow_id, f"{_SUFFIX.sub('', old['name'])}_recovered_r{runs.new}")
    own = {key: value for key, value in old.items() if key != "id"} | values | {"name": name}
    new_id = tx.add(table, **own)
    tx.run_each(_SET, [(new_id, job.repair.job_id) for job in jobs])
    return evolve(now, id=new_id)


def _free_name(tx: Tx, workflow_id: int, name: str) -> str:
    table = t.RESOURCE_REQUIREMENTS
    query = sa.select(table.c.name).where(table.c.workflow_id == workflow_id, table.c.name.startswith(name))
    taken = set(tx.connection.execute(query).scalars())
    return name if name not in taken else next(n for k in range(2, len(taken) + 3) if (n := f"{name}_{k}") not in taken)


def _reset(tx: Tx, workflow_id: int, job_ids: Sequence[int]) -> int:
    """Make these jobs and all jobs downstream of them ready or blocked again; return how many."""
    add_implied_dependencies(tx, workflow_id)
    again = [*job_ids, *downstream(tx, job_ids)]
    count = transitions.reset(tx, again)
    tx.run_for(_FORGET_HASHES, again)
    recount(tx, workflow_id)
    transitions.all_found_blocked(tx, workflow_id)
    transitions.found_ready_among(tx, [job_id for (job_id,) in tx.rows(_UNINITIALIZED, workflow_id)])
    return count


def _record(
    tx: Tx, runs: _RunPair, asked: Sequence[_JobToRecover], granted: Mapping[int, _GrantedRequirements]
) -> list[RecoveryEntry]:
    """Store the recovered jobs, with events."""
    events, at = TransactionEvents(runs.workflow_id), utc_text()
    first = tx.new_ids(RECOVERY, len(asked))
    entries = []
    for number, each in enumerate(asked, first):
        repair, now = each.repair, granted[each.repair.job_id]
        entry = RecoveryEntry(
            id=number,
            workflow_id=runs.workflow_id,
            job_id=repair.job_id,
            job_name=each.name,
            recovered_at=at,
            run_id=runs.old,
            attempt_id=repair.attempt_id,
            new_run_id=runs.new,
            decided_by=repair.decided_by,
            reason=repair.reason,
            causes=repair.causes,
            confidence=repair.confidence,
            evidence=repair.evidence,
            old_requirements_id=each.requirements_id,
            new_requirements_id=now.id,
            old_memory=each.memory,
            new_memory=now.memory,
            old_runtime=each.runtime,
            new_runtime=now.runtime,
            old_num_cpus=each.amounts.num_cpus,
            new_num_cpus=now.num_cpus,
        )
        entries.append(entry)
        events.add("job_recovered", **{name: getattr(entry, name) for name in _EVENT_KEYS})
    columns = [column.name for column in RECOVERY.columns]
    tx.connection.execute(sa.insert(RECOVERY), [{name: getattr(entry, name) for name in columns} for entry in entries])
    events.add("workflow_recovered", run_id=runs.new, recovered_jobs=len(entries))
    events.write(tx)
    return entries


_EVENT_KEYS: Final = (
    "job_id",
    "job_name",
    "run_id",
    "attempt_id",
    "new_run_id",
    "decided_by",
    "reason",
    "old_memory",
    "new_memory",
    "old_runtime",
    "new_runtime",
)
"""Fields of an entry that its event has."""
