"""Requests for compute nodes: on the server before they are made, and found again when they were cut short.

The process that asks for nodes may end at any moment: by Ctrl-C, with its terminal, by ``kill -9``. So a request is a
record on the server, with a name that no other has, before a batch system hears of it, and the batch system is told the
name. The allocations get records of their own, and then the request's is removed. A request that is left over was cut
short: the batch system is asked for its name, and what it has accepted is recorded, or canceled.
"""

import json
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, asdict, define, frozen

from torc_framework.client import TorcClient
from torc_framework.client.calls.base import RECORD_PATHS
from torc_framework.errors import AllocationError, AllocationUnknownError, ApiError, TorcError
from torc_framework.executors import Allocation, AllocationRequest, Allocator, RunnerContext
from torc_framework.models.records import ScheduledComputeNodeRecord, WorkflowRecord
from torc_framework.plugin_options import environment_of_options
from torc_framework.plugins.project_folders import imported_digests
from torc_framework.plugins.trusted_folders import TRUST_VARIABLE
from torc_framework.runner.allocations.records import (
    ExecutorOptions,
    by_executor,
    make_allocator,
    open_requests,
    record_allocation,
)
from torc_framework.runner.process.identity import is_gone, this_process

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

ACCEPTED_WITHIN_S: Final = 60.0
"""A batch system accepts a request within this time after it was recorded, also if the process that asked is gone."""
LONGEST_S: Final = 3600.0
"""A request of a process of which it cannot be known whether it lives counts as cut short after this time."""
_IN_NAMES: Final = re.compile(r"[^\w.@+-]", re.ASCII)
_KINDS: Final = {path: kind for kind, path in RECORD_PATHS.items()}


@frozen
class NodeRequest:
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


def node_request_of_action(config: Mapping[str, Any], output_dir: Path) -> NodeRequest:
    """Return what a ``schedule_nodes`` action asks for by its configuration."""
    return NodeRequest(
        config["scheduler_id"],
        output_dir,
        config.get("num_allocations") or 1,
        bool(config.get("start_one_worker_per_node")),
        config.get("max_parallel_jobs"),
    )


class NodeRequestInterrupted(KeyboardInterrupt):
    """A person interrupted a request for nodes, after a part of it was accepted.

    Attributes:
        allocations: Records of what was accepted.
    """

    def __init__(self, allocations: Sequence[ScheduledComputeNodeRecord]) -> None:
        super().__init__()
        self.allocations = allocations


def obtain_nodes(
    client: TorcClient, allocator: Allocator, workflow_id: int, wishes: NodeRequest
) -> list[ScheduledComputeNodeRecord]:
    """Ask for allocations, each of which starts a runner of the workflow; return their records.

    Raises:
        AllocationError: nothing was submitted, or it was given back, as the workflow is canceled or gone.
        ApiError: there is no such workflow or scheduler.
        NodeRequestInterrupted: a KeyboardInterrupt came when a part of the request had been accepted.
    """
    request = _request_for(client, allocator, workflow_id, wishes)
    record = client.create(
        ScheduledComputeNodeRecord(
            workflow_id=workflow_id,
            scheduler_id=0,
            scheduler_config_id=wishes.scheduler_id,
            scheduler_type=allocator.name,
            status="pending",
            request=request.name,
            requester={**this_process(), "hostname": os.uname().nodename, "at": time.time()},
        )
    )
    try:
        return _record(client, allocator, record, _accepted(client, allocator, request, record))
    except KeyboardInterrupt:
        if found := _found_again(allocator, record):
            raise NodeRequestInterrupted(_record(client, allocator, record, found)) from None
        raise


def _accepted(
    client: TorcClient, allocator: Allocator, request: AllocationRequest, record: ScheduledComputeNodeRecord
) -> Sequence[Allocation]:
    """Submit a recorded request; return what was accepted."""
    if client.workflow_status(record.workflow_id).is_canceled:
        _close(client, record)
        raise AllocationError(f"workflow {record.workflow_id} is canceled: it gets no nodes")
    try:
        return allocator.allocate(request)
    except AllocationUnknownError:
        if found := _found_again(allocator, record):
            return found
        raise
    except AllocationError:
        _close(client, record)
        raise


def _request_for(client: TorcClient, allocator: Allocator, workflow_id: int, wishes: NodeRequest) -> AllocationRequest:
    kind = allocator.scheduler_kind
    scheduler = {} if kind is None else asdict(client.get(_KINDS[kind], wishes.scheduler_id))
    prefix = _IN_NAMES.sub("_", wishes.job_prefix)
    return AllocationRequest(
        scheduler=scheduler,
        runner_command=_runner_command(allocator, workflow_id, wishes),
        count=wishes.count,
        start_one_worker_per_node=wishes.start_one_worker_per_node,
        defaults=_defaults(client.get(WorkflowRecord, workflow_id)),
        name=f"{prefix}_wf{workflow_id}_{secrets.token_hex(6)}",
        environment=_environment(client, allocator),
        output_dir=str(wishes.output_dir.absolute()),
    )


def _found_again(allocator: Allocator, request: ScheduledComputeNodeRecord) -> Sequence[Allocation]:
    """Return what was accepted of this process's own request; nothing if that cannot be known now."""
    with suppress(TorcError):
        return allocator.find([request.request or ""]).get(request.request or "", ())
    return ()


def _record(
    client: TorcClient,
    allocator: Allocator,
    request: ScheduledComputeNodeRecord,
    allocations: Sequence[Allocation],
) -> list[ScheduledComputeNodeRecord]:
    """Record what was accepted, in place of its request.

    Raises:
        AllocationError: the workflow was canceled or deleted meanwhile: the allocations were given back.
    """
    try:
        records = _note(client, request, allocations)
        is_canceled = _close(client, request).status == "complete"
    except ApiError as error:
        allocator.release(allocations)
        raise AllocationError(
            f"{len(allocations)} allocation(s) were given back, for want of a record: {error}"
        ) from None
    if is_canceled:
        allocator.release(allocations)
        for record in records:
            client.update(ScheduledComputeNodeRecord, record.id or 0, {"status": "complete"})
        raise AllocationError(
            f"workflow {request.workflow_id} was canceled meanwhile: {len(allocations)} allocation(s) were given back"
        )
    return records


def _note(
    client: TorcClient, request: ScheduledComputeNodeRecord, allocations: Sequence[Allocation]
) -> list[ScheduledComputeNodeRecord]:
    """Return the records of the allocations that came of a request; those that are missing are made."""
    asked = request.workflow_id, request.scheduler_type, request.scheduler_config_id
    return [record_allocation(client, *asked, each.id, request=request.request) for each in allocations]


def _close(client: TorcClient, request: ScheduledComputeNodeRecord) -> ScheduledComputeNodeRecord:
    """Remove a request whose answer is known; return its record as it was last."""
    try:
        return client.delete(ScheduledComputeNodeRecord, request.id or 0)
    except ApiError as error:
        if error.status != 404:
            raise
        return request  # another process has closed it


def _environment(client: TorcClient, allocator: Allocator) -> dict[str, str]:
    """Return the variables by which a runner finds its server, what it trusts, and the settings that were made here.

    Options of the executor may have been given on the command line, which the node does not see.
    """
    settings = {name: value for name, value in os.environ.items() if name.startswith("TORC_") and "__" in name}
    options = environment_of_options(allocator.name, allocator.options)
    return {**settings, **options, TRUST_VARIABLE: imported_digests(), **client.environment}


def _runner_command(allocator: Allocator, workflow_id: int, wishes: NodeRequest) -> list[str]:
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


# --- requests that were cut short -----------------------------------------------------------------


@define
class ResolvedRequests:
    """What became of a workflow's requests that had no recorded answer.

    Attributes:
        allocations: Records of what had been accepted.
        open: Requests of which more may be accepted.
        notes: What could not be found out, one sentence each.
    """

    allocations: list[ScheduledComputeNodeRecord] = Factory(list)
    open: list[ScheduledComputeNodeRecord] = Factory(list)
    notes: list[str] = Factory(list)


def resolve_requests(
    client: TorcClient, plugins: "PluginManager", options: ExecutorOptions, context: RunnerContext
) -> ResolvedRequests:
    """Record what batch systems accepted of a workflow's requests whose answers are not recorded.

    A request is closed once it was cut short and the batch system will accept nothing of it any more. Until then it
    stays open.
    """
    settled = ResolvedRequests()
    for executor, several in by_executor(open_requests(client, context.workflow_id)):
        over = [each.id for each in several if _is_over(each)]  # before the question: what is found is all of these
        try:
            found = make_allocator(plugins, options, context, executor).find([each.request or "" for each in several])
        except TorcError as error:
            settled.open += several
            settled.notes.append(f"{len(several)} request(s) for nodes to {executor!r} were not looked for: {error}")
            continue
        for request in several:
            accepted = found.get(request.request or "", ())
            settled.allocations += _note(client, request, accepted)
            if request.id in over:
                _close(client, request)
            else:
                settled.open.append(request)
    return settled


def refuse_requests(client: TorcClient, requests: Sequence[ScheduledComputeNodeRecord]) -> list[str]:
    """Let open requests of a canceled workflow come to nothing; return what remains to be done, one sentence each.

    The process that asks gives back what it still gets. Where that process is dead, another look is needed.
    """
    notes = []
    for request in requests:
        if _requester_is_dead(request):
            notes.append(
                f"request {request.request} for nodes was cut short a moment ago and may still be accepted: "
                f"'torc workflows cancel {request.workflow_id}' in a minute sees to it"
            )
        else:
            client.update(ScheduledComputeNodeRecord, request.id or 0, {"status": "complete"})
    return notes


def _is_over(request: ScheduledComputeNodeRecord) -> bool:
    """Say whether a batch system will accept nothing of a request any more that it has not accepted yet."""
    return _age_s(request) > (ACCEPTED_WITHIN_S if _requester_is_dead(request) else LONGEST_S)


def _requester_is_dead(request: ScheduledComputeNodeRecord) -> bool:
    """Say whether the process that asked is certainly gone; of another machine's it is never known."""
    described = _requester(request)
    return described.get("hostname") == os.uname().nodename and is_gone(described)


def _age_s(request: ScheduledComputeNodeRecord) -> float:
    """Return how long ago a request was recorded, by the clocks on the wall of the two machines, seconds."""
    at = _requester(request).get("at")
    return time.time() - at if isinstance(at, int | float) else LONGEST_S + 1


def _requester(request: ScheduledComputeNodeRecord) -> Mapping[str, Any]:
    return request.requester if isinstance(request.requester, dict) else {}
