"""``torc resource-requirements``: the resource requirements of jobs."""

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.output import requested_memory_text, requested_runtime_text
from torc_framework.cli.shared.record_commands import RecordCommands
from torc_framework.cli.shared.record_options import parse_memory_option, parse_runtime_option, record_option
from torc_framework.models.records import ResourceRequirementsRecord

_AMOUNTS = (
    record_option("name", "--name", "-n"),
    record_option("num_cpus", low=1),
    record_option("num_gpus", low=0),
    record_option("num_nodes", low=1),
    record_option("memory", "--memory", "-m", read=parse_memory_option),
    record_option("runtime", "--runtime", "-r", read=parse_runtime_option),
)
REQUIREMENTS = RecordCommands(
    record=ResourceRequirementsRecord,
    one="resource requirements",
    several="resource requirements",
    columns=[
        ("ID", "id"),
        ("Name", "name"),
        ("CPUs", "num_cpus"),
        ("GPUs", "num_gpus"),
        ("Nodes", "num_nodes"),
        ("Memory", requested_memory_text),
        ("Runtime", requested_runtime_text),
    ],
    create=_AMOUNTS,
    update=_AMOUNTS,
    filters=(
        record_option("name", help="Only those of this name."),
        record_option("job_id", kind=int, help="Only those of this job."),
    ),
    notes={"delete": "Jobs that had them get the workflow's default ones."},
    examples={"create": "12 --name large --num-cpus 8 --memory 64g", "update": "34 --memory 128g"},
)

app = CommandGroup("Resource requirements of jobs: CPUs, memory, GPUs, nodes, run time.")
REQUIREMENTS.add(app, "create", "list", "get", "update", "delete")
