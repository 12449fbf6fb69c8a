"""``torc run`` with an executor that needs an allocation: submit the workflow, then show its progress until it ends."""

import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from torc_framework.cli.commands.running.submit import (
    record_interrupted_submissions,
    require_lasting_server,
    submit_workflow,
)
from torc_framework.cli.shared.plugin_flags import executor_options
from torc_framework.cli.shared.session import Session
from torc_framework.cli.shared.stop_signals import StopSignals
from torc_framework.errors import ExitStatus, UserError

if TYPE_CHECKING:
    from torc_framework.allocations.submission import Submission
    from torc_framework.runner import RunOutcome
    from torc_framework.spec import LoadOptions
    from torc_framework.spec.language.model import WorkflowSpec

POLL_INTERVAL_S: Final = 2.0
"""Seconds between two queries of the workflow's state."""
SYNC_INTERVAL_S: Final = 60.0
"""Seconds between two queries of the batch system."""
IGNORED_SETTINGS: Final = ("num_cpus", "memory_gb", "num_gpus", "time_limit_s", "max_parallel_jobs", "enforce_limits")
"""Settings of a runner on this machine. Runners on nodes get theirs from schedulers and actions."""


def run_on_allocations(
    session: Session, executor: str, source: Path | int, given: Mapping[str, Any], **checks: bool
) -> None:
    """Submit a workflow, of a spec or an existing one, and show its progress until it is over.

    Raises:
        UserError: no lasting server is configured, or neither spec nor profile names nodes to ask for.
        typer.Exit: not every job succeeded, or the user stopped watching.
    """
    require_lasting_server(session)
    if ignored := [name for name in IGNORED_SETTINGS if given.get(name) is not None]:
        flags = ", ".join("--" + name.removesuffix("_s").replace("_", "-") for name in ignored)
        typer.echo(f"Warning: {flags}: not for runners on other machines; see the schedulers and actions", err=True)
    folder: Path = given.get("output_dir") or session.config.client.run.output_dir
    workflow_id = source if isinstance(source, int) else _create(session, executor, source, **checks)
    submitted = _submit(session, workflow_id, executor, folder)
    _follow(session, workflow_id, executor, submitted)


def _create(session: Session, executor: str, path: Path, *, skip_checks: bool = False) -> int:
    from torc_framework.cli.commands.running.spec_loading import load_options
    from torc_framework.cli.commands.running.workflow_creation import create_workflow
    from torc_framework.spec import load_spec
    from torc_framework.spec.scheduler_insertion import has_schedulers

    options = load_options(session, path, skip_checks=skip_checks, to_submit=True)
    warnings: list[str] = []
    spec = load_spec(path, options=options, warn=warnings.append)
    source: Path | WorkflowSpec = path
    if not has_schedulers(spec):
        for warning in warnings:
            typer.echo(f"Warning: {warning}", err=True)
        source = _with_schedulers(session, executor, spec, options)
    created = create_workflow(session, source, options, initialize=True)
    if not session.wants_json:
        created.print()
    return created.id


def _with_schedulers(session: Session, executor: str, spec: "WorkflowSpec", options: "LoadOptions") -> "WorkflowSpec":
    """Return a spec with schedulers made from what its jobs ask for and what the executor's cluster has.

    Raises:
        UserError: no profile of the cluster or no account to charge is known.
    """
    from torc_framework.cli.commands.running.recover import cluster_lookup
    from torc_framework.hpc.cluster_profile import idle_nodes_of
    from torc_framework.hpc.scheduler_planning import PlanOptions, plan_schedulers
    from torc_framework.spec import load_plan
    from torc_framework.spec.scheduler_insertion import with_schedulers

    profile = cluster_lookup(session)(executor)
    if profile is None:
        raise UserError(
            f"the spec has no schedulers, and there is no profile of the cluster of executor {executor!r}: "
            "'torc hpc list' shows the profiles"
        )
    account = (spec.slurm_defaults or {}).get("account") or profile.default_account
    if not account:
        raise UserError(
            "no account to charge: give account under slurm_defaults in the spec, or default_account "
            "under [client.hpc] in the configuration"
        )
    plugins = session.plugins()
    idle = idle_nodes_of(plugins, executor_options(session, plugins, executor), executor)
    wanted = PlanOptions(str(account), executor, idle=idle)
    planned = plan_schedulers(load_plan(spec, options=options).plan, profile, wanted)
    for warning in planned.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    return with_schedulers(spec, planned)


def _submit(session: Session, workflow_id: int, executor: str, folder: Path) -> "Submission | None":
    """Ask for nodes; return None if there are allocations already, or the workflow is complete.

    Raises:
        UserError: every request was refused, or there was none to make.
    """
    from torc_framework.allocations.records import open_allocations

    record_interrupted_submissions(session, workflow_id, executor_options(session, session.plugins(), executor))
    state = session.client.is_complete(workflow_id)
    if open_allocations(session.client, workflow_id) or (state.is_complete and not state.is_canceled):
        return None
    done = submit_workflow(session, workflow_id, output_dir=folder, executor=executor)
    if not done.allocations:
        raise UserError("; ".join(done.troubles) or "no nodes were asked for")
    return done


def _follow(session: Session, workflow_id: int, executor: str, submitted: "Submission | None") -> None:
    """Print what was submitted, show the progress of the workflow until it is over, then print its results."""
    from torc_framework.cli.commands.running.progress_line import ProgressLine
    from torc_framework.cli.commands.running.run_report import exit_status, report

    progress = ProgressLine(enabled=not session.wants_json)
    try:
        with StopSignals(signal.SIGINT, signal.SIGTERM) as interrupts:
            if (
                submitted and not session.wants_json
            ):  # printed within the block: from here on Ctrl-C stops watching only
                ids = ", ".join(each.batch_id for each in submitted.allocations)
                text = f"Submitted workflow {workflow_id}: {ids}. Ctrl-C stops watching; the workflow continues."
                print(text, flush=True)
            outcome = _watch(session, workflow_id, executor, progress, interrupts)
    except KeyboardInterrupt:
        progress.finish()
        print(
            f"Stopped watching. Workflow {workflow_id} continues: 'torc watch {workflow_id}' follows it, "
            f"'torc workflows cancel {workflow_id}' cancels it and releases its nodes",
            file=sys.stderr,
        )
        raise typer.Exit(int(ExitStatus.INTERRUPTED)) from None
    progress.finish(outcome.counts)
    outcome.troubles = submitted.troubles if submitted else []
    report(session, workflow_id, outcome)
    if (status := exit_status(outcome)) is not ExitStatus.OK:
        raise typer.Exit(int(status))


def _watch(session: Session, workflow_id: int, executor: str, progress: Any, interrupts: StopSignals) -> "RunOutcome":
    """Return the workflow's state once it is over, or once no runner and no allocation is left."""
    from torc_framework.allocations.records import open_records
    from torc_framework.models.records import ComputeNodeRecord, WorkflowRecord
    from torc_framework.recovery.event_wait import EventWaiter
    from torc_framework.recovery.orphans import sync_status
    from torc_framework.runner import Progress, RunOutcome

    client, plugins = session.client, session.plugins()
    options = executor_options(session, plugins, executor)
    began = synced = time.monotonic()
    with EventWaiter(client, workflow_id) as alarm:
        while True:
            interrupts.check()
            is_idle = False
            if time.monotonic() - synced >= SYNC_INTERVAL_S:
                sync_status(client, plugins, options, workflow_id)
                active = client.find(ComputeNodeRecord, workflow_id=workflow_id, is_active=True)
                is_idle = not active and not open_records(client, workflow_id)
                synced = time.monotonic()
            state = client.is_complete(workflow_id)  # queried after the batch system, whose answer may take minutes
            counts = client.job_counts(workflow_id).counts
            progress(Progress(counts, counts.get("running", 0)))
            if state.is_complete or state.is_canceled or is_idle:
                break
            alarm.wait(POLL_INTERVAL_S)
    return RunOutcome(
        workflow_name=client.get(WorkflowRecord, workflow_id).name,
        counts=dict(counts),
        is_complete=state.is_complete,
        is_canceled=state.is_canceled,
        duration_s=time.monotonic() - began,
    )
