"""``torc submit``: asks a batch system for the nodes with which a workflow begins, and returns."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from torc_framework.cli.shared.app import plugin_commands_of_group, single_command
from torc_framework.cli.shared.arguments import SkipChecks, SpecOrId, option_of_setting
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.cli.shared.stop_signals import StopSignals
from torc_framework.config.sections import RunSection
from torc_framework.errors import ExitStatus, TorcError, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torc_framework.allocations.allocators import ExecutorOptions
    from torc_framework.allocations.submission import Submission
    from torc_framework.executors import Allocator
    from torc_framework.models.records import ScheduledComputeNodeRecord, WorkflowActionRecord

_LOOPBACK: Final = ("localhost", "::1")

OutputDir = Annotated[Path | None, option_of_setting(RunSection, "output_dir", "-o")]
IgnoreMissingData = Annotated[
    bool, typer.Option("--ignore-missing-data", "-i", help="Also with input files or user data missing.")
]


def submit(
    ctx: typer.Context,
    workflow: SpecOrId,
    *,
    ignore_missing_data: IgnoreMissingData = False,
    skip_checks: SkipChecks = False,
    output_dir: OutputDir = None,
) -> None:
    """Submit a workflow to a batch system: create it from a spec file, or take an existing one, and ask for nodes.

    The workflow's actions with trigger on_workflow_start and action schedule_nodes define which nodes to ask for.
    This command carries them out; the runners on the nodes carry out the other actions. No job runs on this
    machine, and the command ends at once: 'torc watch ID' follows the workflow. After the batch system refused a
    request, correct its cause and repeat it with 'torc submit ID'.

    Examples:
        torc submit workflow.yaml
        torc submit 12 --output-dir logs
    """
    session = session_of(ctx)
    require_lasting_server(session)
    path = Path(workflow)
    if path.is_file() or not workflow.isdecimal():
        from torc_framework.cli.commands.running.spec_loading import load_options
        from torc_framework.cli.commands.running.workflow_creation import create_workflow

        options = load_options(session, path, skip_checks=skip_checks, to_submit=True)
        created = create_workflow(
            session,
            path,
            options,
            check=_require_start_action,
            initialize=True,
            ignore_missing_data=ignore_missing_data,
        )
        if not session.wants_json:
            created.print()
        workflow_id = created.id
    else:
        workflow_id = int(workflow)
    submit_existing(session, workflow_id, output_dir=output_dir, ignore_missing_data=ignore_missing_data)


app = single_command(submit)


def submit_existing(session: Session, workflow_id: int, **given: Any) -> None:
    """Submit an existing workflow and print the outcome."""
    show_submission(session, submit_workflow(session, workflow_id, **given))


def require_lasting_server(session: Session) -> None:
    """Refuse to submit without a configured server: an embedded one would end with this command.

    Raises:
        UserError: no server is configured.
    """
    if session.url is None:
        raise UserError(
            "runners on other machines need a lasting server: start one where they can reach it with "
            "'torc-server run --host HOST', and name it by --url or TORC_API_URL"
        )


def submit_workflow(
    session: Session,
    workflow_id: int,
    *,
    output_dir: Path | None = None,
    ignore_missing_data: bool = False,
    executor: str = "",
) -> "Submission":
    """Ask for the nodes with which a workflow begins; one that was never initialized is initialized first.

    Requests that a batch system refused are in ``troubles`` of the answer; `show_submission` prints them.

    Args:
        output_dir: Folder of the runners' logs; by default that of ``torc run``.
        executor: The executor whose flags the command took.

    Raises:
        UserError: the workflow has no such action, its nodes were asked for already, or input is missing.
    """
    from torc_framework.allocations import submission
    from torc_framework.cli.commands.running.run_start import begin_run
    from torc_framework.cli.shared.plugin_flags import executor_options

    require_lasting_server(session)
    client, plugins = session.client, session.plugins()
    options = executor_options(session, plugins, executor)
    record_interrupted_submissions(session, workflow_id, options)
    actions = submission.scheduling_actions(client, workflow_id)
    actions = submission.reopen_cut_short(client, workflow_id, actions)
    if not any(each.trigger_type == "on_workflow_start" for each in actions):
        raise UserError(_no_start_action_text(f"workflow {workflow_id}"))
    if client.is_uninitialized(workflow_id):
        begin_run(client, workflow_id, force=ignore_missing_data)
    elif not any(map(submission.is_due, actions)):
        raise UserError(
            f"the first nodes of workflow {workflow_id} were asked for before: 'torc scheduled-compute-nodes list "
            f"{workflow_id}' shows them, 'torc watch {workflow_id} --auto-schedule' asks for more when jobs wait"
        )
    folder = output_dir or session.config.client.run.output_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the output directory {folder}: {error.strerror}; see --output-dir") from None
    _warn_of_loopback(session, actions, options)
    try:
        with StopSignals():
            return submission.ask_for_first_nodes(client, plugins, options, workflow_id, folder)
    except KeyboardInterrupt as stop:
        _report_interruption(workflow_id, getattr(stop, "allocations", ()))
        raise


def record_interrupted_submissions(session: Session, workflow_id: int, options: "ExecutorOptions") -> None:
    """Record the allocations of earlier submissions that were interrupted, and print their ids."""
    from torc_framework.allocations.allocators import context_without_runner
    from torc_framework.allocations.records import open_requests
    from torc_framework.allocations.unanswered_requests import resolve_requests

    client = session.client
    if not open_requests(client, workflow_id):
        return
    settled = resolve_requests(client, session.plugins(), options, context_without_runner(client, workflow_id))
    for note in settled.notes:
        typer.echo(f"Warning: {note}", err=True)
    if settled.allocations:
        ids = ", ".join(each.batch_id for each in settled.allocations)
        typer.echo(f"A submission was cut short; what it had asked for is recorded now: {ids}", err=True)


def _report_interruption(workflow_id: int, allocations: "Sequence[ScheduledComputeNodeRecord]") -> None:
    """Print the outcome of a submission that the user interrupted."""
    cancel = f"'torc workflows cancel {workflow_id}' cancels it and releases its nodes"
    text = f"Interrupted: 'torc submit {workflow_id}' asks for the nodes that were not asked for; {cancel}"
    if allocations:
        ids = ", ".join(each.batch_id for each in allocations)
        text = f"Interrupted. Submitted workflow {workflow_id}: {ids}. 'torc watch {workflow_id}' follows it; {cancel}"
    with suppress(OSError):  # the terminal may be closed
        typer.echo(text, err=True)


def _warn_of_loopback(session: Session, actions: "Sequence[WorkflowActionRecord]", options: "ExecutorOptions") -> None:
    """Warn if the server's address is loopback while the nodes are other machines."""
    from torc_framework.allocations.allocators import context_without_runner, make_allocator
    from torc_framework.client.http.address import Address

    client, plugins = session.client, session.plugins()
    host = Address.parse(client.url).host
    if host not in _LOOPBACK and not host.startswith("127."):
        return
    context = context_without_runner(client, actions[0].workflow_id)
    for name in sorted({str(action.action_config.get("scheduler_type")) for action in actions}):
        try:
            is_here = make_allocator(plugins.executor, options, context, name).nodes_are_here()
        except TorcError:
            return  # the request for nodes raises it again, with more context
        if not is_here:
            typer.echo(
                f"Warning: the server is at {host}, which on the nodes of {name!r} is the node itself: their "
                "runners will not reach it; let 'torc-server run --host HOST' listen on an address that they can reach",
                err=True,
            )


def allocator_of(session: Session, workflow_id: int, name: str, **options: Any) -> "Allocator":
    """Return the allocator of an executor with its configured options, which ``options`` override.

    Raises:
        UserError: there is no such executor, or it has no such option.
    """
    from torc_framework.allocations.allocators import context_without_runner, make_allocator
    from torc_framework.cli.shared.plugin_flags import executor_options

    plugins = session.plugins()
    values = executor_options(session, plugins, "").get(name, {})
    return make_allocator(
        plugins.executor, {name: {**values, **options}}, context_without_runner(session.client, workflow_id), name
    )


def _no_start_action_text(what: str) -> str:
    """Return the message for a spec or workflow without an action that asks for nodes at its start."""
    others = sorted(name for name in plugin_commands_of_group("") if name.startswith("submit-"))
    instead = f"; 'torc {others[0]}' makes one from what the jobs ask for" if others else ""
    return f"{what} has no action with trigger on_workflow_start and action schedule_nodes{instead}"


def _require_start_action(plan: Any) -> None:
    start = ("on_workflow_start", "schedule_nodes")
    if not any((action.trigger_type, action.action_type) == start for action in plan.actions):
        raise UserError(_no_start_action_text("the spec"))


def show_submission(session: Session, done: "Submission", **more: Any) -> None:
    """Print the outcome of a submission; ``more`` is added to the JSON document.

    Raises:
        typer.Exit: a request was refused.
    """
    id_, ids = done.workflow_id, [each.batch_id for each in done.allocations]
    if session.wants_json:
        values = {"workflow_id": id_, "allocations": done.allocations, "troubles": done.troubles}
        print_json({**values, **more})
    elif ids:
        noun = "allocation" if len(ids) == 1 else "allocations"
        print(f"Submitted workflow {id_}: {len(ids)} {noun} ({', '.join(ids)})")
        print(f"'torc watch {id_}' follows it; 'torc workflows cancel {id_}' cancels it and releases its nodes")
    if not session.wants_json:
        for trouble in done.troubles:
            typer.echo(f"Error: {trouble}", err=True)
        if done.troubles:
            typer.echo(f"'torc submit {id_}' tries again what failed", err=True)
    if done.troubles:
        raise typer.Exit(int(ExitStatus.FAILED))
