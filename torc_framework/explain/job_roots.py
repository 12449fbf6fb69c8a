"""The root of each job that is blocked or canceled: of all that it depends on, the job with the most urgent reason."""

from functools import cached_property
from typing import Any, Final

from attrs import Factory, define, evolve

from torc_framework.explain.job_reasons import RANK, JobReason, JobReasons
from torc_framework.explain.workflow_state import WorkflowState
from torc_framework.graph.waiting_graph import NOTHING, WaitingGraph
from torc_framework.models.records import JobRecord
from torc_framework.models.waiting_jobs import JobClass

FIRST_JOBS: Final = 5
"""Jobs of a group whose ids are kept."""
_ENDED_BADLY: Final = ("failed", "terminated")
_WAITS: Final = ("blocked", "dependency_failed")
"""Codes of the reasons of jobs whose reason is another job."""
_LATER: Final = "9999-12-31T00:00:00Z"
_RANK_BITS: Final = 57
"""Bits of a value below the rank of the reason: the id of the job, and 0 in the lowest bit if it ended badly."""


def job_of_class(state: WorkflowState, job_class: JobClass, job_id: int, name: str = "") -> JobRecord:
    """Return a job of a class, with all that decides its reason."""
    return JobRecord(
        id=job_id,
        workflow_id=state.id,
        name=name,
        command="",
        status=job_class.status,
        resource_requirements_id=job_class.resource_requirements_id,
        scheduler_id=job_class.scheduler_id,
        attempt_id=job_class.attempt_id,
        executor=job_class.executor,
        container="image" if job_class.has_container else None,
        not_before=_LATER if job_class.is_delayed else None,
        waiting_reason=job_class.waiting_reason,
        is_interrupted=job_class.is_interrupted,
    )


@define
class WaitingGroup:
    """Jobs of one status with roots of one class.

    Attributes:
        root: Class and id of the root of the first of them; None without a root.
        first_ids: Ids of the first of them.
    """

    status: str
    root: tuple[JobClass, int] | None
    count: int = 0
    first_ids: list[int] = Factory(list)


class JobRoots:
    """Finds the roots of the jobs of one workflow, and what they depend on."""

    def __init__(self, state: WorkflowState, reasons: JobReasons) -> None:
        self._state = state
        self._reasons = reasons
        self._classes: list[JobClass] = []
        self._numbers: dict[JobClass, int] = {}
        self._ranks: list[int] = []
        self._class_of: dict[int, int] = {}

    @cached_property
    def _graph(self) -> WaitingGraph:
        return self._state.waiting(self._value)

    def _value(self, job_id: int, job_class: JobClass) -> int:
        number = self._numbers.get(job_class)
        if number is None:
            number = self._numbers[job_class] = len(self._classes)
            self._classes.append(job_class)
            reason = self._reasons.reason_of(job_of_class(self._state, job_class, job_id))
            is_other = job_class.status not in _ENDED_BADLY
            self._ranks.append(RANK[reason.code] << _RANK_BITS | is_other)
        self._class_of[job_id] = number
        return self._ranks[number] | job_id << 1

    @cached_property
    def _values(self) -> Any:
        """The value of the root of each waiting job; of a canceled job it is a failed one, if there is such."""
        return self._graph.least_values(odd_last_of_canceled=True)

    @staticmethod
    def _root_id(value: int) -> int:
        return (value & ((1 << _RANK_BITS) - 1)) >> 1

    def waiting_groups(self) -> list[WaitingGroup]:
        """Return all jobs that are blocked or canceled in groups, in the order of their first jobs."""
        groups: dict[tuple[int, int | None], WaitingGroup] = {}
        graph, class_of, mask = self._graph, self._class_of, (1 << _RANK_BITS) - 1
        for job_id, is_canceled, value in zip(graph.jobs, graph.is_canceled, self._values, strict=True):
            number = None if value == NOTHING else class_of[(value & mask) >> 1]
            group = groups.get((is_canceled, number))
            if group is None:
                root = None if number is None else (self._classes[number], self._root_id(value))
                group = WaitingGroup("canceled" if is_canceled else "blocked", root)
                groups[is_canceled, number] = group
            group.count += 1
            if group.count <= FIRST_JOBS:
                group.first_ids.append(job_id)
        return list(groups.values())

    def with_root(
        self, reason: JobReason, root: tuple[JobClass, int] | None
    ) -> tuple[JobReason, tuple[JobClass, int] | None]:
        """Return the reason of a job, given that by itself and its root, and its root if that is its reason."""
        if reason.code not in _WAITS:
            return reason, None
        if root is None and reason.code == "blocked":
            stale = "all its dependencies have ended; they have to be evaluated again"
            return JobReason("stale", stale, (f"torc workflows reinitialize {self._state.id}",)), None
        return reason, root

    def reason_and_root(self, job: JobRecord) -> tuple[JobReason, JobRecord | None]:
        """Return the reason of a job, and its root if that is another job."""
        reason = self._reasons.reason_of(job)
        if reason.code not in _WAITS:
            return reason, None
        place = self._graph.place(job.id or 0)
        value = NOTHING if place is None else self._values[place]
        job_id = None if value == NOTHING else self._root_id(value)
        root = None if job_id is None else (self._classes[self._class_of[job_id]], job_id)
        reason, found = self.with_root(reason, root)
        return reason, None if found is None else self._state.job(found[1])

    def unfinished_dependencies(self, job: JobRecord) -> list[int]:
        """Return the ids of the direct dependencies of a job that have not ended, the most urgent first."""
        blocked = self._reasons.reason_of(evolve(job, status="blocked", is_interrupted=False))
        ranked: list[tuple[int, int]] = []
        for job_id in self._graph.dependencies(job.id or 0):
            number, place = self._class_of.get(job_id), self._graph.place(job_id)
            if number is not None:
                job_class = self._classes[number]
                if job_class.is_interrupted or job_class.status not in _ENDED_BADLY:
                    ranked.append((self._ranks[number] >> _RANK_BITS, job_id))
            elif place is not None and not self._graph.is_canceled[place]:
                ranked.append((RANK[blocked.code], job_id))
        return [job_id for _, job_id in sorted(ranked)]
