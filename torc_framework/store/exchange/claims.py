"""Chooses the ready jobs that a runner claims.

Ready jobs are grouped by their resource requirements, and the groups are sorted by the sort method, largest first.
Groups that exceed the whole runner are left out. From the others, jobs are taken greedily: a group whose next job does
not fit the free resources is skipped, and the smaller jobs of later groups are still taken.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.exchange import ClaimedJob, Offer, OutputFile
from torc_framework.models.exits import CleanExit
from torc_framework.models.resources import Resources
from torc_framework.models.statuses import JobStatus
from torc_framework.models.stdio import StdioMode
from torc_framework.store.database.sql import Row, Statement, Tx, first, ids_param, number, param
from torc_framework.store.records.events import utc_text
from torc_framework.store.records.requirements import DEFAULT_REQUIREMENTS, SORT_KEYS
from torc_framework.store.tables.core import FAILURE_HANDLER, FILE, JOB, JOB_OUTPUT_FILE, RESOURCE_REQUIREMENTS

_READY: Final = sa.and_(JOB.c.workflow_id == param("workflow"), JOB.c.status == number(JobStatus.READY))
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
_AMOUNTS: Final = sa.select(
    RESOURCE_REQUIREMENTS.c.id,
    RESOURCE_REQUIREMENTS.c.name,
    RESOURCE_REQUIREMENTS.c.num_cpus,
    RESOURCE_REQUIREMENTS.c.memory_bytes,
    RESOURCE_REQUIREMENTS.c.num_gpus,
    RESOURCE_REQUIREMENTS.c.num_nodes,
    RESOURCE_REQUIREMENTS.c.runtime_s,
)
_REQUIREMENTS = Statement(_AMOUNTS.where(RESOURCE_REQUIREMENTS.c.id.in_(ids_param())))


def _ready_requirements() -> Statement:
    """Return the query for the requirements of ready jobs, which jumps from one to the next in the index.

    It sorts and takes the first row: for ``min`` PostgreSQL reads all ready jobs until it has statistics of the table.
    """
    ready_jobs = sa.select(JOB.c.resource_requirements_id).where(_READY).order_by(JOB.c.resource_requirements_id)
    smallest = first(ready_jobs, number(1)).scalar_subquery()
    ready = sa.select(smallest.label("id")).cte("ready", recursive=True)
    larger = ready_jobs.where(JOB.c.resource_requirements_id > ready.c.id).correlate(ready)
    ready = ready.union_all(sa.select(first(larger, number(1)).scalar_subquery()).where(ready.c.id.is_not(None)))
    return Statement(_AMOUNTS.join(ready, RESOURCE_REQUIREMENTS.c.id == ready.c.id), "workflow")


_READY_REQUIREMENTS = _ready_requirements()


class _JobDetails(NamedTuple):
    """A row of `_DETAILS`."""

    id: int
    name: str
    command: str
    attempt_id: int
    invocation_script: str | None
    executor: str | None
    supports_termination: int
    requirements_id: int
    handler_id: int | None
    shell: str | None
    clean_exit_after_stop: CleanExit
    container: str | None
    executor_options: str | None
    stdio: StdioMode | None
    delete_stdio_on_success: int | None


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
        JOB.c.container,
        JOB.c.executor_options,
        JOB.c.stdio,
        JOB.c.delete_stdio_on_success,
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
"""Free resources that fit every job."""


@frozen
class ParsedRequirements:
    """A record of resource requirements with its amounts as numbers.

    Attributes:
        named: It is not the default of the workflow.
    """

    id: int
    resources: Resources
    named: bool

    @property
    def enforced(self) -> Resources:
        """The requests that the runner enforces: without a time limit if these are the defaults."""
        if self.named:
            return self.resources
        asked = self.resources
        return Resources(asked.num_cpus, asked.memory_bytes, asked.num_gpus, asked.num_nodes)


class _FreeResources:
    """The free resources that are left while jobs are taken.

    Amounts of a job are per node; a job of n nodes needs them n times.
    """

    def __init__(self, free: Resources) -> None:
        nodes = max(1, free.num_nodes)
        self.left = [free.num_cpus * nodes, free.memory_bytes * nodes, free.num_gpus * nodes, nodes]

    def take(self, asked: Resources) -> bool:
        """Take a job's requests if they fit, and return whether they do; jobs of one node share the nodes."""
        nodes = asked.num_nodes
        need = (asked.num_cpus * nodes, asked.memory_bytes * nodes, asked.num_gpus * nodes, nodes if nodes > 1 else 0)
        if any(amount > left for amount, left in zip(need, self.left, strict=True)):
            return False
        self.left = [left - amount for amount, left in zip(need, self.left, strict=True)]
        return True


class _ReadyQueue:
    """The ready jobs with the same requirements, by id; read from the database when first used."""

    def __init__(self, requirements: ParsedRequirements, read: Callable[[int], list[int]]) -> None:
        self.requirements = requirements
        self._read = read
        self._ids: list[int] | None = None
        self._next = 0

    def head(self) -> int | None:
        """Return the next job, None at the end."""
        if self._ids is None:
            self._ids = self._read(self.requirements.id)
        return self._ids[self._next] if self._next < len(self._ids) else None

    def pop(self) -> None:
        """Remove the next job."""
        self._next += 1


def ready_requirements(tx: Tx, workflow_id: int) -> list[ParsedRequirements]:
    """Return the requirements that ready jobs have."""
    return ready_requirements_later(tx, workflow_id)()


def ready_requirements_later(tx: Tx, workflow_id: int) -> Callable[[], list[ParsedRequirements]]:
    """Return a function that returns the requirements that ready jobs have (`Tx.rows_later`)."""
    rows = tx.rows_later(_READY_REQUIREMENTS, workflow_id)
    return lambda: [_parsed(row) for row in rows()]


def requirements_by_id(tx: Tx, ids: Sequence[int]) -> dict[int, ParsedRequirements]:
    """Return requirements by their ids."""
    return {found.id: found for found in map(_parsed, tx.rows_for(_REQUIREMENTS, ids))}


def _parsed(row: Row) -> ParsedRequirements:
    id_, name, *amounts = row
    return ParsedRequirements(id_, Resources(*amounts), name != DEFAULT_REQUIREMENTS)


def fits_runner(requirements: ParsedRequirements, offer: Offer) -> bool:
    """Return whether jobs with these requirements fit the whole runner; without ``free``, all do."""
    return offer.free is None or requirements.resources.fits(offer.total or offer.free)


def delayed_jobs(tx: Tx, workflow_id: int) -> dict[int, str]:
    """Return the jobs whose next attempt is delayed, each with the time until which it is."""
    return dict(tx.rows(_DELAYED, workflow_id, utc_text()))


def delay_jobs(tx: Tx, until: Mapping[int, float]) -> None:
    """Delay the next attempts of jobs until these times, seconds since the epoch; a claim ends the delay."""
    tx.run_each(_DELAY, [(utc_text(moment), job_id) for job_id, moment in until.items()])


class ChosenJobs(NamedTuple):
    """The ids of jobs for a runner, and the requirements of ready jobs, by id, among which theirs are."""

    job_ids: list[int]
    requirements: dict[int, ParsedRequirements]


def choose_jobs(tx: Tx, workflow_id: int, offer: Offer, sort_method: str | None = None) -> ChosenJobs:
    """Return ready jobs for a runner in the order of the sort method; does not claim them."""
    if offer.slots + offer.ahead <= 0:
        return ChosenJobs([], {})
    delayed = tx.rows_later(_DELAYED, workflow_id, utc_text())
    fitting = [requirements for requirements in ready_requirements(tx, workflow_id) if fits_runner(requirements, offer)]
    early: dict[int, str] = dict(delayed())
    if not fitting:
        return ChosenJobs([], {})
    wanted = offer.slots + offer.ahead + len(early)

    def matching(requirements: int) -> list[int]:
        rows = tx.rows(_MATCHING_SCHEDULER, workflow_id, requirements, offer.scheduler_config_id, wanted)
        return [job_id for (job_id,) in rows if job_id not in early]

    def every(requirements: int) -> list[int]:
        rows = tx.rows(_ANY_SCHEDULER, workflow_id, requirements, wanted)
        return [job_id for (job_id,) in rows if job_id not in early]

    queues = [_ReadyQueue(requirements, matching) for requirements in fitting]
    if not offer.strict_scheduler_match and all(queue.head() is None for queue in queues):
        queues = [_ReadyQueue(requirements, every) for requirements in fitting]
    job_ids = _choose_by_rank(queues, offer, offer.sort_method or sort_method or "none")
    return ChosenJobs(job_ids, {requirements.id: requirements for requirements in fitting})


def _choose_by_rank(queues: Sequence[_ReadyQueue], offer: Offer, sort_method: str) -> list[int]:
    """Take jobs that fit the free resources, then ``ahead`` more that the runner starts when others end."""
    key = SORT_KEYS[sort_method]

    def rank(queue: _ReadyQueue) -> tuple[float, ...]:
        return key(queue.requirements.resources)

    ranks = [list(equals) for _, equals in groupby(sorted(queues, key=rank), rank)]
    room = _FreeResources(offer.free or UNLIMITED)
    now = _take(ranks, offer.slots, lambda queue: room.take(queue.requirements.resources))
    return now + _take(ranks, offer.ahead, lambda _: True)


def _take(ranks: Sequence[Sequence[_ReadyQueue]], count: int, accept: Callable[[_ReadyQueue], bool]) -> list[int]:
    """Take up to ``count`` jobs, by rank, then by id; nothing more is taken from a queue after a job that is not
    accepted.
    """
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
    """Return the number of ready jobs that do not fit the whole runner."""
    unfit = [
        requirements for requirements in ready_requirements(tx, workflow_id) if not fits_runner(requirements, offer)
    ]
    return sum(int(tx.value(_COUNT, workflow_id, requirements.id)) for requirements in unfit)


def describe_jobs(
    tx: Tx, job_ids: Sequence[int], known: Mapping[int, ParsedRequirements] | None = None
) -> list[ClaimedJob]:
    """Return what a runner needs to run these jobs, in their order.

    Args:
        tx: The transaction.
        job_ids: The jobs.
        known: Requirements that were read before, by id.
    """
    if not job_ids:
        return []
    outputs_of = tx.rows_for_later(_OUTPUTS, job_ids)
    details = {row.id: row for row in map(_JobDetails._make, tx.rows_for(_DETAILS, job_ids))}
    requirements = dict(known or {})
    unknown = sorted({row.requirements_id for row in details.values()} - requirements.keys())
    requirements |= requirements_by_id(tx, unknown)
    enforced = {found.id: found.enforced for found in requirements.values()}
    handlers = sorted({row.handler_id for row in details.values() if row.handler_id is not None})
    rules: dict[int | None, str] = dict(tx.rows_for(_RULES, handlers))
    outputs: dict[int, list[OutputFile]] = {}
    for job_id, file_id, path in outputs_of():
        outputs.setdefault(job_id, []).append(OutputFile(file_id, path))
    return [
        ClaimedJob(
            id=row.id,
            name=row.name,
            command=row.command,
            attempt_id=row.attempt_id,
            resources=enforced[row.requirements_id],
            invocation_script=row.invocation_script,
            executor=row.executor,
            shell=row.shell,
            container=row.container,
            executor_options=row.executor_options,
            stdio=row.stdio,
            delete_stdio_on_success=None if row.delete_stdio_on_success is None else bool(row.delete_stdio_on_success),
            supports_termination=bool(row.supports_termination),
            clean_exit_after_stop=row.clean_exit_after_stop,
            failure_rules=rules.get(row.handler_id),
            output_files=outputs.get(row.id),
        )
        for row in map(details.__getitem__, job_ids)
    ]
