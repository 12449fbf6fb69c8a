"""Comparison of the resources that jobs request with those that a runner offers."""

from torc_framework.models.records import ComputeNodeRecord, ResourceRequirementsRecord
from torc_framework.models.resources import Resources, parse_duration, parse_memory
from torc_framework.text.quantities import compared_sizes, exact_duration_text


def requested_resources(record: ResourceRequirementsRecord) -> Resources:
    """Return the resources that a record requests."""
    return Resources(
        num_cpus=record.num_cpus,
        memory_bytes=parse_memory(record.memory),
        num_gpus=record.num_gpus,
        num_nodes=record.num_nodes,
        runtime_s=parse_duration(record.runtime),
    )


def offered_resources(node: ComputeNodeRecord, left_s: float | None) -> Resources:
    """Return the resources that a runner offered at its start, with its remaining walltime in seconds."""
    return Resources(
        num_cpus=node.num_cpus,
        memory_bytes=int(node.memory_gb * 1024**3),
        num_gpus=node.num_gpus,
        num_nodes=node.num_nodes,
        runtime_s=left_s,
    )


def resource_shortfalls(wanted: Resources, total: Resources) -> list[str]:
    """Return a clause for each resource of which a runner has too little: the request and the offer."""
    pairs = (
        ("CPUs", wanted.num_cpus, total.num_cpus),
        ("GPUs", wanted.num_gpus, total.num_gpus),
        ("nodes", wanted.num_nodes, total.num_nodes),
    )
    found = [f"{asked} {name} of {has}" for name, asked, has in pairs if asked > has]
    if wanted.memory_bytes > total.memory_bytes:
        asked_text, has_text = compared_sizes(wanted.memory_bytes, total.memory_bytes)
        found.append(f"{asked_text} memory of {has_text}")
    if total.runtime_s is not None and wanted.runtime_s is not None and wanted.runtime_s > total.runtime_s:
        left = exact_duration_text(max(0, int(total.runtime_s)))
        found.append(f"run time {exact_duration_text(int(wanted.runtime_s))} of {left} left")
    return found
