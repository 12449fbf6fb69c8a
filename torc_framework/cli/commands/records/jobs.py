"""``torc jobs``: the jobs of a workflow."""

from pathlib import Path
from typing import Annotated, Any

import typer

from torc_framework.cli.commands.records.job_list import job_list
from torc_framework.cli.commands.records.job_logs import logs
from torc_framework.cli.commands.records.job_steps import cancel, retry, terminate
from torc_framework.cli.commands.records.jobs_by_status import list_by_status
from torc_framework.cli.commands.records.mapped_jobs import run_function, run_postprocess
from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import Force, WorkflowId, job_of_workflow, pick_workflow
from torc_framework.cli.shared.output import Column, print_json, requested_memory_text, requested_runtime_text
from torc_framework.cli.shared.record_commands import RecordCommands
from torc_framework.cli.shared.record_options import (
    parse_memory_option,
    parse_runtime_option,
    parse_status,
    record_option,
)
from torc_framework.cli.shared.record_output import show_many
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import UserError
from torc_framework.models.records import JobRecord, ResourceRequirementsRecord
from torc_framework.text.terminal import print_line

_EXECUTION = (
    record_option("resource_requirements_id", "--resource-requirements-id", "-r"),
    record_option("depends_on_job_ids", "--blocking-job-ids", "-b"),
    record_option("invocation_script"),
    record_option("cancel_on_blocking_job_failure"),
    record_option("supports_termination"),
    record_option("clean_exit_after_stop"),
    record_option("scheduler_id"),
    record_option("failure_handler_id"),
    record_option("executor"),
    record_option("shell"),
    record_option("container"),
    record_option("executor_options"),
    record_option("stdio"),
    record_option("delete_stdio_on_success"),
)
JOBS = RecordCommands(
    record=JobRecord,
    one="a job",
    several="jobs",
    columns=[],
    text=job_list,
    create=(
        record_option("name", "--name", "-n"),
        record_option("command", "--command", "-c"),
        *_EXECUTION,
        record_option("input_file_ids", "--input-file-ids", "-i"),
        record_option("output_file_ids", "--output-file-ids", "-o"),
        record_option("input_user_data_ids"),
        record_option("output_user_data_ids"),
    ),
    update=(
        record_option("name", "--name", "-n"),
        record_option("command", "--command", "-c"),
        *_EXECUTION,
        record_option(
            "status",
            help="'disabled' takes an uninitialized job out of the workflow, 'uninitialized' puts it back.",
            read=parse_status,
        ),
    ),
    filters=(
        record_option(
            "q",
            "--filter",
            "-q",
            kind=str,
            metavar="FILTER",
            help="Only jobs that a filter finds, such as 'status:failed exit:137 node:n0* peak_mem>48g'.",
        ),
        record_option("status", "--status", "-s", help="Only jobs of this status.", read=parse_status),
        record_option("name", help="Only jobs of this name."),
        record_option("upstream_job_id", kind=int, help="Only jobs that wait for this one."),
        record_option("needs_file_id", kind=int, help="Only jobs that read this file."),
        record_option("active_compute_node_id", kind=int, help="Only jobs that this compute node holds."),
        record_option(
            "include_relationships", kind=bool, is_flag=True, help="Also ids of dependencies, files, user data."
        ),
    ),
    may_be_held=True,
    notes={
        "create": "Lists of ids are given as 1,2,3 or by repeating the option.",
        "update": "Once it is initialized, name, command and what it waits for are fixed.",
        "delete-all": "Files and user data stay.",
        "list": "A term of a filter is FIELD:VALUE, FIELD>VALUE or the like, or a part of the name; - negates it.",
    },
    examples={
        "create": "12 --name train --command 'python train.py' -b 3,4",
        "update": "345 --command 'python train.py --fast'",
        "list": "12 --filter 'status:failed class:oom peak_mem>4g'",
    },
)

app = CommandGroup(
    "Jobs of a workflow.",
    sections={
        "Ask": ("list", "list-by-status", "get", "logs", "list-resource-requirements"),
        "Change": (
            "create",
            "create-from-file",
            "update",
            "retry",
            "cancel",
            "terminate",
            "delete",
            "delete-all",
        ),
        "Called by jobs": ("run-function", "run-postprocess"),
    },
)
JOBS.add(app, "create")

REQUIREMENTS: list[Column] = [
    ("Job ID", "job_id"),
    ("Job Name", "job_name"),
    ("RR ID", "resource_requirements_id"),
    ("RR Name", "name"),
    ("CPUs", "num_cpus"),
    ("GPUs", "num_gpus"),
    ("Nodes", "num_nodes"),
    ("Memory", requested_memory_text),
    ("Runtime", requested_runtime_text),
]


@app.command("create-from-file")
def create_from_file(
    ctx: typer.Context,
    workflow_id: Annotated[int, typer.Argument(metavar="WORKFLOW_ID", help="The workflow.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Text file with one command a line.")],
    *,
    cpus_per_job: Annotated[int, typer.Option(min=1, help="CPU cores of each job.")] = 1,
    memory_per_job: Annotated[str, typer.Option(help="Memory of each job, such as 512m or 16g.")] = "1m",
    runtime_per_job: Annotated[str, typer.Option(help="Longest run time of each job, ISO 8601.")] = "P0DT1M",
) -> None:
    """Add a job for each line of a text file; in one transaction.

    Empty lines and lines that begin with # are skipped. The jobs are named job1, job2, ..., numbered after
    the existing jobs, and share new resource requirements.

    Examples:
        torc jobs create-from-file 12 commands.txt
        torc jobs create-from-file 12 commands.txt --memory-per-job 4g
    """
    from torc_framework.models.plan import AddedJob, Addition

    session = session_of(ctx)
    commands = _lines(file)
    client = session.client
    taken = {job.name for job in client.iterate(JobRecord, workflow_id=workflow_id)}
    names = _free_names(taken, len(commands))
    requirements = client.create(
        ResourceRequirementsRecord(
            workflow_id=workflow_id,
            name=f"{names[0]}_{names[-1]}",
            num_cpus=cpus_per_job,
            memory=parse_memory_option(memory_per_job, "--memory-per-job"),
            runtime=parse_runtime_option(runtime_per_job, "--runtime-per-job"),
        )
    )
    jobs = [AddedJob(*pair, resource_requirements_id=requirements.id) for pair in zip(names, commands, strict=True)]
    try:
        added = client.add(workflow_id, Addition(jobs))
    except Exception:
        client.delete(ResourceRequirementsRecord, requirements.id or 0)
        raise
    if session.wants_json:
        head = {"workflow_id": workflow_id, "resource_requirements_id": requirements.id}
        print_json({**head, "jobs_created": len(added.job_ids), "job_ids": added.job_ids})
    else:
        print_line(f"Created {len(jobs)} jobs in workflow {workflow_id}: {names[0]} to {names[-1]}")


def _lines(file: Path) -> list[str]:
    """Return the commands of a file.

    Raises:
        UserError: it cannot be read, or holds no command.
    """
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}") from None
    commands = [line for line in lines if line and not line.startswith("#")]
    if not commands:
        raise UserError(f"{file} holds no commands: write one on each line")
    return commands


def _free_names(taken: set[str], count: int) -> list[str]:
    """Return names for new jobs, numbered after the existing ones."""
    names: list[str] = []
    number = len(taken)
    while len(names) < count:
        number += 1
        if (name := f"job{number}") not in taken:
            names.append(name)
    return names


JOBS.add(app, "list", "get", "update")
app.command("retry")(retry)
app.command("cancel")(cancel)
app.command("terminate")(terminate)


@app.command("delete")
def delete(
    ctx: typer.Context,
    ids: Annotated[list[int], typer.Argument(metavar="ID...", help="The jobs.")],
    force: Force = False,
) -> None:
    """Delete jobs; those of one workflow in one transaction. If one of them does not exist, none is deleted.

    Examples:
        torc jobs delete 345
        torc jobs delete 345 346 --force
    """
    session = session_of(ctx)
    of_workflows: dict[int, list[int]] = {}
    for job_id in ids:
        of_workflows.setdefault(session.client.get(JobRecord, job_id).workflow_id, []).append(job_id)
    delete = session.client.delete_jobs
    gone = [job for workflow_id, its in of_workflows.items() for job in delete(workflow_id, its, force=force)]
    if session.wants_json:
        print_json({"jobs": gone})
        return
    for job in gone:
        print_line(f"Deleted job {job.id} ({job.name})")


JOBS.add(app, "delete-all")


@app.command("list-resource-requirements")
def list_resource_requirements(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    job_id: Annotated[int | None, typer.Option("--job-id", "-j", help="Only this job.")] = None,
) -> None:
    """List jobs with their resource requirements.

    Examples:
        torc jobs list-resource-requirements 12
        torc jobs list-resource-requirements 12 --job-id 345
    """
    session = session_of(ctx)
    client = session.client
    if job_id is not None:
        jobs = [job_of_workflow(client, job_id, workflow_id)]
        chosen = jobs[0].workflow_id
    else:
        chosen = pick_workflow(session, workflow_id)
        jobs = client.find(JobRecord, workflow_id=chosen)
    records = {each.id: each for each in client.iterate(ResourceRequirementsRecord, workflow_id=chosen)}
    rows = [_with_requirements(job, records[job.resource_requirements_id]) for job in jobs]
    show_many(session, None, f"resource requirements of jobs of workflow {chosen}", REQUIREMENTS, rows)


def _with_requirements(job: JobRecord, asked: ResourceRequirementsRecord) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "job_name": job.name,
        "workflow_id": job.workflow_id,
        "resource_requirements_id": asked.id,
        "name": asked.name,
        "rr_name": asked.name,
        "num_cpus": asked.num_cpus,
        "num_gpus": asked.num_gpus,
        "num_nodes": asked.num_nodes,
        "memory": asked.memory,
        "runtime": asked.runtime,
    }


app.command("logs")(logs)
app.command("list-by-status")(list_by_status)
app.command("run-function")(run_function)
app.command("run-postprocess")(run_postprocess)
