"""The execution plan of a workflow: stages for people, events for programs.

A *stage* is a level of the graph: the jobs that become ready at the same time if all jobs have equal run times. An
*event* is the completion of one set of jobs that makes other jobs ready; there is one event for each different set.
Time and memory of the stages grow with the plan; events list the jobs of each set and can be larger.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from attrs import define, field, frozen

from torc_framework.graph.dag import Graph
from torc_framework.models.barriers import Barrier
from torc_framework.models.plan import Plan, PlannedAction, PlannedJob
from torc_framework.models.records import JobRecord, SlurmSchedulerRecord, WorkflowActionRecord, WorkflowRecord
from torc_framework.text.terminal import one_line

START: Final = "start"
_NAMED_TRIGGERS: Final = 3
_SHOWN_JOBS: Final = 20
_SHORTEST_RUN: Final = 3
_NUMBERED: Final = re.compile(r"(.*?)(\d+)(\D*)", re.DOTALL)


@frozen
class PlannedAllocation:
    """Compute nodes that an action requests."""

    scheduler: str
    scheduler_type: str
    num_allocations: int
    job_names: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "scheduler": self.scheduler,
            "scheduler_type": self.scheduler_type,
            "num_allocations": self.num_allocations,
            "job_names": self.job_names,
        }


@define
class PlanStage:
    """One level of the graph.

    Attributes:
        trigger: Names of the direct dependencies of its jobs; none in the first stage.
        jobs: Names of the jobs that become ready.
    """

    trigger: list[str]
    jobs: list[str]
    allocations: list[PlannedAllocation] = field(factory=list)


@define
class PlanEvent:
    """The completion of one set of jobs, or the start of the workflow."""

    id: str
    trigger: list[str]
    jobs: list[str]
    allocations: list[PlannedAllocation] = field(factory=list)
    depends_on: list[str] = field(factory=list)
    unlocks: list[str] = field(factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the event as JSON values."""
        kind = {"type": "JobsComplete", "data": {"jobs": self.trigger}} if self.trigger else {"type": "WorkflowStart"}
        return {
            "id": self.id,
            "trigger": kind,
            "trigger_description": describe_trigger(self.trigger),
            "scheduler_allocations": [allocation.as_dict() for allocation in self.allocations],
            "jobs_becoming_ready": self.jobs,
            "depends_on_events": self.depends_on,
            "unlocks_events": self.unlocks,
        }


class ExecutionPlan:
    """Stages and events of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._names = [job.name for job in plan.jobs]
        self._graph = Graph.of_plan(plan)
        self._pairs: dict[int, list[int]] = {}
        for job, on in plan.dependencies:
            self._pairs.setdefault(job, []).append(on)
        self._barriers: dict[int, list[int]] = {}
        for number, barrier in enumerate(plan.barriers):
            for job in barrier.downstream:
                self._barriers.setdefault(job, []).append(number)

    @cached_property
    def stages(self) -> list[PlanStage]:
        """The stages, first to last."""
        members: dict[int, list[int]] = {}
        for job, level in enumerate(self._graph.levels):
            members.setdefault(level, []).append(job)
        stages = [
            PlanStage(self._named(sorted(self._upstream(jobs))), self._named(jobs))
            for _, jobs in sorted(members.items())
        ]
        for action in self._schedule_nodes_actions():
            number = self._stage_of(action)
            if number < len(stages):
                stages[number].allocations.append(self._allocation(action))
        return stages

    @cached_property
    def events(self) -> list[PlanEvent]:
        """The events in the order of stages: the start, then one for each different set of dependencies."""
        waiting: dict[frozenset[int], list[int]] = {frozenset(): []}
        for jobs in self._grouped_by_trigger():
            waiting.setdefault(frozenset(self._upstream(jobs)), []).extend(jobs)
        levels = self._graph.levels
        order = sorted(waiting.items(), key=lambda item: (bool(item[0]), levels[item[1][0]] if item[1] else 0))
        ids = _EventIds()
        events = [
            PlanEvent(ids.of(self._named(sorted(on))), self._named(sorted(on)), self._named(jobs)) for on, jobs in order
        ]
        event_of = {job: number for number, (_, jobs) in enumerate(order) for job in jobs}
        for event, (on, _) in zip(events, order, strict=True):
            for number in sorted({event_of[job] for job in on}):
                event.depends_on.append(events[number].id)
                events[number].unlocks.append(event.id)
        for action in self._schedule_nodes_actions():
            if (found := self._event_of(action, [on for on, _ in order], event_of)) is not None:
                events[found].allocations.append(self._allocation(action))
        return events

    def as_dict(self, source: str = "spec_file") -> dict[str, Any]:
        """Return the plan as JSON values.

        Args:
            source: ``spec_file`` or ``database``.
        """
        return {
            "status": "success",
            "source": source,
            "workflow_name": self._plan.workflow.name,
            "total_events": len(self.events),
            "total_jobs": len(self._names),
            "total_stages": len(self.stages),
            "root_events": [event.id for event in self.events if not event.depends_on],
            "leaf_events": [event.id for event in self.events if not event.unlocks],
            "events": [event.as_dict() for event in self.events],
        }

    def text(self) -> str:
        """Return the stages as text for people."""
        lines = [f"Workflow: {self._plan.workflow.name}", f"Total Jobs: {len(self._names)}"]
        for number, stage in enumerate(self.stages, 1):
            lines += ["", f"{'→' if number > 1 else '▶'} Stage {number}: {describe_trigger(stage.trigger)}"]
            if stage.allocations:
                lines.append("  Scheduler Allocations:")
                lines += [
                    f"    • {one.scheduler} ({one.scheduler_type}) - {one.num_allocations} allocation(s)"
                    for one in stage.allocations
                ]
            lines.append("  Jobs Becoming Ready:")
            lines += [f"    • {name}" for name in _limited(compress_names(stage.jobs))]
        return "\n".join([*map(one_line, lines), "", f"Total Stages: {len(self.stages)}"])

    def _named(self, jobs: Iterable[int]) -> list[str]:
        return [self._names[job] for job in jobs]

    def _upstream(self, jobs: Iterable[int]) -> set[int]:
        """Return the direct dependencies of ``jobs``; each barrier is visited once."""
        barriers: set[int] = set()
        upstream: set[int] = set()
        for job in jobs:
            upstream.update(self._pairs.get(job, ()))
            barriers.update(self._barriers.get(job, ()))
        return upstream.union(*(self._plan.barriers[number].upstream for number in barriers))

    def _grouped_by_trigger(self) -> Iterable[list[int]]:
        """Return the jobs in groups with the same text for their dependencies."""
        groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
        for job in range(len(self._names)):
            key = (tuple(sorted(self._pairs.get(job, ()))), tuple(self._barriers.get(job, ())))
            groups.setdefault(key, []).append(job)
        return groups.values()

    def _schedule_nodes_actions(self) -> list[PlannedAction]:
        return [action for action in self._plan.actions if action.action_type == "schedule_nodes"]

    def _stage_of(self, action: PlannedAction) -> int:
        levels = [self._graph.levels[job] for job in action.jobs or ()]
        if action.trigger_type == "on_workflow_complete":
            return len(self._names)
        return max(levels, default=0) + (action.trigger_type == "on_jobs_complete" and bool(levels))

    def _event_of(
        self, action: PlannedAction, triggers: Sequence[frozenset[int]], event_of: Mapping[int, int]
    ) -> int | None:
        """Return the number of the event that triggers an action; None if no job becomes ready at the trigger."""
        jobs = action.jobs or []
        if action.trigger_type == "on_jobs_complete":
            return next((number for number, on in enumerate(triggers) if on.issuperset(jobs)), None)
        if action.trigger_type == "on_workflow_complete":
            return None
        last = max(jobs, key=lambda job: self._graph.levels[job], default=None)
        return 0 if last is None else event_of[last]

    def _allocation(self, action: PlannedAction) -> PlannedAllocation:
        jobs = action.jobs or [n for n, job in enumerate(self._plan.jobs) if job.scheduler == action.scheduler]
        name = None if action.scheduler is None else self._plan.slurm_schedulers[action.scheduler].name
        return PlannedAllocation(
            name or "unnamed",
            str(action.config.get("scheduler_type", "slurm")),
            int(action.config.get("num_allocations", 1)),
            self._named(jobs),
        )


def execution_plan(plan: Plan) -> ExecutionPlan:
    """Return the stages and events of a plan."""
    return ExecutionPlan(plan)


def plan_of_records(
    workflow: WorkflowRecord,
    jobs: Sequence[JobRecord],
    dependencies: Iterable[tuple[int, int]],
    *,
    groups: Iterable[Barrier] = (),
    schedulers: Sequence[SlurmSchedulerRecord] = (),
    actions: Sequence[WorkflowActionRecord] = (),
) -> Plan:
    """Return a stored workflow as a plan with what its execution plan needs.

    Args:
        workflow: The workflow.
        jobs: All its jobs.
        dependencies: Ids (job, job it waits for).
        groups: Barriers, by ids.
        schedulers: Its Slurm schedulers.
        actions: Its actions.
    """
    position = {job.id: number for number, job in enumerate(jobs)}
    scheduler_position = {scheduler.id: number for number, scheduler in enumerate(schedulers)}
    return Plan(
        workflow,
        [PlannedJob(job.name, job.command, scheduler=scheduler_position.get(job.scheduler_id)) for job in jobs],
        dependencies=[(position[job], position[on]) for job, on in dependencies],
        barriers=[
            Barrier([position[job] for job in group.upstream], [position[job] for job in group.downstream])
            for group in groups
        ],
        slurm_schedulers=list(schedulers),
        actions=[
            PlannedAction(
                action.trigger_type,
                action.action_type,
                dict(action.action_config or {}),
                [position[job] for job in action.job_ids] if action.job_ids else None,
                scheduler_position.get((action.action_config or {}).get("scheduler_id")),
            )
            for action in actions
        ],
    )


def describe_trigger(jobs: Sequence[str]) -> str:
    """Return the trigger as text: the start, or the completion of these jobs."""
    if not jobs:
        return "Workflow Start"
    if len(jobs) == 1:
        return f"When job '{jobs[0]}' completes"
    if len(jobs) <= _NAMED_TRIGGERS:
        return f"When jobs {', '.join(repr(job) for job in jobs)} complete"
    return f"When {len(jobs)} jobs complete"


def compress_names(names: Sequence[str]) -> list[str]:
    """Return names with consecutive numbers combined: ``work_1``, ``work_2``, ``work_3`` → ``work_{1..3}``."""
    runs: list[list[str]] = []
    expected: str | None = None
    for name in names:
        if name == expected:
            runs[-1].append(name)
        else:
            runs.append([name])
        expected = _following(name)
    shown: list[str] = []
    for run in runs:
        shown += run if len(run) < _SHORTEST_RUN else [_run_text(run[0], run[-1])]
    return shown


def _split(name: str) -> tuple[str, str, str] | None:
    """Return the last number of a name with the texts before and after it."""
    match = re.fullmatch(r"(.*?)(\d+)(\D*)", name, re.DOTALL)
    return None if match is None else (match[1], match[2], match[3])


def _following(name: str) -> str | None:
    parts = _split(name)
    if parts is None:
        return None
    before, number, after = parts
    return f"{before}{int(number) + 1:0{len(number) if number.startswith('0') else 0}d}{after}"


def _run_text(first: str, last: str) -> str:
    parts, end = _split(first), _split(last)
    assert parts is not None
    assert end is not None
    return f"{parts[0]}{{{parts[1]}..{end[1]}}}{parts[2]}"


def _limited(entries: list[str]) -> list[str]:
    if len(entries) <= _SHOWN_JOBS:
        return entries
    return [*entries[: _SHOWN_JOBS - 1], f"... and {len(entries) - _SHOWN_JOBS + 1} more"]


class _EventIds:
    """Generator of event ids, which are unique and describe the trigger."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def of(self, jobs: Sequence[str]) -> str:
        """Return the id of the event for the completion of these jobs."""
        wanted, number = self._wanted(jobs), 1
        found = wanted
        while found in self._given:
            number += 1
            found = f"{wanted}_{number}"
        self._given.add(found)
        return found

    @staticmethod
    def _wanted(jobs: Sequence[str]) -> str:
        if not jobs:
            return START
        if len(jobs) == 1:
            return f"after_{jobs[0]}"
        first, last = min(jobs), max(jobs)
        same = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        prefix = first[:same].rstrip("0123456789_-. ")
        return f"after_{prefix}_jobs" if prefix else f"after_{jobs[0]}_and_{len(jobs) - 1}_more"
