"""Requests for compute nodes, recorded on the server before they are submitted to a batch system.

The process that requests nodes may end at any moment: by Ctrl-C, with its terminal, by ``kill -9``. A request is
therefore recorded on the server under a unique name before it is submitted, and submitted under that name. When the
batch system has answered, the allocations get records of their own and the request's record is removed. A request
record that is left over belongs to a process that did not get that far: `unanswered_requests` asks the batch system for
the name, and records or cancels what it has accepted.
"""

import os
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen

from torc_framework.allocations.records import record_allocation
from torc_framework.allocations.walltimes import refuse_useless_walltime
from torc_framework.client import TorcClient
from torc_framework.client.calls.base import RECORD_PATHS
from torc_framework.errors import AllocationError, AllocationUnknownError, ApiError, NodeRequestInterrupted, TorcError
from torc_framework.executors import DEFAULT_EXECUTOR, Allocation, AllocationRequest, Allocator, RunnerStart
from torc_framework.models.records import ScheduledComputeNodeRecord, WorkflowRecord
from torc_framework.models.scheduler_defaults import scheduler_defaults
from torc_framework.plugin_options import environment_of_options
from torc_framework.plugins.project_folders import imported_digests
from torc_framework.plugins.trusted_folders import TRUST_VARIABLE
from torc_framework.system.process_identity import this_process

_IN_NAMES: Final = re.compile(r"[^\w.@+-]", re.ASCII)
_KINDS: Final = {path: kind for kind, path in RECORD_PATHS.items()}


NO_SCHEDULER: Final = 0
"""Id in records of allocations that were requested without a scheduler record."""


@frozen
class NodeRequest:
    """A request for allocations, each of which starts a runner of a workflow.

    Attributes:
        scheduler_config_id: Id of the scheduler record that describes an allocation; `NO_SCHEDULER` for an executor
            whose requests need none.
        output_dir: Folder of the runners' logs.
        count: Number of allocations.
        start_one_worker_per_node: Start a runner on each node instead of one per allocation.
        max_parallel_jobs: See `RunnerSettings.max_parallel_jobs`.
        job_prefix: Beginning of the names of the batch system's jobs.
    """

    scheduler_config_id: int
    output_dir: Path
    count: int = 1
    start_one_worker_per_node: bool = False
    max_parallel_jobs: int | None = None
    job_prefix: str = "worker"


def node_request_of_action(config: Mapping[str, Any], output_dir: Path) -> NodeRequest:
    """Return the request that the configuration of a ``schedule_nodes`` action describes."""
    return NodeRequest(
        config.get("scheduler_id") or NO_SCHEDULER,
        output_dir,
        config.get("num_allocations") or 1,
        bool(config.get("start_one_worker_per_node")),
        config.get("max_parallel_jobs"),
    )


def obtain_nodes(
    client: TorcClient, allocator: Allocator, workflow_id: int, wanted: NodeRequest
) -> list[ScheduledComputeNodeRecord]:
    """Request allocations, each of which starts a runner of the workflow; return their records.

    Raises:
        AllocationError: nothing was submitted, because no job would start there or for another reason, or it was given
            back because the workflow is canceled or deleted.
        ApiError: there is no such workflow or scheduler.
        NodeRequestInterrupted: a KeyboardInterrupt came when a part of the request had been accepted.
    """
    request = _request_for(client, allocator, workflow_id, wanted)
    if allocator.scheduler_kind is not None:
        refuse_useless_walltime(client, workflow_id, _KINDS[allocator.scheduler_kind], request.scheduler)
    record = client.create(
        ScheduledComputeNodeRecord(
            workflow_id=workflow_id,
            scheduler_id=0,
            scheduler_config_id=wanted.scheduler_config_id,
            scheduler_type=allocator.name,
            status="pending",
            request=request.name,
            requester={**this_process(), "hostname": os.uname().nodename, "at": time.time()},
        )
    )
    try:
        return _record_or_release(client, allocator, record, _accepted(client, allocator, request, record))
    except KeyboardInterrupt:
        if found := _found_again(allocator, record):
            raise NodeRequestInterrupted(_record_or_release(client, allocator, record, found)) from None
        raise


def _accepted(
    client: TorcClient, allocator: Allocator, request: AllocationRequest, record: ScheduledComputeNodeRecord
) -> Sequence[Allocation]:
    """Submit a recorded request; return what was accepted."""
    if client.workflow_status(record.workflow_id).is_canceled:
        close_request(client, record)
        raise AllocationError(f"workflow {record.workflow_id} is canceled: it gets no nodes")
    try:
        return allocator.allocate(request)
    except AllocationUnknownError:
        if found := _found_again(allocator, record):
            return found
        raise
    except AllocationError:
        close_request(client, record)
        raise


def _request_for(client: TorcClient, allocator: Allocator, workflow_id: int, wanted: NodeRequest) -> AllocationRequest:
    prefix = _IN_NAMES.sub("_", wanted.job_prefix)
    start = allocator.runner_start() or RunnerStart(
        allocator.name if allocator.capabilities.can_launch else DEFAULT_EXECUTOR,
        str(wanted.output_dir.absolute()),
        torc_program(),
    )
    return AllocationRequest(
        scheduler=_scheduler(client, allocator, wanted),
        runner_command=_runner_command(start, workflow_id, wanted),
        count=wanted.count,
        start_one_worker_per_node=wanted.start_one_worker_per_node,
        defaults=scheduler_defaults(client.get(WorkflowRecord, workflow_id).slurm_defaults),
        name=f"{prefix}_wf{workflow_id}_{os.urandom(6).hex()}",
        environment=_environment(client, allocator),
        output_dir=start.output_dir,
    )


def _scheduler(client: TorcClient, allocator: Allocator, wanted: NodeRequest) -> dict[str, Any]:
    """Return the scheduler record of a request as JSON values; empty if the executor needs none.

    Raises:
        AllocationError: the executor needs one, and none is named.
        ApiError: there is no such scheduler.
    """
    if allocator.scheduler_kind is None:
        return {}
    if wanted.scheduler_config_id == NO_SCHEDULER:
        raise AllocationError(f"executor {allocator.name!r} needs a scheduler that describes the nodes; none is named")
    return asdict(client.get(_KINDS[allocator.scheduler_kind], wanted.scheduler_config_id))


def _found_again(allocator: Allocator, request: ScheduledComputeNodeRecord) -> Sequence[Allocation]:
    """Return what was accepted of this process's own request; nothing if that cannot be found out now."""
    with suppress(TorcError):
        return allocator.find([request.request or ""]).get(request.request or "", ())
    return ()


def _record_or_release(
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
        records = record_answer(client, request, allocations)
        is_canceled = close_request(client, request).status == "complete"
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


def record_answer(
    client: TorcClient, request: ScheduledComputeNodeRecord, allocations: Sequence[Allocation]
) -> list[ScheduledComputeNodeRecord]:
    """Return the records of the allocations that a batch system accepted for a request; make those that are missing."""
    asked = request.workflow_id, request.scheduler_type, request.scheduler_config_id
    return [record_allocation(client, *asked, each.id, request=request.request) for each in allocations]


def close_request(client: TorcClient, request: ScheduledComputeNodeRecord) -> ScheduledComputeNodeRecord:
    """Remove the record of a request whose answer is recorded; return the record as it was last."""
    try:
        return client.delete(ScheduledComputeNodeRecord, request.id or 0)
    except ApiError as error:
        if error.status != 404:
            raise
        return request  # another process has removed it


def _environment(client: TorcClient, allocator: Allocator) -> dict[str, str]:
    """Return the variables for a runner: its server, the trusted plugin files, and the settings of this process.

    Options of the executor may have been given on the command line, which the node does not see.
    """
    settings = {name: value for name, value in os.environ.items() if name.startswith("TORC_") and "__" in name}
    options = environment_of_options(allocator.name, allocator.options)
    return {**settings, **options, TRUST_VARIABLE: imported_digests(), **client.environment}


def _runner_command(start: RunnerStart, workflow_id: int, wanted: NodeRequest) -> list[str]:
    """Return the command line of a runner; its environment names the server."""
    command = [start.program, "run", str(workflow_id), "--worker", "--executor", start.executor]
    command += ["--output-dir", start.output_dir]
    if wanted.scheduler_config_id != NO_SCHEDULER:
        command += ["--scheduler-config-id", str(wanted.scheduler_config_id)]
    if wanted.max_parallel_jobs:
        command += ["--max-parallel-jobs", str(wanted.max_parallel_jobs)]
    return [*command, *start.options]


def torc_program() -> str:
    """Return the path of ``torc``: that of this environment, else the first on PATH, else its name."""
    beside = Path(sys.executable).with_name("torc")
    return str(beside) if beside.is_file() else shutil.which("torc") or "torc"
