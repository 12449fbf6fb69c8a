"""The next step of a workflow: the one command that every command, report and message names for a state.

`_STEPS` is the table of states; the first row that applies is taken.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, TypeAlias

from attrs import fields, frozen

from torc_framework.client import TorcClient
from torc_framework.executors import DEFAULT_EXECUTOR, Allocator, Executor, Launcher
from torc_framework.executors.lazy_executors import LazyExecutors
from torc_framework.models.exits import ExitClass
from torc_framework.models.progress import WorkflowProgress
from torc_framework.models.records import (
    GIVEN_OPTIONS,
    ComputeNodeRecord,
    ResourceRequirementsRecord,
    ScheduledComputeNodeRecord,
    SlurmSchedulerRecord,
)
from torc_framework.models.resource_fit import offered_resources, requested_resources, resource_shortfalls
from torc_framework.models.runner_location import machine_of, site_of
from torc_framework.models.statuses import LIVE
from torc_framework.models.workflow_states import UNINITIALIZED
from torc_framework.system.machine import this_machine
from torc_framework.system.process_identity import is_dead_runner
from torc_framework.text.quantities import count_text

InstalledExecutors: TypeAlias = Callable[[], Mapping[str, type[Executor]]]
"""Returns the executors of the installed plugins by name; called only if the next step depends on them."""


@frozen
class NextStep:
    """A command to type, and its effect.

    Attributes:
        command: The command.
        why: Its effect, as a clause whose subject is the command.
        first: What a person does before, as a sentence; empty if there is nothing to do.
    """

    command: str
    why: str
    first: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"command": self.command, "why": self.why, "first": self.first or None}

    def lines(self) -> str:
        """Return the lines with which the text of a command ends."""
        return "".join(f"{line}\n" for line in (self.first, f"Next: {self.command}") if line)


# --- what repeats failed jobs ---------------------------------------------------------------------

_CORRECT: Final = "Correct the error in the command or its input first."
_GROWS: Final = frozenset({ExitClass.OOM, ExitClass.TIMEOUT})
"""Classes of failures that a larger request prevents."""
_FIRST: Final[Mapping[ExitClass, str]] = {
    **dict.fromkeys(
        (
            ExitClass.PREEMPTED,
            ExitClass.EVICTED,
            ExitClass.NODE_FAILURE,
            ExitClass.PREFLIGHT,
            ExitClass.SERVICE_ERROR,
            ExitClass.INFRA_ERROR,
            ExitClass.ORPHANED,
            ExitClass.UPSTREAM_FAILED,
            ExitClass.INTERRUPTED,
            ExitClass.CANCELED,
        ),
        "",
    ),
    ExitClass.IMAGE_PULL: "Correct the image first.",
    ExitClass.LAUNCH_FAILURE: "Correct what kept the jobs from starting first.",
    ExitClass.OUTPUT_MISSING: "Correct the command or its declared output files first.",
    ExitClass.UNKNOWN: "Find the cause in the logs first.",
}
"""What a person does before jobs with failures of a class are repeated; `_CORRECT` for the other classes."""


def repeat_step(workflow_id: int, classes: Iterable[str], *, on_nodes: bool, executor: str = "") -> NextStep:
    """Return the command that repeats the failed jobs of a workflow.

    Args:
        executor: Options of ``torc run`` that name the executor, with a space before them.
        classes: Exit classes of the failures.
        on_nodes: The workflow runs on nodes of a batch system.
    """
    known = [_exit_class(each) for each in classes]
    if _GROWS.intersection(known):
        return NextStep(f"torc recover {workflow_id}", "gives the jobs larger requests and makes them ready")
    first = next(filter(None, (_FIRST.get(each, _CORRECT) for each in known)), "")
    if on_nodes:
        return NextStep(f"torc recover {workflow_id} --retry-unknown", "makes the jobs ready and asks for nodes", first)
    return NextStep(f"torc run {workflow_id} --retry-failed{executor}", "makes the jobs ready and runs them", first)


def _exit_class(name: str) -> ExitClass:
    try:
        return ExitClass(name)
    except ValueError:  # of a newer server
        return ExitClass.UNKNOWN


def runs_on_nodes(client: TorcClient, workflow_id: int) -> bool:
    """Return whether a workflow runs on nodes of a batch system: it asked for some, or has a scheduler or an action."""
    return (
        bool(client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id, limit=1))
        or any(each.action_type == "schedule_nodes" for each in client.actions(workflow_id))
        or bool(client.find(SlurmSchedulerRecord, workflow_id=workflow_id, limit=1))
    )


def last_executor(client: TorcClient, workflow_id: int) -> str | None:
    """Return the name of the executor of the workflow's last runner; None if it had none."""
    described = _last_described(client, workflow_id)
    return None if described is None else str(described.get("type", DEFAULT_EXECUTOR))


def _last_described(client: TorcClient, workflow_id: int) -> dict[str, Any] | None:
    """Return what the last runner said about its executor."""
    records = client.find(ComputeNodeRecord, workflow_id=workflow_id, sort_by="id", reverse_sort=True, limit=1)
    described = records[0].scheduler if records else None
    return described if isinstance(described, dict) else None


def options_text(values: Mapping[str, Any]) -> str:
    """Return values of an executor's options as a command line has them, each with a space before it."""
    parts = []
    for name, value in values.items():
        flag = name.replace("_", "-")
        is_switch = isinstance(value, bool)
        parts.append(f" --{'' if value else 'no-'}{flag}" if is_switch else f" --{flag} {shlex.quote(str(value))}")
    return "".join(parts)


def executor_option(
    client: TorcClient, workflow_id: int, executors: InstalledExecutors, sites: Iterable[str] = ()
) -> str:
    """Return ``" --executor NAME"`` for the executor of the workflow's last runner; empty for the default executor.

    The option that names the sites of the last run follows, if the executor has one, and the executor's options that
    the command line of the last run gave.

    Args:
        client: The server.
        workflow_id: The workflow.
        executors: The installed executors.
        sites: Further sites of the last run, on which no runner began.
    """
    described = _last_described(client, workflow_id) or {}
    name = str(described.get("type", DEFAULT_EXECUTOR))
    executor = None if name == DEFAULT_EXECUTOR else executors().get(name)
    if executor is None or not issubclass(executor, Launcher):
        return ""
    option: str | None = executor.sites_option
    began = {site_of(each) for each in sites_of_last_run(client, workflow_id)} if option else set()
    names = ",".join(sorted(began.union(sites))) if began else ""
    named = {option: names} if option and names else {}
    return f" --executor {name}{options_text(named | _given(described, executor, but=option))}"


def _given(described: Mapping[str, Any], executor: type[Launcher], *, but: str | None) -> dict[str, Any]:
    """Return the options that the last run was given, as far as the executor still declares them."""
    given = described.get(GIVEN_OPTIONS)
    declared = {each.name for each in fields(executor.Options)} - {but}
    return {name: value for name, value in given.items() if name in declared} if isinstance(given, dict) else {}


_MOST_SITES: Final = 1000


def sites_of_last_run(client: TorcClient, workflow_id: int) -> list[ComputeNodeRecord]:
    """Return the last runner of each site on which a workflow ran last; none if that run had no named sites."""
    newest_first: Mapping[str, Any] = {"workflow_id": workflow_id, "sort_by": "id", "reverse_sort": True}
    last = client.find(ComputeNodeRecord, limit=1, **newest_first)
    if not last or not site_of(last[0]):
        return []
    process = machine_of(last[0]), last[0].pid
    records = reversed(client.find(ComputeNodeRecord, limit=_MOST_SITES, **newest_first))
    return [*{site_of(each): each for each in records if (machine_of(each), each.pid) == process}.values()]


# --- the states -----------------------------------------------------------------------------------


class _Situation:
    """What the next step of a workflow depends on; every request is sent at the first use of its answer."""

    def __init__(
        self,
        client: TorcClient,
        progress: WorkflowProgress,
        executors: InstalledExecutors,
        *,
        causes_shown: bool,
        sites: Iterable[str] = (),
    ) -> None:
        self._sites = sites
        self._client = client
        self._executors = executors
        self.progress = progress
        self.overview = progress.overview
        self.id = progress.overview.id
        self.causes_shown = causes_shown

    def count(self, *labels: str) -> int:
        """Return how many jobs have one of these statuses."""
        return sum(self.overview.counts.get(label, 0) for label in labels)

    @cached_property
    def runners(self) -> list[ComputeNodeRecord]:
        """Active runners that are not known to be dead."""
        if not self.overview.active_runners:
            return []
        found = self._client.iterate(ComputeNodeRecord, workflow_id=self.id, is_active=True)
        return [runner for runner in found if not is_dead_runner(runner)]

    @property
    def is_worked_on(self) -> bool:
        """Whether a runner holds jobs, or will take some."""
        return bool(self.runners) and (self.count(*_LIVE) > 0 or (bool(self.progress.ready) and not self.fits_nothing))

    @cached_property
    def on_nodes(self) -> bool:
        """Whether the workflow runs on nodes of a batch system."""
        return runs_on_nodes(self._client, self.id)

    @cached_property
    def submits(self) -> bool:
        """Whether an action of the workflow asks for nodes."""
        return any(each.action_type == "schedule_nodes" for each in self._client.actions(self.id))

    @cached_property
    def was_submitted(self) -> bool:
        """Whether nodes were asked for."""
        return bool(self._client.find(ScheduledComputeNodeRecord, workflow_id=self.id, limit=1))

    @cached_property
    def advice(self) -> str | None:
        """The command of an executor that recognizes this machine as one where jobs should not run."""
        found = self._executors()
        for name in sorted(found.advisers if isinstance(found, LazyExecutors) else found):
            executor = found.get(name, Executor)
            if issubclass(executor, Allocator) and (advice := executor.submission_advice(self.id)):
                return advice
        return None

    @cached_property
    def ran_on_sites(self) -> bool:
        """Whether the last run had named sites."""
        return bool(sites_of_last_run(self._client, self.id))

    @cached_property
    def executor(self) -> str:
        """What `executor_option` returns for the workflow."""
        return executor_option(self._client, self.id, self._executors, self._sites)

    @cached_property
    def fits_nothing(self) -> bool:
        """Whether no ready job fits a runner, a site of the last run or this machine.

        Unknown nodes of batch systems fit.
        """
        if not self.progress.ready or (not self.runners and (self.on_nodes or self.advice)):
            return False
        records = self._client.find(ResourceRequirementsRecord, workflow_id=self.id)
        requests = [requested_resources(each) for each in records if each.id in self.progress.ready]
        if len(requests) < len(self.progress.ready):
            return False
        offers = [offered_resources(runner, None) for runner in self.runners]
        sites = [] if self.on_nodes else sites_of_last_run(self._client, self.id)
        offers += [offered_resources(site, None) for site in sites]
        if not self.on_nodes and not sites:
            offers.append(this_machine(count_gpus=any(request.num_gpus for request in requests)))
        return all(resource_shortfalls(request, offer) for request in requests for offer in offers)


_LIVE: Final = tuple(status.label for status in LIVE)
_ENDED: Final = ("completed", "failed", "terminated", "canceled", "disabled")


def _go_on(now: _Situation) -> NextStep:
    """Return the command that lets something work on the jobs that are left.

    Allocations, schedulers or actions that ask for nodes need a batch system, because the user may be on a login node,
    where jobs should not run; so does an executor that recognizes this machine as a login node. A workflow that ran on
    named sites, such as hosts, continues there.
    """
    stay = f"torc watch {now.id} --auto-schedule", "asks for nodes for the remaining jobs and follows the workflow"
    nodes = "asks for nodes for the remaining jobs"
    if now.was_submitted:
        return NextStep(*stay)
    if now.submits:
        return NextStep(f"torc submit {now.id}", nodes)
    if now.on_nodes:
        return NextStep(*stay)
    if now.advice and not now.ran_on_sites:
        return NextStep(now.advice, nodes)
    return NextStep(f"torc run {now.id}{now.executor}", "continues it")


def _of_failures(now: _Situation) -> NextStep:
    if now.causes_shown:
        return repeat_step(now.id, now.progress.failures, on_nodes=now.on_nodes, executor=now.executor)
    return NextStep(f"torc why-failed {now.id}", "shows the causes of the failures")


def _fixed(command: str, why: str) -> Callable[[_Situation], NextStep]:
    return lambda now: NextStep(command.format(now.id), why)


def _is_partly_initialized(now: _Situation) -> bool:
    """Return whether only jobs are left that were added or reset since the last run began, and their dependents."""
    left = {label for label, count in now.overview.counts.items() if count and label not in _ENDED}
    return not now.overview.interrupted and bool(left) and now.overview.state != UNINITIALIZED and left <= {
        "uninitialized",
        "blocked",
    }  # fmt: skip


_REMAINING: Final[tuple[tuple[Callable[[_Situation], bool], Callable[[_Situation], NextStep]], ...]] = (
    (
        lambda now: now.overview.is_canceled,
        lambda now: NextStep(
            f"torc run {now.id} --retry-failed{now.executor}", "makes canceled and interrupted jobs ready and runs them"
        ),
    ),
    (
        lambda now: now.overview.queued_allocations > 0,
        _fixed("torc watch {}", "follows the workflow; its jobs run when the nodes are there"),
    ),
    (lambda now: now.fits_nothing, _fixed("torc explain {}", "shows what the ready jobs ask for")),
    (_is_partly_initialized, _fixed("torc workflows reinitialize {}", "makes jobs that were added or reset ready")),
)
_STEPS: Final[tuple[tuple[Callable[[_Situation], bool], Callable[[_Situation], NextStep]], ...]] = (
    (
        lambda now: now.overview.is_archived,
        _fixed("torc workflows archive false {}", "takes the workflow out of the archive"),
    ),
    (
        lambda now: now.count("pending_failed") > 0,
        _fixed("torc pending list {}", "shows the failures that wait for a verdict"),
    ),
    (
        lambda now: now.overview.is_silent and now.is_worked_on,
        _fixed("torc workflows sync-status {}", "ends runners that are known to be gone, and the jobs that they held"),
    ),
    (lambda now: now.is_worked_on, _fixed("torc watch {}", "follows the workflow")),
    (lambda now: bool(now.progress.failures), _of_failures),
    *_REMAINING,
    (lambda now: now.overview.interrupted > 0 or now.overview.total > now.count(*_ENDED), _go_on),
)
"""The states, and the step of each: a row is a condition and a function that returns the step."""


def next_step(
    client: TorcClient,
    workflow: int | WorkflowProgress,
    executors: InstalledExecutors,
    *,
    causes_shown: bool = False,
    sites: Iterable[str] = (),
) -> NextStep | None:
    """Return the next step of a workflow; None if nothing is left to do.

    Args:
        client: The server.
        workflow: The workflow's id, or its progress if the caller has it.
        executors: The installed executors.
        causes_shown: The causes of failures have been shown: the step repeats the failed jobs.
        sites: Sites of the last run, also those on which no runner began.
    """
    now = _situation(client, workflow, executors, causes_shown=causes_shown, sites=sites)
    return next((step(now) for applies, step in _STEPS if applies(now)), None)


def continuing_step(client: TorcClient, workflow: int | WorkflowProgress, executors: InstalledExecutors) -> NextStep:
    """Return the command that continues a workflow, whatever has failed in it."""
    now = _situation(client, workflow, executors, causes_shown=True)
    return next((step(now) for applies, step in (_REMAINING[0], *_REMAINING[2:]) if applies(now)), None) or _go_on(now)


def _situation(
    client: TorcClient,
    workflow: int | WorkflowProgress,
    executors: InstalledExecutors,
    *,
    causes_shown: bool,
    sites: Iterable[str] = (),
) -> _Situation:
    progress = client.progress(workflow) if isinstance(workflow, int) else workflow
    return _Situation(client, progress, executors, causes_shown=causes_shown, sites=sites)


def next_step_text(client: TorcClient, workflow_id: int, executors: InstalledExecutors, interrupted: int = 0) -> str:
    """Return the clause that names the command which continues a workflow, and how many interrupted jobs it repeats."""
    step = continuing_step(client, workflow_id, executors)
    return f"'{step.command}' {step.why}" + (f"; {run_again_text(interrupted)}" if interrupted else "")


def run_again_text(count: int) -> str:
    """Return the clause for the number of interrupted jobs that run again."""
    return f"{count_text(count, 'interrupted job')} {'runs' if count == 1 else 'run'} again"
