"""The allocation around this process: its id, the runner's nodes, and the resources that the runner may use there."""

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from attrs import frozen

from torc_framework.api import LaunchError, LaunchSite, Resources, RunnerContext, parse_memory
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.calls.slurm_errors import SlurmNotInstalledError, SlurmRefusedError, SlurmUnavailableError
from torc_slurm.cluster.scontrol import parse_record

_MIB: Final = 1024**2
CONTROLLER_PATIENCE_S: Final = 60.0
"""How long to wait for an unavailable controller, seconds; after that only the environment counts."""
FIRST_SPECIAL_STEP: Final = 0xFFFFFFF0
"""Step numbers from here on are batch scripts, interactive shells and the like (``slurm.h``, ``SLURM_*_STEP``)."""
NO_ALLOCATION_MESSAGE: Final = (
    "there is no Slurm allocation around this process, so it cannot run jobs as steps of one; "
    "submit the workflow with 'torc submit-slurm', or run this within an allocation (sbatch, salloc)"
)
_GPU: Final = re.compile(r"gres/gpu=(\d+)")


def inside_allocation(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether this process runs within an allocation."""
    variables = os.environ if environment is None else environment
    return variables.get("SLURM_JOB_ID", "").isdecimal()


@frozen
class AllocationContext:
    """The part of an allocation that a runner uses alone.

    Attributes:
        job_id: The allocation.
        nodes: Number of nodes in this part.
        node: Name of the only node of this part; None if the part is the whole allocation.
        node_index: Index of the runner's node within the allocation, from 0.
        cpus: CPUs per node.
        memory_bytes: Memory per node; 0 if it is not limited.
        gpus: GPUs per node.
        ends_at: When the allocation ends, seconds since the epoch; None if unknown.
        facts: Further facts for the runner's record.
    """

    job_id: int
    nodes: int = 1
    node: str | None = None
    node_index: int = 0
    cpus: int = 1
    memory_bytes: int = 0
    gpus: int = 0
    ends_at: float | None = None
    facts: Mapping[str, Any] = {}

    def label(self, context: RunnerContext, pid: int) -> str:
        """Return the part of file names that identifies this runner (Torc, "Log File Reference")."""
        return f"wf{context.workflow_id}_sl{self.job_id}_n{self.node_index}_pid{pid}"

    def launch_site(self, context: RunnerContext, pid: int, gpu_names: tuple[str, ...] | None = None) -> LaunchSite:
        """Return the description of these nodes for the runner.

        Args:
            gpu_names: Names of the GPUs; by default 0, 1, ... for all nodes together.
        """
        label = self.label(context, pid)
        names = tuple(map(str, range(self.gpus * self.nodes))) if gpu_names is None else gpu_names
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return LaunchSite(
            resources=Resources(self.cpus, self.memory_bytes or physical, self.gpus, self.nodes),
            gpu_names=names,
            kind="slurm",
            allocation_id=str(self.job_id),
            ends_at=self.ends_at,
            facts={"type": "slurm", "slurm_job_id": self.job_id, "label": label, **self.facts},
            log_name=f"job_runner_slurm_{label}.log",
        )


def find_allocation_context(slurm: SlurmCommands, environment: Mapping[str, str] | None = None) -> AllocationContext:
    """Return the allocation around this process, from the environment and one ``scontrol``.

    Where Slurm does not answer, the environment alone counts.

    Raises:
        LaunchError: this process runs in no allocation.
    """
    variables = os.environ if environment is None else environment
    if not inside_allocation(variables):
        raise LaunchError(NO_ALLOCATION_MESSAGE)
    job_id = variables["SLURM_JOB_ID"]
    described: Mapping[str, str] = {}
    with suppress(SlurmUnavailableError, SlurmNotInstalledError, SlurmRefusedError):
        command = ("scontrol", "-o", "show", "job", job_id)
        described = parse_record(slurm.run_retrying(*command, patience_s=CONTROLLER_PATIENCE_S))
    return allocation_context_of(variables, described)


def allocation_context_of(variables: Mapping[str, str], described: Mapping[str, str]) -> AllocationContext:
    """Return the allocation that an environment and a job's record describe.

    An amount that neither of them has gets its smallest value.

    Args:
        variables: The environment.
        described: The job's record of ``scontrol``; may be empty.
    """
    all_nodes = _number(variables, "SLURM_JOB_NUM_NODES", "SLURM_NNODES") or _number(described, "NumNodes") or 1
    node = _runner_node(variables)
    index = _number(variables, "SLURM_NODEID") or 0
    cpus_by_node = _counts_per_node(variables.get("SLURM_JOB_CPUS_PER_NODE", ""))
    cpus = min(cpus_by_node, default=0) or _number(variables, "SLURM_CPUS_ON_NODE") or 1
    if node is not None and index < len(cpus_by_node) == all_nodes:
        cpus = cpus_by_node[index]
    tres = described.get("TRES", "")
    return AllocationContext(
        job_id=int(variables["SLURM_JOB_ID"]),
        nodes=1 if node is not None else all_nodes,
        node=node,
        node_index=index,
        cpus=cpus,
        memory_bytes=_memory(variables, tres, all_nodes, cpus, is_step=node is not None),
        gpus=_gpus(variables, tres, all_nodes),
        ends_at=_end(variables, described),
        facts=_facts(variables, node),
    )


def _runner_node(variables: Mapping[str, str]) -> str | None:
    """Return the node of a process that runs as a step, as with one worker per node; else None."""
    step = variables.get("SLURM_STEP_ID", "")
    if not step.isdecimal() or int(step) >= FIRST_SPECIAL_STEP:
        return None
    return variables.get("SLURMD_NODENAME")


def _facts(variables: Mapping[str, str], node: str | None) -> dict[str, Any]:
    names = {"partition": "SLURM_JOB_PARTITION", "nodes": "SLURM_JOB_NODELIST", "cluster": "SLURM_CLUSTER_NAME"}
    facts: dict[str, Any] = {key: variables[name] for key, name in names.items() if name in variables}
    return facts | ({} if node is None else {"node": node})


def _number(values: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        match = re.match(r"\d+", values.get(name, ""))
        if match:
            return int(match[0])
    return None


def _counts_per_node(text: str) -> list[int]:
    """Return the numbers of a list such as ``4(x2),2``; another text gives an empty list."""
    counts: list[int] = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            return []
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _memory(variables: Mapping[str, str], tres: str, nodes: int, cpus: int, *, is_step: bool) -> int:
    """Return the memory per node in bytes.

    The variables of a step describe the step alone, so within a step the job's record has precedence.
    """
    match = re.search(r"(?:^|,)mem=(\d+)(?:\.\d+)?([KMGT]?)", tres)
    recorded = parse_memory(match[1] + (match[2] or "M")) // nodes if match else 0
    per_node, per_cpu = _number(variables, "SLURM_MEM_PER_NODE"), _number(variables, "SLURM_MEM_PER_CPU")
    from_variables = per_node * _MIB if per_node else (per_cpu or 0) * cpus * _MIB
    return (recorded or from_variables) if is_step else (from_variables or recorded)


def _gpus(variables: Mapping[str, str], tres: str, nodes: int) -> int:
    if match := _GPU.search(tres):
        return int(match[1]) // nodes
    for name in ("SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"):
        if variables.get(name):
            return len([part for part in variables[name].split(",") if part.strip()])
    return _number(variables, "SLURM_GPUS_ON_NODE") or 0


def _end(variables: Mapping[str, str], described: Mapping[str, str]) -> float | None:
    if ends_at := _number(variables, "SLURM_JOB_END_TIME"):
        return float(ends_at)
    try:  # scontrol prints local time
        return time.mktime(time.strptime(described.get("EndTime", ""), "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return None
