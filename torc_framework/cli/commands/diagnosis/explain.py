"""``torc explain``: explains why the jobs of a workflow, or one of them, do not run."""

from typing import TYPE_CHECKING, Annotated

import typer

from torc_framework.cli.commands.diagnosis.explain_text import print_job, print_workflow
from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.arguments import WorkflowId, pick_workflow
from torc_framework.cli.shared.chosen_job import chosen_job, require_workflow
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import session_of

if TYPE_CHECKING:
    from torc_framework.cli.shared.session import Session
    from torc_framework.explain import WorkflowState


def explain(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    job: Annotated[str | None, typer.Option("--job", "-j", metavar="NAME|ID", help="This job of the workflow.")] = None,
) -> None:
    """Explain why jobs do not run, or will run again, and which command changes that.

    For a workflow: groups of jobs with the same reason; those that need an action of yours come first. For a
    job: the jobs that it waits for and the root cause among them, requirements that no runner meets, a
    missing verdict or initialization, or the lack of a runner.

    Examples:
        torc explain 12
        torc explain 12 --job train
        torc explain --job 345 -f json
    """
    from torc_framework.explain import explain_job, explain_workflow

    session = session_of(ctx)
    if job is not None:
        if workflow_id is not None:
            require_workflow(session, workflow_id, "torc explain")
        chosen = chosen_job(session, workflow_id, job)
        state = _workflow_state(session, chosen.workflow_id)
        of_job = explain_job(state, state.job(chosen.id or 0))
        print_json(of_job) if session.wants_json else print_job(of_job)
        return
    picked = pick_workflow(session, workflow_id)
    require_workflow(session, picked, "torc explain")
    found = explain_workflow(_workflow_state(session, picked))
    print_json(found) if session.wants_json else print_workflow(found)


app = single_command(explain)


def _workflow_state(session: "Session", workflow_id: int) -> "WorkflowState":
    """Return the server's records of a workflow, with what this machine knows of its runners and executors."""
    from torc_framework.cli.commands.records.queue_reasons import queue_reasons
    from torc_framework.explain import read_workflow_state
    from torc_framework.system.process_identity import is_dead_runner

    return read_workflow_state(
        session.client,
        workflow_id,
        is_dead=is_dead_runner,
        executors=session.executors,
        reasons=lambda queued_allocations: [*queue_reasons(session, workflow_id, queued_allocations).values()],
    )
