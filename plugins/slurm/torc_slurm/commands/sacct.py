"""``torc slurm sacct``: accounting's records of a workflow's allocations and their steps."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from torc_framework.api import ContainedFolder, ScheduledComputeNodeRecord, UserError, parse_memory
from torc_framework.api.commands import (
    Column,
    CommandGroup,
    WorkflowId,
    memory_text,
    pick_workflow,
    print_json,
    print_table,
    seconds_text,
    session_of,
)
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.shared.slurm_times import parse_sacct_time

SUMMARY_FIELDS: Final = ("JobIDRaw", "JobName", "State", "ExitCode", "ElapsedRaw", "MaxRSS", "TotalCPU", "NodeList")


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("sacct")(sacct)


def sacct(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    output_dir: Annotated[Path | None, typer.Option("--output-dir", "-o", help="Folder for the JSON files.")] = None,
    save_json: Annotated[
        bool,
        typer.Option("--save-json", help="Also save the complete output of sacct, as sacct_ID.json in the folder."),
    ] = False,
) -> None:
    """Show Slurm's accounting of a workflow; of its allocations and their steps.

    Examples:
        torc slurm sacct 12
        torc slurm sacct 12 --save-json --output-dir logs
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    nodes = session.client.find(ScheduledComputeNodeRecord, workflow_id=chosen)
    ids = [node.batch_id for node in nodes if node.scheduler_type == "slurm" and not node.is_request]
    slurm = SlurmCommands("cli")
    rows = (
        list(
            parse_summary_rows(
                slurm.run("sacct", "-nP", f"--jobs={','.join(ids)}", f"--format={','.join(SUMMARY_FIELDS)}")
            )
        )
        if ids
        else []
    )
    rows = [row for row in rows if row["slurm_job_id"] in ids]
    files = _save_json(slurm, ids, output_dir or session.config.client.run.output_dir) if save_json else []
    if session.wants_json:
        print_json({"workflow_id": chosen, "total": len(rows), "summary": rows, "files": files})
        return
    if not ids:
        print(f"No Slurm allocations of workflow {chosen} found.")
        return
    print(f"Slurm Accounting Summary for Workflow {chosen}")
    print_table(_COLUMNS, rows)
    print(f"Total: {len(rows)} job steps")
    for file in files:
        print(f"Saved {file}")


def parse_summary_rows(text: str) -> Iterator[dict[str, Any]]:
    """Yield one row for each job and step in the output of ``sacct``; other lines are skipped."""
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) != len(SUMMARY_FIELDS):
            continue
        job, name, state, code, elapsed, memory, cpu, nodes = fields
        job_id, _, step = job.partition(".")
        yield {
            "slurm_job_id": job_id,
            "step_id": step or None,
            "job_step": name,
            "state": state,
            "exit_code": code.removesuffix(":0"),
            "elapsed_s": int(elapsed) if elapsed.isdecimal() else None,
            "max_rss_bytes": _bytes(memory),
            "cpu_time_s": parse_sacct_time(cpu),
            "nodes": nodes,
        }


def _bytes(text: str) -> int | None:
    try:
        return parse_memory(text) if text else None
    except ValueError:
        return None


def _save_json(slurm: SlurmCommands, ids: list[str], folder: Path) -> list[str]:
    """Save the complete output of ``sacct``, one file per allocation; return the paths."""
    files = []
    try:
        within = ContainedFolder(folder)
        for id_ in ids:  # as the record on the server has it
            name = f"sacct_{id_}.json"
            within.write(name, slurm.run("sacct", "--json", f"--jobs={id_}").encode())
            files.append(str(within.below(name)))
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}; see --output-dir") from None
    return files


_COLUMNS: Final[list[Column]] = [
    ("Slurm Job", "slurm_job_id"),
    ("Job Step", "job_step"),
    ("State", "state"),
    ("Exit Code", "exit_code"),
    ("Elapsed", lambda row: seconds_text(row["elapsed_s"])),
    ("Max RSS", lambda row: memory_text(row["max_rss_bytes"])),
    ("CPU Time", lambda row: seconds_text(row["cpu_time_s"])),
    ("Nodes", "nodes"),
]
