"""Says why the jobs that are left can never run on this runner."""

from typing import Final

from torc_framework.client import TorcClient
from torc_framework.errors import OperatorError
from torc_framework.models.records import JobRecord, ResourceRequirementsRecord
from torc_framework.models.resources import Resources, format_duration, format_memory, parse_duration, parse_memory

_LOOKED_AT: Final = 1000


def requested(record: ResourceRequirementsRecord) -> Resources:
    """Return what a record asks for."""
    return Resources(
        num_cpus=record.num_cpus,
        memory_bytes=parse_memory(record.memory),
        num_gpus=record.num_gpus,
        num_nodes=record.num_nodes,
        runtime_s=parse_duration(record.runtime),
    )


def lacking(wanted: Resources, total: Resources) -> list[str]:
    """Return the amounts of which a runner has too little, each as asked and as offered."""
    pairs = (
        ("CPUs", wanted.num_cpus, total.num_cpus, str),
        ("memory", wanted.memory_bytes, total.memory_bytes, format_memory),
        ("GPUs", wanted.num_gpus, total.num_gpus, str),
        ("nodes", wanted.num_nodes, total.num_nodes, str),
    )
    found = [f"{show(asked)} {name} of {show(has)}" for name, asked, has, show in pairs if asked > has]
    if total.runtime_s is not None and wanted.runtime_s is not None and wanted.runtime_s > total.runtime_s:
        left = format_duration(max(0, int(total.runtime_s)))
        found.append(f"run time {format_duration(int(wanted.runtime_s))} of {left} left")
    return found


def explain(client: TorcClient, workflow_id: int, total: Resources, number: int) -> str:
    """Return one sentence: how many jobs do not fit, and what the first of them lacks, if the server tells."""
    try:
        records = {each.id: each for each in client.find(ResourceRequirementsRecord, workflow_id=workflow_id)}
        for job in client.iterate(JobRecord, workflow_id=workflow_id, status="ready", limit=_LOOKED_AT):
            record = records.get(job.resource_requirements_id)
            if record is not None and (amounts := lacking(requested(record), total)):
                return f"{number} ready jobs do not fit this runner; job {job.name!r} asks for {', '.join(amounts)}"
    except OperatorError:
        return f"{number} ready jobs do not fit this runner"
    return f"{number} ready jobs do not fit this runner, or are bound to another scheduler"
