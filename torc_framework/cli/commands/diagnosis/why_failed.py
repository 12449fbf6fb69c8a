"""``torc why-failed``: explains the failures of a workflow, or of one of its jobs."""

from pathlib import Path
from typing import Annotated

import typer

from torc_framework.cli.commands.diagnosis.why_failed_text import print_job, print_workflow
from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.arguments import WorkflowId, pick_workflow
from torc_framework.cli.shared.chosen_job import chosen_job, require_workflow
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import UserError


def why_failed(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    job: Annotated[str | None, typer.Option("--job", "-j", metavar="NAME|ID", help="This job of the workflow.")] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option("--output-dir", "-o", help="Where the logs are (default: where the runner wrote them)."),
    ] = None,
) -> None:
    """Explain why the jobs of a workflow failed, or why one job failed.

    Failures with the same cause are one group, the largest group first, with their last lines, the log, and
    the jobs that were canceled because of them. For a job: its cause, the evidence (the scheduler's state,
    memory and run time against the requirements), the decisive lines of its logs, and a row for each attempt.

    Examples:
        torc why-failed 12
        torc why-failed 12 --job train_4
        torc why-failed --job 345 -f json
    """
    from torc_framework.forensics.job_report import explain_job
    from torc_framework.forensics.workflow_report import explain_workflow

    if output_dir is not None and not output_dir.is_dir():
        raise UserError(f"output directory {output_dir} does not exist; leave out --output-dir, or name another")
    session = session_of(ctx)
    client = session.client
    if job is not None:
        if workflow_id is not None:
            require_workflow(session, workflow_id, "torc why-failed")
        chosen = chosen_job(session, workflow_id, job)
        plugins = session.plugins(skip_untrusted=True)
        of_job = explain_job(client, plugins, chosen.id or 0, output_dir=output_dir)
        print_json(of_job.as_dict()) if session.wants_json else print_job(of_job)
        return
    picked = pick_workflow(session, workflow_id)
    require_workflow(session, picked, "torc why-failed")
    report = explain_workflow(client, session.plugins(skip_untrusted=True), picked, output_dir=output_dir)
    print_json(report.as_dict()) if session.wants_json else print_workflow(report)


app = single_command(why_failed)
