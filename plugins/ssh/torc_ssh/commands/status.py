"""``torc remote status`` and ``torc remote stop``: the runners on the remote workers of a workflow."""

import asyncio
from typing import Annotated, Final

import typer
from attrs import frozen

from torc_framework.api import TorcError
from torc_framework.api.commands import CommandGroup, WorkflowId, pick_workflow, seconds_text, session_of
from torc_ssh.addresses import HostAddress
from torc_ssh.commands.hosts import (
    DEFAULT_PARALLEL,
    OUTPUT_DIR,
    HostLines,
    MaxParallelSsh,
    OutputDirOnHosts,
    SshCommand,
    on_all_hosts,
    workers_of,
)
from torc_ssh.remote_runners.host_pool import Host, HostConnectionError
from torc_ssh.remote_runners.runner_process import (
    STOP_PATIENCE_S,
    RunnerFiles,
    RunnerState,
    StoppedRunner,
    check_output_dir,
    runner_state,
    stop_runner,
)
from torc_ssh.remote_runners.runner_records import RunnerRecords

SHOWN_JOBS: Final = 5
"""Most jobs that a line names."""


def register(app: CommandGroup) -> None:
    """Add the commands to a group."""
    app.command("status")(status)
    app.command("stop")(stop)


@frozen
class _Seen:
    """A runner as its host and the server describe it."""

    runner: RunnerState
    jobs: list[str]


def status(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    output_dir: OutputDirOnHosts = OUTPUT_DIR,
    max_parallel_ssh: MaxParallelSsh = DEFAULT_PARALLEL,
    ssh_command: SshCommand = "",
) -> None:
    """Show the runners on the remote workers of a workflow.

    Of each it says whether it runs, has ended, or its machine cannot be reached; since when; and how many jobs it
    holds. The exit code is 1 if a machine cannot be reached.

    Examples:
        torc remote status 42
    """
    session = session_of(ctx)
    files_dir = check_output_dir(output_dir, "--output-dir")
    chosen = pick_workflow(session, workflow_id)
    files, records = RunnerFiles(files_dir, chosen), RunnerRecords(session.client, chosen)
    addresses, lines = workers_of(session, chosen), HostLines(session, chosen)
    records.refresh()

    async def look(host: Host) -> _Seen:
        facts = host.session.facts
        runner = await runner_state(host.session, files)
        nodes = records.of_runner(runner, facts.hostname, files.absolute_dir(facts.home))
        return _Seen(runner, await asyncio.to_thread(records.jobs_of, nodes))

    def report(address: HostAddress, result: _Seen | TorcError) -> None:
        if isinstance(result, _Seen):
            _show_runner(lines, address, result)
        elif isinstance(result, HostConnectionError):
            _show_unreachable(lines, address, result, records)
        else:
            lines.fail(address, result)

    on_all_hosts(addresses, look, report, ssh_command=ssh_command, limit=max_parallel_ssh)
    lines.finish()


def _show_runner(lines: HostLines, address: HostAddress, seen: _Seen) -> None:
    runner, age = seen.runner, seconds_text(seen.runner.age_s)
    values = {"pid": runner.pid, "age_s": runner.age_s, "exit_code": runner.exit_code, "jobs": seen.jobs}
    if runner.state == "none":
        lines.add(address, "none", "no runner was started", values=values)
    elif runner.is_running:
        text = f"PID {runner.pid}{f', for {age}' if age else ''}; {_jobs_text(seen.jobs)}"
        lines.add(address, "running", text, values=values)
    else:
        held = f"; {_jobs_text(seen.jobs)}" if seen.jobs else ""
        lines.add(address, "ended", f"{runner.exit_text}{f', {age} ago' if age else ''}{held}", values=values)


def _show_unreachable(lines: HostLines, address: HostAddress, error: TorcError, records: RunnerRecords) -> None:
    """Print that a host cannot be reached, and what the server knows of a runner there."""
    nodes = records.of_address(address)
    jobs = records.jobs_of(nodes)
    age = records.age_s(nodes[0]) if nodes else None
    known = f"; its runner registered {seconds_text(age)} ago; {_jobs_text(jobs)}" if nodes else ""
    lines.add(address, "unreachable", f"{error}{known}", failed=True, values={"age_s": age, "jobs": jobs})


def _jobs_text(jobs: list[str]) -> str:
    if not jobs:
        return "no jobs in hand"
    more = f" and {len(jobs) - SHOWN_JOBS} more" if len(jobs) > SHOWN_JOBS else ""
    return f"{len(jobs)} job(s) in hand: {', '.join(jobs[:SHOWN_JOBS])}{more}"


def stop(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    output_dir: OutputDirOnHosts = OUTPUT_DIR,
    max_parallel_ssh: MaxParallelSsh = DEFAULT_PARALLEL,
    force: Annotated[
        bool, typer.Option("--force", help="Kill the runners and their jobs (SIGKILL) if SIGTERM does not end them.")
    ] = False,
    ssh_command: SshCommand = "",
) -> None:
    """Stop the runners on the remote workers of a workflow.

    Each runner gets SIGTERM, stops its jobs and reports them as terminated. With --force it kills its jobs at once, and
    what has not ended after a few seconds is killed. Only the process that 'torc remote run' started gets signals, and
    its jobs.

    Examples:
        torc remote stop 42
        torc remote stop 42 --force
    """
    session = session_of(ctx)
    folder = check_output_dir(output_dir, "--output-dir")
    chosen = pick_workflow(session, workflow_id)
    files, lines = RunnerFiles(folder, chosen), HostLines(session, chosen)

    async def end(host: Host) -> StoppedRunner:
        return await stop_runner(host.session, files, force=force)

    def report(address: HostAddress, result: StoppedRunner | TorcError) -> None:
        if isinstance(result, TorcError):
            lines.fail(address, result)
            return
        before, after = result.before, result.after
        values = {"pid": before.pid, "exit_code": after.exit_code, "killed": result.killed}
        if not before.is_running and result.killed:
            killed = f"{result.killed} process(es) of its jobs were killed"
            text = f"PID {before.pid} had ended before ({before.exit_text}); {killed}"
            lines.add(address, "stopped", text, values=values)
        elif not before.is_running:
            lines.add(address, "none", "no runner works here", values=values)
        elif after.is_running:
            text = f"PID {before.pid} got SIGTERM and still works after {STOP_PATIENCE_S:g} s, while its jobs end"
            lines.add(address, "stopping", text, failed=force, values=values)
        else:
            lines.add(address, "stopped", f"PID {before.pid}; {after.exit_text}", values=values)

    on_all_hosts(workers_of(session, chosen), end, report, ssh_command=ssh_command, limit=max_parallel_ssh)
    lines.finish()
