"""``torc watch``: follows a workflow until it is over, and recovers it from failures."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from torc_framework.cli.commands.running.recover import (
    AiAgent,
    AiRecovery,
    MemoryMultiplier,
    OutputDir,
    RecoveryHook,
    RetryUnknown,
    RuntimeMultiplier,
    cluster_lookup,
    configured_executor_options,
    pending_classifier,
)
from torc_framework.cli.commands.running.run import EnforceLimits
from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.arguments import WorkflowId, option_of_setting, pick_workflow
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.plugin_flags import PolicyCommand, policy_options
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.cli.shared.stop_signals import StopSignals
from torc_framework.config.sections import WatchSection
from torc_framework.errors import ExitStatus, TorcError, UserError
from torc_framework.text.colours import unpainted
from torc_framework.text.terminal import one_line, print_line

if TYPE_CHECKING:
    from torc_framework.recovery.watch import WatchOptions, WatchOutcome


PollInterval = Annotated[
    float | None,
    typer.Option(
        "--poll-interval", "-p", min=0.1, help="Time between two queries of the workflow.", show_default="60 s"
    ),
]
Recover = Annotated[bool, typer.Option("--recover", "-r", help="Recover it from failures.")]
MaxRetries = Annotated[int | None, option_of_setting(WatchSection, "max_retries", "-m")]
ShowJobCounts = Annotated[
    bool, typer.Option("--show-job-counts", "-s", help="Show jobs by status whenever they change.")
]
AutoSchedule = Annotated[
    bool, typer.Option("--auto-schedule", help="Ask the batch system for nodes when jobs wait for nodes.")
]
Threshold = Annotated[
    int,
    typer.Option(
        "--auto-schedule-threshold",
        min=1,
        help="With --auto-schedule: number of waiting retries for which nodes are asked for although there are some.",
    ),
]
Cooldown = Annotated[
    float,
    typer.Option(
        "--auto-schedule-cooldown", min=0, help="With --auto-schedule: least seconds between two requests for nodes."
    ),
]
StrandedTimeout = Annotated[
    float,
    typer.Option(
        "--auto-schedule-stranded-timeout",
        min=0,
        help="With --auto-schedule: seconds after which fewer waiting retries suffice; 0: never.",
    ),
]


def watch(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    poll_interval: PollInterval = None,
    recover: Recover = False,
    max_retries: MaxRetries = None,
    memory_multiplier: MemoryMultiplier = 1.5,
    runtime_multiplier: RuntimeMultiplier = 1.5,
    retry_unknown: RetryUnknown = False,
    recovery_hook: RecoveryHook = None,
    ai_recovery: AiRecovery = False,
    ai_agent: AiAgent = None,
    output_dir: OutputDir = None,
    enforce_limits: EnforceLimits = None,
    show_job_counts: ShowJobCounts = False,
    auto_schedule: AutoSchedule = False,
    auto_schedule_threshold: Threshold = 5,
    auto_schedule_cooldown: Cooldown = 1800,
    auto_schedule_stranded_timeout: StrandedTimeout = 7200,
) -> None:
    """Watch a workflow until it is over, and with --recover, recover it from failures.

    With --recover, jobs that ran out of memory or time get more of it and run again, at most --max-retries
    times. If no runner works on the workflow, this command runs it, as 'torc run' with the settings of
    [client.run] does. All messages are also written to watch_HOST_ID.log in the output directory. Exit
    code 1: not every job succeeded.

    Examples:
        torc watch 12
        torc watch 12 --recover --max-retries 2
        torc watch 12 --recover --memory-multiplier 2
    """
    from torc_framework.recovery import auto_schedule as scheduling
    from torc_framework.recovery.watch import WatchOptions

    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    defaults = session.config.client.watch
    limits = (auto_schedule_threshold, auto_schedule_cooldown, auto_schedule_stranded_timeout)
    options = WatchOptions(
        defaults.poll_interval if poll_interval is None else poll_interval,
        recover or ai_recovery,
        defaults.max_retries if max_retries is None else max_retries,
        defaults.retry_cooldown,
        show_job_counts,
        scheduling.AutoSchedule(*limits) if auto_schedule else None,
    )
    folder = output_dir or session.config.client.run.output_dir
    recovery: dict[str, Any] = {
        "memory_multiplier": memory_multiplier,
        "runtime_multiplier": runtime_multiplier,
        "retry_unknown": retry_unknown,
        "hook": recovery_hook,
        "output_dir": folder,
    }
    session.client.workflow_status(chosen)  # fails for an unknown workflow, before a log is made
    judge = pending_classifier(session, chosen, folder, ai_recovery=ai_recovery, ai_agent=ai_agent)
    _end(session, _watch_logged(session, chosen, options, {**recovery, "judge": judge}, enforce_limits))


app = single_command(watch, PolicyCommand)


def _end(session: Session, outcome: "WatchOutcome") -> None:
    """End the command with the exit code of an outcome."""
    if outcome.status == "interrupted":
        raise typer.Exit(int(ExitStatus.INTERRUPTED))
    if outcome.status != "completed":
        raise typer.Exit(int(ExitStatus.FAILED))


def _watch_logged(
    session: Session, workflow_id: int, options: "WatchOptions", recovery: dict[str, Any], enforce_limits: bool | None
) -> "WatchOutcome":
    """Watch the workflow, with messages on standard output and in the log file."""
    runner = {"output_dir": recovery["output_dir"], "enforce_limits": enforce_limits}
    if recovery["judge"] is not None:  # this process gives the verdicts, so that the runner does not wait for them
        runner["wait_for_new_jobs_s"] = 0.0
    with _log(recovery["output_dir"], workflow_id) as log:
        show_line = _line_printer(session, log)
        outcome = _watch(session, workflow_id, options, recovery=recovery, runner=runner, show_line=show_line)
        _report(session, outcome, show_line)
        return outcome


def _report(session: Session, outcome: "WatchOutcome", show_line: Callable[[str], None]) -> None:
    """Print how the workflow ended: its failures, headline and next command; or one JSON document."""
    from torc_framework.cli.commands.running.failure_lines import summary_lines
    from torc_framework.forensics.run_failures import summarize_failures
    from torc_framework.models.records import WorkflowRecord
    from torc_framework.next_step import next_step
    from torc_framework.text.headline import headline

    client, id_ = session.client, outcome.workflow_id
    if outcome.status == "interrupted" and not session.wants_json:
        return
    counted = client.job_counts(id_)
    failures = summarize_failures(client, id_, counted.counts, interrupted=counted.interrupted)
    step = next_step(client, id_, session.executors)
    if session.wants_json:
        shown = {
            "next_command": step and step.command,
            "failures": [each.example.as_dict() for each in failures.causes],
        }
        print_json({**outcome.as_dict(), **shown})
        return
    lines = [*summary_lines(failures)]
    for line in [*lines, ""] if lines else []:
        show_line(line)
    is_waiting = outcome.status in ("failed", "incomplete") and counted.counts.get("pending_failed")
    state = "pending_failed" if is_waiting else outcome.status
    name = client.get(WorkflowRecord, id_).name
    show_line(headline(name, id_, state, counted.counts, interrupted=counted.interrupted))
    if step is not None:
        show_line(f"Next: {step.command}")


def _watch(
    session: Session,
    workflow_id: int,
    options: "WatchOptions",
    *,
    recovery: dict[str, Any],
    runner: dict[str, Any],
    show_line: Callable[[str], None],
) -> "WatchOutcome":
    from torc_framework.allocations.resubmission import NodeResubmitter
    from torc_framework.plugin_events import PluginEvents
    from torc_framework.recovery.recover import RecoveryOptions, WorkflowRecoverer
    from torc_framework.recovery.watch import Watcher
    from torc_framework.runner.process.identity import STATE_DIR

    client, plugins, executors = session.client, session.plugins(), configured_executor_options(session)
    plugins.import_all()
    how = RecoveryOptions(**recovery, policies=policy_options(session))
    submitter = NodeResubmitter(
        client, plugins, workflow_id, executors, how.output_dir, show_line, cluster_lookup(session)
    )
    interrupts = StopSignals(signal.SIGINT, signal.SIGTERM)
    watcher = Watcher(
        client,
        plugins,
        workflow_id,
        options,
        show_line,
        recoverer=WorkflowRecoverer(
            client, plugins, workflow_id, how, show_line, executor_options=executors, profiles=submitter.profiles
        ),
        submitter=submitter,
        run_here=_local_runner(session, workflow_id, runner) if options.recover else None,
        check=interrupts.check,
    )
    try:
        with interrupts, PluginEvents(client, plugins, workflow_id, how.output_dir / STATE_DIR):
            return watcher.watch()
    except KeyboardInterrupt:
        show_line(f"Stopped watching workflow {workflow_id}. Its runners continue.")
        watcher.outcome.status = "interrupted"
        return watcher.outcome


def _local_runner(session: Session, workflow_id: int, given: dict[str, Any]) -> Callable[[], bool]:
    """Return the function that runs the workflow in this process."""

    def run_here() -> bool:
        from torc_framework.cli.commands.running.file_places import FilePlaces
        from torc_framework.cli.commands.running.progress_line import ProgressLine
        from torc_framework.cli.commands.running.run import put_torc_on_path, runner_settings
        from torc_framework.cli.commands.running.run_start import begin_run
        from torc_framework.runner import RunnerSettings, run

        put_torc_on_path()
        settings = runner_settings(session, given)
        if session.client.is_uninitialized(workflow_id):
            begin_run(session.client, workflow_id, places=FilePlaces.of(session, settings["executor"]))
        progress = ProgressLine(enabled=not session.wants_json)
        runner = RunnerSettings(url=session.client.url, workflow_id=workflow_id, awaits_people=False, **settings)
        try:
            return run(runner, session.plugins(), progress, session.client).interrupted
        finally:
            progress.finish()

    return run_here


@contextmanager
def _log(folder: Path, workflow_id: int) -> Iterator[IO[str]]:
    """Open the log file of a watch; lines of earlier watches are kept."""
    path = folder / f"watch_{os.uname().nodename}_{workflow_id}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; see --output-dir") from None
    with file:
        try:
            yield file
        except TorcError as error:  # the program prints it to standard error
            print(f"{_now()} Error: {error}", file=file)
            raise


def _now() -> str:
    return f"{datetime.now().astimezone():%Y-%m-%dT%H:%M:%S%z}"


def _line_printer(session: Session, log: IO[str]) -> Callable[[str], None]:
    """Return a function that prints a line, unless JSON is wanted, and writes it to the log with the time."""

    def show_line(line: str) -> None:
        if not session.wants_json:
            print_line(line)
            sys.stdout.flush()
        print(f"{_now()} {unpainted(one_line(line))}", file=log)

    return show_line
