"""``torc run``: runs the workflow of a spec, or an existing workflow, on this machine."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from attrs import asdict

from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.arguments import SkipChecks, SpecOrId, option_of_setting
from torc_framework.cli.shared.completion import executors
from torc_framework.cli.shared.plugin_flags import ExecutorCommand, executor_options
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.config.sections import RunSection
from torc_framework.errors import ExecutorError, ExitStatus, LaunchError, UserError
from torc_framework.text.quantities import count_text
from torc_framework.text.terminal import print_line

if TYPE_CHECKING:
    from torc_framework.cli.commands.running.live_failures import LiveFailures
    from torc_framework.cli.commands.running.progress_line import ProgressLine
    from torc_framework.models.records import WorkflowRecord

MaxParallelJobs = Annotated[int | None, option_of_setting(RunSection, "max_parallel_jobs")]
NumCpus = Annotated[int | None, option_of_setting(RunSection, "num_cpus")]
MemoryGb = Annotated[float | None, option_of_setting(RunSection, "memory_gb")]
NumGpus = Annotated[int | None, option_of_setting(RunSection, "num_gpus")]
PollInterval = Annotated[float | None, option_of_setting(RunSection, "poll_interval", "-p")]
OutputDir = Annotated[Path | None, option_of_setting(RunSection, "output_dir", "-o")]
ExecutorName = Annotated[
    str | None, option_of_setting(RunSection, "executor", metavar="NAME", autocompletion=executors)
]
TimeLimit = Annotated[str | None, typer.Option("--time-limit", metavar="DURATION", help="Stop after, such as PT2H.")]
EnforceLimits = Annotated[bool | None, option_of_setting(RunSection, "enforce_limits")]
TermLead = Annotated[float | None, option_of_setting(RunSection, "term_lead_s")]
SchedulerConfigId = Annotated[
    int | None, typer.Option("--scheduler-config-id", metavar="ID", help="Take jobs of this scheduler first.")
]
StrictSchedulerMatch = Annotated[
    bool | None, typer.Option("--strict-scheduler-match", help="Take no jobs of other schedulers.")
]
Worker = Annotated[
    bool,
    typer.Option(
        "--worker", help="Be one of several runners: report only its attempts; exit code 0 also when jobs failed."
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed",
        help="First make jobs ready again that failed, were canceled or terminated, and what follows them.",
    ),
]


def run(
    ctx: typer.Context,
    workflow: SpecOrId,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[OUTPUT_DIR]", hidden=True, help="See --output-dir.")
    ] = None,
    *,
    max_parallel_jobs: MaxParallelJobs = None,
    num_cpus: NumCpus = None,
    memory_gb: MemoryGb = None,
    num_gpus: NumGpus = None,
    poll_interval: PollInterval = None,
    output_dir: OutputDir = None,
    executor: ExecutorName = None,
    time_limit: TimeLimit = None,
    term_lead_s: TermLead = None,
    enforce_limits: EnforceLimits = None,
    scheduler_config_id: SchedulerConfigId = None,
    strict_scheduler_match: StrictSchedulerMatch = None,
    skip_checks: SkipChecks = False,
    worker: Worker = False,
    retry_failed: RetryFailed = False,
) -> None:
    """Run a workflow on this machine: create it from a spec file, or continue an existing one.

    The options of an executor follow its name: 'torc run --executor local --help' lists them. Where it
    runs jobs on several hosts at once, numbers of jobs, CPUs, GPUs and memory hold for each of them.

    Examples:
        torc run workflow.yaml
        torc run 12 --max-parallel-jobs 4
        torc run workflow.yaml --num-cpus 8 --memory-gb 32
        torc run 12 --retry-failed
        torc run 12 --executor slurm
        torc run workflow.yaml --executor ssh --hosts ws1,alice@ws2
    """
    session = session_of(ctx)
    given = {
        "max_parallel_jobs": max_parallel_jobs,
        "num_cpus": num_cpus,
        "memory_gb": memory_gb,
        "num_gpus": num_gpus,
        "poll_interval_s": poll_interval,
        "output_dir": output_dir or folder,
        "executor": executor,
        "time_limit_s": _seconds(time_limit),
        "term_lead_s": term_lead_s,
        "enforce_limits": enforce_limits,
        "scheduler_config_id": scheduler_config_id,
        "strict_scheduler_match": strict_scheduler_match,
    }
    path = Path(workflow)
    is_spec = path.is_file() or not workflow.isdecimal()
    session.start_server()  # it starts up while plugins are imported and the spec is read
    if retry_failed:
        _retry_failed(session, path if is_spec else int(workflow), _executor(session, given))
    if is_spec:
        _run_spec(session, path, given, skip_checks=skip_checks, worker=worker)
    else:
        run_existing(session, int(workflow), given, worker=worker)


def _retry_failed(session: Session, source: Path | int, executor: str) -> None:
    """Make jobs ready again that failed, were canceled or terminated, and what follows them."""
    from torc_framework.cli.commands.running.run_start import retry_failed_jobs

    _await_server(session)
    retry_failed_jobs(session, source, executor)


def _run_spec(session: Session, path: Path, given: dict[str, Any], *, skip_checks: bool, worker: bool) -> None:
    """Create the workflow of a spec and run it."""
    if _needs_allocation(session, given, path.parent):
        from torc_framework.cli.commands.running.run_on_allocations import run_on_allocations

        run_on_allocations(session, _executor(session, given), path, given, skip_checks=skip_checks)
    else:
        settings = runner_settings(session, given)
        _execute(session, _create(session, path, settings, skip_checks=skip_checks), settings, worker=worker)


def _executor(session: Session, given: dict[str, Any]) -> str:
    return given["executor"] or session.config.client.run.executor


def _needs_allocation(session: Session, given: dict[str, Any], project_dir: Path | None = None) -> bool:
    """Return whether the executor has to ask for nodes before it can run jobs."""
    from torc_framework.executors import Allocator, Launcher
    from torc_framework.runner.attempts.guarded_calls import guarded_call

    plugins, name = session.plugins(project_dir), _executor(session, given)
    executor = plugins.executor(name)
    if not issubclass(executor, Allocator):
        return False
    if not issubclass(executor, Launcher):
        return True
    return not guarded_call(plugins.executor_label(name), "can_launch_here", executor.can_launch_here)


app = single_command(run, ExecutorCommand)


def run_existing(session: Session, workflow_id: int, given: dict[str, Any], *, worker: bool = False) -> None:
    """Continue a workflow; one that was never initialized is initialized first."""
    from torc_framework.cli.commands.running.file_places import FilePlaces
    from torc_framework.cli.commands.running.run_start import begin_run
    from torc_framework.next_step import run_again_text

    session.start_server()
    if _needs_allocation(session, given):
        from torc_framework.cli.commands.running.run_on_allocations import run_on_allocations

        run_on_allocations(session, _executor(session, given), workflow_id, given)
        return
    settings = runner_settings(session, given)
    if not worker:  # who has started a worker, perhaps on nodes that cost, is to see that it has a wrong address
        _await_server(session)
    if session.client.is_uninitialized(workflow_id):
        begin_run(session.client, workflow_id, places=FilePlaces.of(session, settings["executor"]))
    resumed = len(session.client.resume_interrupted_jobs(workflow_id))
    if resumed and not session.wants_json:
        print(f"{run_again_text(resumed)}.", flush=True)
    _execute(session, workflow_id, settings, worker=worker, resumed=resumed)


def _create(session: Session, path: Path, settings: dict[str, Any], *, skip_checks: bool) -> int:
    """Store the workflow of a spec, ready to run, after all checks have passed; return its id."""
    import gc

    from torc_framework.cli.commands.running.file_places import FilePlaces
    from torc_framework.cli.commands.running.spec_loading import load_options, refuse_missing_inputs, stamp_files
    from torc_framework.spec import load_parts

    gc.disable()  # all objects of a large plan are in use: collections free nothing and take half the time
    try:
        loaded = load_parts(path, options=load_options(session, path, skip_checks=skip_checks, to_run=True))
        stamp_files(loaded.head.files)
        refuse_missing_inputs(loaded, FilePlaces.of(session, settings["executor"]))
        _make_folder(settings["output_dir"])
        _require_access(session, settings)
        _import_runner()
        _await_server(session, loaded.head.workflow)
        created = session.client.create_from_plan(loaded.plan, initialize=True)
    finally:
        gc.enable()
    for warning in loaded.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    if not session.wants_json:
        jobs = count_text(loaded.head.job_count, "job")
        print_line(f"Created workflow {created.id} ({loaded.head.workflow.name}) with {jobs}")
    return created.id


def _await_server(session: Session, workflow: "WorkflowRecord | None" = None) -> None:
    """Wait for a server or database that is away, as a runner does later.

    Args:
        workflow: Names how long; None stands for the default.
    """
    from torc_framework.cli.commands.running.progress_line import ProgressLine
    from torc_framework.models.records import WorkflowRecord
    from torc_framework.runner.connection.retries import StartPatience

    patience = StartPatience(ProgressLine(enabled=False))
    if workflow is not None:
        patience.minutes = workflow.compute_node_wait_for_healthy_database_minutes

    def ask() -> None:
        client = session.client
        if session.url is not None:  # a server that this command has started has just opened its database
            client.page(WorkflowRecord, limit=1)

    patience.wait_for(ask)


def _import_runner() -> None:
    """Import what runs the jobs and reports on them, before the first request waits for the server's start."""
    import torc_framework.cli.commands.running.run_report
    import torc_framework.runner.assembly  # noqa: F401 - the names are not needed here


def _require_access(session: Session, settings: dict[str, Any]) -> None:
    """Have the executor of the run refuse what cannot work from here, before anything is created."""
    from torc_framework.executors import Launcher
    from torc_framework.runner.attempts.guarded_calls import guarded_call

    plugins, name = session.plugins(), settings["executor"]
    executor = plugins.executor(name)
    if issubclass(executor, Launcher):
        options = executor.make_options(settings["executor_options"].get(name, {}))
        guarded_call(plugins.executor_label(name), "require_access", executor.require_access, options)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the output directory {path}: {error.strerror}; see --output-dir") from None


def _execute(session: Session, workflow_id: int, settings: dict[str, Any], *, worker: bool, resumed: int = 0) -> None:
    """Run the ready jobs, print the report, and end with the exit code of the run."""
    from torc_framework.cli.commands.running.progress_line import ProgressLine
    from torc_framework.cli.commands.running.run_report import exit_status, report, report_worker
    from torc_framework.runner import RunnerSettings
    from torc_framework.runner import run as run_workflow

    put_torc_on_path()
    progress = ProgressLine(enabled=not session.wants_json and not worker)
    live = _live_failures(progress) if progress.is_terminal and progress.is_enabled else None
    runner = RunnerSettings(
        url=session.client.url,
        workflow_id=workflow_id,
        awaits_people=worker,
        counts_jobs=progress.is_enabled,
        allocation=_allocation() if worker else None,
        given_options=session.executor_options,
        **settings,
    )
    counts = None
    try:
        outcome = run_workflow(
            runner, session.plugins(), progress, session.client, live, on_warning=progress.print_warning
        )
        counts = outcome.counts
        outcome.resumed_jobs += resumed
    except (ExecutorError, LaunchError) as error:
        error.next_command = f"torc run {workflow_id}{_chosen_executor(session, settings)}"
        raise
    finally:
        progress.finish(counts)
    if worker:
        report_worker(session, workflow_id, outcome)
        return
    report(session, workflow_id, outcome, live.shown if live and sys.stdout.isatty() else ())
    if (status := exit_status(outcome)) is not ExitStatus.OK:
        raise typer.Exit(int(status))


def _live_failures(progress: "ProgressLine") -> "LiveFailures":
    from torc_framework.cli.commands.running.live_failures import LiveFailures

    return LiveFailures(progress)


def _allocation() -> tuple[str, str] | None:
    """Return executor and id of the allocation that the environment of this runner names."""
    from torc_framework.executors import ALLOCATION_VARIABLE

    executor, _, id_ = os.environ.get(ALLOCATION_VARIABLE, "").partition(":")
    return (executor, id_) if executor and id_ else None


def _chosen_executor(session: Session, settings: dict[str, Any]) -> str:
    """Return the options that name the executor of a run, its sites, and what the command line gave."""
    from torc_framework.next_step import options_text

    name = settings["executor"]
    if name == RunSection().executor:
        return ""
    option = getattr(session.plugins().executor(name), "sites_option", None)
    sites = settings["executor_options"].get(name, {}).get(option)
    chosen = {option: sites} if option and sites else {}
    return f" --executor {shlex.quote(name)}{options_text(chosen | session.executor_options)}"


def put_torc_on_path() -> None:
    """Append the folder of this program to PATH if ``torc`` is not on it, so that jobs find it.

    A program that is called by its path, in an environment that is not activated, is not on PATH.
    """
    if shutil.which("torc") is None:
        folder = str(Path(sys.executable).parent)
        os.environ["PATH"] = os.pathsep.join(filter(None, [os.environ.get("PATH", os.defpath), folder]))


def runner_settings(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Return the runner's settings: flags, else environment and files.

    Raises:
        UserError: a value is wrong, or there is no such executor.
    """
    chosen = asdict(session.config.client.run, recurse=False)
    chosen["poll_interval_s"] = chosen.pop("poll_interval")
    if given.get("scheduler_config_id") is not None:  # the runner was started in an allocation of that scheduler
        chosen["strict_scheduler_match"] = session.config.client.slurm.strict_scheduler_match
    chosen.update({name: value for name, value in given.items() if value is not None})
    plugins = session.plugins()
    plugins.executor(chosen["executor"])
    chosen["executor_options"] = executor_options(session, plugins, chosen["executor"])
    return chosen


def _seconds(duration: str | None) -> float | None:
    from torc_framework.models.resources import parse_duration

    if duration is None:
        return None
    try:
        return float(parse_duration(duration))
    except ValueError as error:
        raise UserError(f"--time-limit: {error}") from None
