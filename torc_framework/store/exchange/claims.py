"""Which ready jobs a runner gets.

Ready jobs are looked at by the requirements that they share: the largest first, by the sort method.
A job that cannot run on the runner at all is passed over; the others are packed greedily, so that a
job that has to wait for room does not hide smaller ones behind it.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.exchange import ClaimedJob, Offer, OutputFile
from torc_framework.models.resources import Resources
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Row, Statement, Tx, first, ids_param, number, param
from torc_framework.store.records.events import utc_text
from torc_framework.store.records.requirements import DEFAULT_REQUIREMENTS, SORT_KEYS
from torc_framework.store.tables.core import FAILURE_HANDLER, FILE, JOB, JOB_OUTPUT_FILE, RESOURCE_REQUIREMENTS

_READY: Final = sa.and_(JOB.c.workflow_id == param("workflow"), JOB.c.status == number(JobStatus.READY))
_FIRST_REQUIREMENTS = Statement(sa.select(sa.func.min(JOB.c.resource_requirements_id)).where(_READY), "workflow")
_NEXT_REQUIREMENTS = Statement(
    sa.select(sa.func.min(JOB.c.resource_requirements_id)).where(
        _READY, JOB.c.resource_requirements_id > param("previous")
    ),
    "workflow",
    "previous",
)
_OF_REQUIREMENTS: Final = sa.and_(_READY, JOB.c.resource_requirements_id == param("requirements"))
_ANY_SCHEDULER: Final = Statement(
    first(sa.select(JOB.c.id).where(_OF_REQUIREMENTS).order_by(JOB.c.id), param("limit")),
    "workflow",
    "requirements",
    "limit",
)
_MATCHING_SCHEDULER: Final = Statement(
    first(
        sa.select(JOB.c.id)
        .where(_OF_REQUIREMENTS, sa.or_(JOB.c.scheduler_id.is_(None), JOB.c.scheduler_id == param("scheduler")))
        .order_by(JOB.c.id),
        param("limit"),
    ),
    "workflow",
    "requirements",
    "scheduler",
    "limit",
)
_DELAYED = Statement(
    sa.select(JOB.c.id, JOB.c.not_before).where(
        JOB.c.workflow_id == param("workflow"), JOB.c.not_before.is_not(None), JOB.c.not_before > param("now")
    ),
    "workflow",
    "now",
)
_DELAY = Statement(sa.update(JOB).where(JOB.c.id == param("job")).values(not_before=param("moment")), "moment", "job")
_COUNT = Statement(sa.select(sa.func.count()).where(_OF_REQUIREMENTS), "workflow", "requirements")
_REQUIREMENTS = Statement(
    sa.select(
        RESOURCE_REQUIREMENTS.c.id,
        RESOURCE_REQUIREMENTS.c.num_cpus,
        RESOURCE_REQUIREMENTS.c.memory_bytes,
        RESOURCE_REQUIREMENTS.c.num_gpus,
        RESOURCE_REQUIREMENTS.c.num_nodes,
        RESOURCE_REQUIREMENTS.c.runtime_s,
        RESOURCE_REQUIREMENTS.c.name,
    ).where(RESOURCE_REQUIREMENTS.c.id.in_(ids_param()))
)
_DETAILS = Statement(
    sa.select(
        JOB.c.id,
        JOB.c.name,
        JOB.c.command,
        JOB.c.attempt_id,
        JOB.c.invocation_script,
        JOB.c.executor,
        JOB.c.supports_termination,
        JOB.c.resource_requirements_id,
        JOB.c.failure_handler_id,
        JOB.c.shell,
        JOB.c.clean_exit_after_stop,
    ).where(JOB.c.id.in_(ids_param()))
)
_RULES = Statement(
    sa.select(FAILURE_HANDLER.c.id, FAILURE_HANDLER.c.rules).where(FAILURE_HANDLER.c.id.in_(ids_param()))
)
_OUTPUTS = Statement(
    sa.select(JOB_OUTPUT_FILE.c.job_id, FILE.c.id, FILE.c.path)
    .select_from(JOB_OUTPUT_FILE.join(FILE, FILE.c.id == JOB_OUTPUT_FILE.c.file_id))
    .where(JOB_OUTPUT_FILE.c.job_id.in_(ids_param()))
)
UNLIMITED: Final = Resources(num_cpus=2**62, memory_bytes=2**62, num_gpus=2**62, num_nodes=2**62)
"""Room for everything."""


@frozen
class ParsedRequirements:
    """What jobs of one requirements record ask for; ``named`` unless it is the workflow's default."""

    id: int
    resources: Resources
    named: bool

    @property
    def promised(self) -> Resources:
        """What a runner must hold the job to: no time limit that nobody asked for."""
        if self.named:
            return self.resources
        asked = self.resources
        return Resources(asked.num_cpus, asked.memory_bytes, asked.num_gpus, asked.num_nodes)


class _FreeResources:
    """What is left while jobs are packed. Amounts are per node; a job of n nodes needs them n times."""

    def __init__(self, free: Resources) -> None:
        nodes = max(1, free.num_nodes)
        self.left = [free.num_cpus * nodes, free.memory_bytes * nodes, free.num_gpus * nodes, nodes]

    def take(self, asked: Resources) -> bool:
        """Make room for one job, if there is any; jobs of one node share the nodes."""
        nodes = asked.num_nodes
        need = (asked.num_cpus * nodes, asked.memory_bytes * nodes, asked.num_gpus * nodes, nodes if nodes > 1 else 0)
        if any(amount > left for amount, left in zip(need, self.left, strict=True)):
            return False
        self.left = [left - amount for amount, left in zip(need, self.left, strict=True)]
        return True


class _ReadyQueue:
    """The ready jobs of one requirements record, by id; read when first asked for."""

    def __init__(self, requirements: ParsedRequirements, read: Callable[[int], list[Row]]) -> None:
        self.requirements = requirements
        self._read = read
        self._ids: list[int] | None = None
        self._next = 0

    def head(self) -> int | None:
        """Return the first job that is left."""
        if self._ids is None:
            self._ids = [row[0] for row in self._read(self.requirements.id)]
        return self._ids[self._next] if self._next < len(self._ids) else None

    def pop(self) -> None:
        """Take the head off."""
        self._next += 1


def ready_requirements(tx: Tx, workflow_id: int) -> list[ParsedRequirements]:
    """Return the requirements that ready jobs have, by skipping from one to the next in the index."""
    ids: list[int] = []
    found = tx.value(_FIRST_REQUIREMENTS, workflow_id)
    while found is not None:
        ids.append(found)
        found = tx.value(_NEXT_REQUIREMENTS, workflow_id, found)
    return list(requirements_by_id(tx, ids).values())


def requirements_by_id(tx: Tx, ids: Sequence[int]) -> dict[int, ParsedRequirements]:
    """Return requirements by their ids."""
    return {
        row[0]: ParsedRequirements(row[0], Resources(*row[1:6]), row[6] != DEFAULT_REQUIREMENTS)
        for row in tx.rows_for(_REQUIREMENTS, ids)
    }


def fits_runner(requirements: ParsedRequirements, offer: Offer) -> bool:
    """Say whether such jobs can run on the whole runner; without ``free`` nothing is compared."""
    return offer.free is None or requirements.resources.fits(offer.total or offer.free)


def delayed_jobs(tx: Tx, workflow_id: int) -> dict[int, str]:
    """Return the jobs that have to wait before their next attempt, and until when."""
    return {row[0]: row[1] for row in tx.rows(_DELAYED, workflow_id, utc_text())}


def delay_jobs(tx: Tx, until: Mapping[int, float]) -> None:
    """Let jobs wait until these times, seconds since the epoch; whoever claims one ends its wait."""
    tx.run_each(_DELAY, [(utc_text(moment), job_id) for job_id, moment in until.items()])


def choose_jobs(tx: Tx, workflow_id: int, offer: Offer, sort_method: str | None = None) -> list[int]:
    """Return the ids of ready jobs for this runner, best first; claims nothing."""
    if offer.slots + offer.ahead <= 0:
        return []
    fitting = [requirements for requirements in ready_requirements(tx, workflow_id) if fits_runner(requirements, offer)]
    if not fitting:
        return []
    early = delayed_jobs(tx, workflow_id)
    wanted = offer.slots + offer.ahead + len(early)

    def matching(requirements: int) -> list[Row]:
        rows = tx.rows(_MATCHING_SCHEDULER, workflow_id, requirements, offer.scheduler_config_id, wanted)
        return [row for row in rows if row[0] not in early]

    def every(requirements: int) -> list[Row]:
        return [row for row in tx.rows(_ANY_SCHEDULER, workflow_id, requirements, wanted) if row[0] not in early]

    queues = [_ReadyQueue(requirements, matching) for requirements in fitting]
    if not offer.strict_scheduler_match and all(queue.head() is None for queue in queues):
        queues = [_ReadyQueue(requirements, every) for requirements in fitting]
    return _choose_by_rank(queues, offer, offer.sort_method or sort_method or "none")


def _choose_by_rank(queues: Sequence[_ReadyQueue], offer: Offer, sort_method: str) -> list[int]:
    """Take what fits the free resources, then what the runner wants to have at hand."""
    key = SORT_KEYS[sort_method]

    def rank(queue: _ReadyQueue) -> tuple[float, ...]:
        return key(queue.requirements.resources)

    ranks = [list(equals) for _, equals in groupby(sorted(queues, key=rank), rank)]
    room = _FreeResources(offer.free or UNLIMITED)
    now = _take(ranks, offer.slots, lambda queue: room.take(queue.requirements.resources))
    return now + _take(ranks, offer.ahead, lambda _: True)


def _take(ranks: Sequence[Sequence[_ReadyQueue]], count: int, accept: Callable[[_ReadyQueue], bool]) -> list[int]:
    """Take up to ``count`` jobs, by rank, then by id; a queue whose job is not accepted is left for good."""
    taken: list[int] = []
    for equals in ranks:
        heads = [(head, n) for n, queue in enumerate(equals) if (head := queue.head()) is not None]
        heapq.heapify(heads)
        while heads and len(taken) < count:
            job_id, n = heapq.heappop(heads)
            if accept(equals[n]):
                taken.append(job_id)
                equals[n].pop()
                if (head := equals[n].head()) is not None:
                    heapq.heappush(heads, (head, n))
    return taken


def count_unfit(tx: Tx, workflow_id: int, offer: Offer) -> int:
    """Return the number of ready jobs that can never run on this runner."""
    unfit = [
        requirements for requirements in ready_requirements(tx, workflow_id) if not fits_runner(requirements, offer)
    ]
    return sum(int(tx.value(_COUNT, workflow_id, requirements.id)) for requirements in unfit)


def describe_jobs(tx: Tx, job_ids: Sequence[int]) -> list[ClaimedJob]:
    """Return all that a runner needs to run these jobs, in their order."""
    if not job_ids:
        return []
    details = {row[0]: row for row in tx.rows_for(_DETAILS, job_ids)}
    requirements = requirements_by_id(tx, sorted({row[7] for row in details.values()}))
    handlers = sorted({row[8] for row in details.values() if row[8] is not None})
    rules: dict[int, str] = {row[0]: row[1] for row in tx.rows_for(_RULES, handlers)}
    outputs: dict[int, list[OutputFile]] = {}
    for job_id, file_id, path in tx.rows_for(_OUTPUTS, job_ids):
        outputs.setdefault(job_id, []).append(OutputFile(file_id, path))
    return [
        ClaimedJob(
            id=row[0],
            name=row[1],
            command=row[2],
            attempt_id=row[3],
            resources=requirements[row[7]].promised,
            invocation_script=row[4],
            executor=row[5],
            shell=row[9],
            supports_termination=bool(row[6]),
            clean_exit_after_stop=row[10],
            failure_rules=rules.get(row[8]),
            output_files=outputs.get(row[0]),
        )
        for row in map(details.__getitem__, job_ids)
    ]
