"""``torc recover``: gives jobs that ran out of memory or time more of it and makes them ready again, once."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.arguments import WorkflowId, pick_workflow
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.plugin_flags import PolicyCommand, policy_options
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.errors import ExitStatus, UserError
from torc_framework.text.terminal import print_line

if TYPE_CHECKING:
    from torc_framework.allocations.resubmission import ClusterLookup
    from torc_framework.models.hpc_profiles import HpcProfile
    from torc_framework.pending import PendingClassification
    from torc_framework.recovery.recover import Recovery

MemoryMultiplier = Annotated[
    float, typer.Option("--memory-multiplier", min=1, help="Factor by which memory grows after a job ran out of it.")
]
RuntimeMultiplier = Annotated[
    float, typer.Option("--runtime-multiplier", min=1, help="Factor by which run time grows after a time-out.")
]
RetryUnknown = Annotated[
    bool, typer.Option("--retry-unknown", help="Also run jobs again whose failures no policy explains.")
]
RecoveryHook = Annotated[
    str | None,
    typer.Option(
        "--recovery-hook",
        metavar="COMMAND",
        help="Run this command if there are unexplained failures, then run those jobs again. "
        "It gets the workflow's id as its last argument and as TORC_WORKFLOW_ID.",
    ),
]
AiRecovery = Annotated[
    bool, typer.Option("--ai-recovery", help="First ask plugins and an agent about failures that wait for a verdict.")
]
AiAgent = Annotated[
    str | None,
    typer.Option(
        "--ai-agent", metavar="NAME", help="With --ai-recovery: claude, copilot or custom.", show_default="claude"
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
    ai_recovery: AiRecovery = False,
    ai_agent: AiAgent = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
) -> None:
    """Recover a workflow from failures, once.

    Jobs that ran out of memory or time get larger resource requirements, at most as large as the nodes allow. They and
    the jobs that depend on them become ready again, in one transaction. Jobs that did not fail keep their requirements.
    If the workflow ran on nodes of a batch system, new nodes that fit are asked for; otherwise 'torc run ID' continues
    it. 'torc watch ID --recover' does this repeatedly. Exit code 1: no job could be recovered.

    Examples:
        torc recover 12 --dry-run
    """
    from torc_framework.allocations.resubmission import NodeResubmitter
    from torc_framework.plugin_events import PluginEvents
    from torc_framework.recovery.recover import RecoveryOptions, WorkflowRecoverer
    from torc_framework.runner.process.identity import STATE_DIR

    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    folder = output_dir or session.config.client.run.output_dir
    options = RecoveryOptions(
        memory_multiplier,
        runtime_multiplier,
        retry_unknown,
        recovery_hook,
        folder,
        policy_options(session),
        pending_classifier(session, chosen, folder, ai_recovery=ai_recovery, ai_agent=ai_agent),
    )
    show_line = (lambda _line: None) if session.wants_json else print_line
    executors = configured_executor_options(session)
    client, plugins = session.client, session.plugins()
    submitter = NodeResubmitter(client, plugins, chosen, executors, folder, show_line, cluster_lookup(session))
    recoverer = WorkflowRecoverer(
        client, plugins, chosen, options, show_line, executor_options=executors, profiles=submitter.profiles
    )
    with nullcontext() if dry_run else PluginEvents(client, plugins, chosen, folder / STATE_DIR):
        found = recoverer.recover(dry_run=dry_run)
        submitted = submitter.submit_anew() if found.goes_on and not dry_run and submitter.has_schedulers() else 0
    command = _next_command(session, found, submitted=submitted)
    if session.wants_json:
        print_json({**found.as_dict(), "submitted_allocations": submitted, "next_command": command})
    elif command:
        print(f"Next: {command}")
    if not found.goes_on:
        raise typer.Exit(int(ExitStatus.FAILED))


app = single_command(recover, PolicyCommand)


def _next_command(session: Session, found: "Recovery", *, submitted: int) -> str | None:
    """Return the command after a recovery or a dry run; None if nothing is left to do."""
    from torc_framework.next_step import continuing_step, next_step

    client, id_ = session.client, found.workflow_id
    if found.goes_on and found.dry_run:
        return f"torc recover {id_}"
    if found.goes_on:
        return f"torc watch {id_}" if submitted else continuing_step(client, id_, session.executors).command
    step = next_step(client, id_, session.executors)
    return None if step is None else step.command


def configured_executor_options(session: Session) -> Mapping[str, Mapping[str, Any]]:
    """Return the values of each executor's options."""
    from torc_framework.cli.shared.plugin_flags import executor_options

    return executor_options(session, session.plugins(), "")


def cluster_lookup(session: Session) -> "ClusterLookup":
    """Return a function that gives the cluster of an executor, looked up at its first call and then kept."""
    from torc_framework.hpc.cluster_profile import current_cluster_profile

    @cache
    def cluster(executor: str) -> "HpcProfile | None":
        options = configured_executor_options(session)
        try:
            return current_cluster_profile(session.config.client.hpc, session.plugins(), options, executor=executor)
        except UserError:
            return None

    return cluster


def pending_classifier(
    session: Session, workflow_id: int, folder: Path, *, ai_recovery: bool, ai_agent: str | None
) -> Callable[[bool], "PendingClassification"] | None:
    """Return the function that gives verdicts on jobs that wait for one; None without ``ai_recovery``.

    Raises:
        UserError: an agent is named without ``ai_recovery``, or there is no agent of that name.
    """
    if not ai_recovery:
        if ai_agent is not None:
            raise UserError("--ai-agent names an agent; add --ai-recovery to have it asked")
        return None
    from torc_framework.cli.commands.diagnosis.pending import ai_settings, known_agent, require_classifier
    from torc_framework.pending import classify_pending
    from torc_framework.recovery.resource_ceilings import ResourceCeilings

    require_classifier(session)
    ai = session.config.client.ai
    agent = known_agent(ai_agent or ai.agent)

    def judge(dry_run: bool) -> "PendingClassification":
        return classify_pending(
            session.client,
            session.plugins(),
            workflow_id,
            output_dir=folder.absolute(),
            ai_agent=agent,
            min_confidence=ai.min_confidence,
            settings=ai_settings(session),
            ceiling_of=ResourceCeilings.of_workflow(session.client, workflow_id, session.plugins().hpc_profiles()).of,
            dry_run=dry_run,
        )

    return judge
