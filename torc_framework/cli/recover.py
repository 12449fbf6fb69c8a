"""``torc recover``: see what failed, give it what it lacked, make it ready to run again; once."""

from pathlib import Path
from typing import Annotated, Any

import typer

from torc_framework.cli.app import single
from torc_framework.cli.common import WorkflowId, pick_workflow, session_of
from torc_framework.cli.output import print_json
from torc_framework.cli.policy_flags import PolicyCommand, policy_options
from torc_framework.cli.session import Session
from torc_framework.errors import ExitStatus

MemoryMultiplier = Annotated[
    float, typer.Option("--memory-multiplier", min=1, help="Growth of memory after running out of it.")
]
RuntimeMultiplier = Annotated[
    float, typer.Option("--runtime-multiplier", min=1, help="Growth of run time after a time-out.")
]
RetryUnknown = Annotated[
    bool, typer.Option("--retry-unknown", help="Also run jobs again whose failures nobody can explain.")
]
RecoveryHook = Annotated[
    str | None,
    typer.Option(
        "--recovery-hook", metavar="COMMAND", help="Run this when there are unknown failures, then run them again."
    ),
]
OutputDir = Annotated[
    Path | None, typer.Option("--output-dir", "-o", help="Folder for logs, as given to 'torc run' (default: output).")
]


def recover(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    output_dir: OutputDir = None,
    memory_multiplier: MemoryMultiplier = 1.5,
    runtime_multiplier: RuntimeMultiplier = 1.4,
    retry_unknown: RetryUnknown = False,
    recovery_hook: RecoveryHook = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
) -> None:
    """Recover a workflow from failures, once.

    Jobs that ran out of memory or time ask for more, within what there is; they and what hangs on
    them are made ready to run again, in one step or not at all. Jobs that did not fail keep what they
    ask for. 'torc run ID' then goes on with the workflow. 'torc watch ID --recover' does both, again
    and again. Exit code 1: there was nothing that could be recovered.

    A hook gets the workflow's id as its last argument and as TORC_WORKFLOW_ID.
    """
    from torc_framework.recovery.recover import RecoveryOptions, Rescuer

    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    options = RecoveryOptions(
        memory_multiplier,
        runtime_multiplier,
        retry_unknown,
        recovery_hook,
        output_dir or session.config.client.run.output_dir,
        policy_options(session),
    )
    tell = (lambda _line: None) if session.wants_json else print
    executors = options_of_executors(session)
    rescuer = Rescuer(session.client, session.plugins(), chosen, options, tell, executor_options=executors)
    found = rescuer.recover(dry_run=dry_run)
    if session.wants_json:
        print_json(found.as_dict())
    elif found.receipt is not None and not dry_run:
        _conclude(chosen, found)
    if not found.retried:
        raise typer.Exit(int(ExitStatus.FAILED))


app = single(recover, PolicyCommand)


def options_of_executors(session: Session) -> dict[str, dict[str, Any]]:
    """Return what is set for each executor's options."""
    from torc_framework.cli.executor_flags import executor_options

    return executor_options(session, session.plugins(), "")


def _conclude(workflow_id: int, found: Any) -> None:
    print(f"\nRecovery complete for workflow {workflow_id}")
    for count, what in (
        (found.fixed("oom"), "had memory increased"),
        (found.fixed("timeout"), "had runtime increased"),
        (found.fixed("interrupted"), "had been interrupted"),
        (found.fixed("unknown"), "failed for unknown causes"),
    ):
        if count:
            print(f"  - {count} job(s) {what}")
    print(f"'torc run {workflow_id}' runs them")
