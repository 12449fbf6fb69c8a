"""A workflow's allocations: asked for, moved into, asked about and given back, through the executors that make them."""

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, asdict, frozen

from torc_framework.client import TorcClient
from torc_framework.errors import AllocationError, TorcError
from torc_framework.executors import (
    Allocation,
    AllocationRequest,
    Allocator,
    Fate,
    RunnerContext,
    environment_of_options,
)
from torc_framework.models.records import (
    ComputeNodeRecord,
    ScheduledComputeNodeRecord,
    SlurmSchedulerRecord,
    WorkflowRecord,
)
from torc_framework.project_plugins import imported_digests
from torc_framework.runner.crew import Crew
from torc_framework.trust import TRUST_VARIABLE

if TYPE_CHECKING:
    from torc_framework.plugins import PluginManager

Options = Mapping[str, Mapping[str, Any]]
"""Values of executors' options, by executor and option."""
_OPEN: Final = ("pending", "active")
LOOK_S: Final = 0.5
"""Time between two looks for the record of an allocation, seconds."""


@frozen
class Answers:
    """What became of a question about allocations.

    Attributes:
        yes: Those of which the batch system said so, or that were given back.
        fates: What became of those that are over, by id of their records, as far as that is known.
        unasked: Why some could not be asked about, one sentence for each executor.
    """

    yes: list[ScheduledComputeNodeRecord] = Factory(list)
    fates: dict[int, Fate] = Factory(dict)
    unasked: list[str] = Factory(list)


def open_allocations(client: TorcClient, workflow_id: int) -> list[ScheduledComputeNodeRecord]:
    """Return a workflow's allocations that are not complete as far as the server knows."""
    found = client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id)
    return sorted((node for node in found if node.status in _OPEN), key=lambda node: (node.scheduler_type, node.id))


def context_of(client: TorcClient, workflow_id: int) -> RunnerContext:
    """Return what executors are told that no runner uses."""
    return RunnerContext(
        workflow_id=workflow_id,
        run_id=client.workflow_status(workflow_id).run_id,
        output_dir=str(Path.cwd()),
        working_dir=str(Path.cwd()),
        api_url=client.environment["TORC_API_URL"],
        server_environment=client.environment,
    )


# --- asking for nodes -----------------------------------------------------------------------------


@frozen
class NodeWishes:
    """What is asked of a batch system.

    Attributes:
        scheduler_id: The scheduler's record.
        output_dir: Folder of the runners' logs.
        count: Allocations.
        max_parallel_jobs: See `RunnerSettings.max_parallel_jobs`.
        job_prefix: What the names of the batch system's jobs begin with.
    """

    scheduler_id: int
    output_dir: Path
    count: int = 1
    start_one_worker_per_node: bool = False
    max_parallel_jobs: int | None = None
    job_prefix: str = "worker"


def wishes_of_action(config: Mapping[str, Any], output_dir: Path) -> NodeWishes:
    """Return what a ``schedule_nodes`` action asks for by its configuration."""
    return NodeWishes(
        config["scheduler_id"],
        output_dir,
        config.get("num_allocations") or 1,
        bool(config.get("start_one_worker_per_node")),
        config.get("max_parallel_jobs"),
    )


def obtain_nodes(
    client: TorcClient, allocator: Allocator, workflow_id: int, wishes: NodeWishes
) -> list[ScheduledComputeNodeRecord]:
    """Ask for allocations, each of which starts a runner of the workflow; return their records.

    Raises:
        AllocationError: nothing was submitted, or was given back, as it cannot be recorded.
        ApiError: there is no such workflow or scheduler.
    """
    workflow = client.get(WorkflowRecord, workflow_id)
    request = AllocationRequest(
        scheduler=asdict(client.get(SlurmSchedulerRecord, wishes.scheduler_id)),
        runner_command=_runner_command(allocator, workflow_id, wishes),
        count=wishes.count,
        start_one_worker_per_node=wishes.start_one_worker_per_node,
        defaults=_defaults(workflow),
        job_prefix=wishes.job_prefix,
        environment=_environment(client, allocator),
        output_dir=str(wishes.output_dir.absolute()),
    )
    allocations = allocator.allocate(request)
    if strange := next((each.id for each in allocations if not _is_number(each.id)), None):
        allocator.release(allocations)
        raise AllocationError(
            f"executor {allocator.name!r} calls an allocation {strange!r}, and allocations are recorded by number: "
            "they were given back; its allocator must name them by whole numbers"
        )
    return [
        client.create(
            ScheduledComputeNodeRecord(
                workflow_id=workflow_id,
                scheduler_id=int(allocation.id),
                scheduler_config_id=wishes.scheduler_id,
                scheduler_type=allocator.name,
                status="pending",
            )
        )
        for allocation in allocations
    ]


def _is_number(id_: str) -> bool:
    """Say whether an allocation's id is one that its record can hold."""
    return id_.isascii() and id_.isdecimal()


def _environment(client: TorcClient, allocator: Allocator) -> dict[str, str]:
    """Return the variables by which a runner finds its server, what it trusts, and the settings that were made here.

    Options of the executor may have been given on the command line, which the node does not see.
    """
    settings = {name: value for name, value in os.environ.items() if name.startswith("TORC_") and "__" in name}
    options = environment_of_options(allocator.name, allocator.options)
    return {**settings, **options, TRUST_VARIABLE: imported_digests(), **client.environment}


def _runner_command(allocator: Allocator, workflow_id: int, wishes: NodeWishes) -> list[str]:
    """Return the command line of a runner; how it reaches the server stands in its environment."""
    launcher = allocator.name if allocator.capabilities.can_launch else "local"
    command = [torc_program(), "run", str(workflow_id), "--worker", "--executor", launcher]
    command += ["--output-dir", str(wishes.output_dir.absolute()), "--scheduler-config-id", str(wishes.scheduler_id)]
    if wishes.max_parallel_jobs:
        command += ["--max-parallel-jobs", str(wishes.max_parallel_jobs)]
    return command


def torc_program() -> str:
    """Return the path of ``torc``: that of this environment, else the first on PATH, else its name."""
    beside = Path(sys.executable).with_name("torc")
    return str(beside) if beside.is_file() else shutil.which("torc") or "torc"


def _defaults(workflow: WorkflowRecord) -> dict[str, Any]:
    """Return a workflow's ``slurm_defaults``; what is no JSON object counts as none."""
    try:
        defaults = json.loads(workflow.slurm_defaults or "{}")
    except ValueError:
        return {}
    return defaults if isinstance(defaults, dict) else {}


# --- living there ---------------------------------------------------------------------------------


@frozen
class Tenancy:
    """A runner's stay in an allocation.

    Args:
        allocation_id: The batch system's name of it; None if the runner lives in none.
        patience_s: How long whoever asked for the allocation may take to note it: a runner can be faster.
    """

    client: TorcClient
    workflow_id: int
    executor: str
    allocation_id: str | None
    patience_s: float = 0.0

    def move_in(self) -> dict[str, Any]:
        """Say that the allocation is in use; return what the runner's record says of it."""
        deadline, record = time.monotonic() + self.patience_s, self._record()
        while record is None and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            record = self._record()
        if record is None:
            return {}
        self._set_status(record, "active")
        return {"scheduler_id": record.id}

    def move_out(self) -> None:
        """Say that the allocation is over, unless other runners live there."""
        record = self._record()
        if record is None:
            return
        there = self.client.find(
            ComputeNodeRecord, workflow_id=self.workflow_id, scheduled_compute_node_id=record.id, is_active=True
        )
        if not there:
            self._set_status(record, "complete")

    def _record(self) -> ScheduledComputeNodeRecord | None:
        if self.allocation_id is None or not _is_number(self.allocation_id):
            return None
        found = self.client.find(
            ScheduledComputeNodeRecord, workflow_id=self.workflow_id, scheduler_id=int(self.allocation_id)
        )
        return next((each for each in found if each.scheduler_type == self.executor), None)

    def _set_status(self, record: ScheduledComputeNodeRecord, status: str) -> None:
        if record.status != status:
            self.client.update(ScheduledComputeNodeRecord, record.id or 0, {"status": status})


# --- asking about them ----------------------------------------------------------------------------


def gone(
    allocations: Sequence[ScheduledComputeNodeRecord],
    plugins: "PluginManager",
    options: Options,
    context: RunnerContext,
) -> Answers:
    """Return the allocations that are neither queued nor running."""
    answers = Answers()
    for executor, several in _by_executor(allocations):
        try:
            allocator = _crew(plugins, options, context).allocator(executor)
            alive = allocator.alive([_named(each) for each in several])
            over = [each for each in several if not alive.get(str(each.scheduler_id), False)]
            fates = allocator.fates([_named(each) for each in over]) if over else {}
        except TorcError as error:
            answers.unasked.append(f"{len(several)} allocation(s) of {executor!r} were not asked about: {error}")
            continue
        answers.yes.extend(over)
        known = ((each.id or 0, fates.get(str(each.scheduler_id))) for each in over)
        answers.fates.update({id_: fate for id_, fate in known if fate is not None})
    return answers


def release(
    allocations: Sequence[ScheduledComputeNodeRecord],
    plugins: "PluginManager",
    options: Options,
    context: RunnerContext,
) -> Answers:
    """Give allocations back; return those of which that was possible."""
    answers = Answers()
    for executor, several in _by_executor(allocations):
        try:
            _crew(plugins, options, context).allocator(executor).release([_named(each) for each in several])
        except TorcError as error:
            answers.unasked.append(f"{len(several)} allocation(s) of {executor!r} were not given back: {error}")
            continue
        answers.yes.extend(several)
    return answers


def _by_executor(
    allocations: Sequence[ScheduledComputeNodeRecord],
) -> list[tuple[str, list[ScheduledComputeNodeRecord]]]:
    return [(name, list(several)) for name, several in groupby(allocations, key=lambda node: node.scheduler_type)]


def _crew(plugins: "PluginManager", options: Options, context: RunnerContext) -> Crew:
    return Crew(plugins.executor, options, context, lambda _launcher: None)


def _named(node: ScheduledComputeNodeRecord) -> Allocation:
    return Allocation(str(node.scheduler_id), node.scheduler_type)
