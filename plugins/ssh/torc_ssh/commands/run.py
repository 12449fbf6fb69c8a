"""``torc remote run``: starts a runner of torc on each remote worker."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from torc_framework.api.commands import CommandGroup, WorkflowId, pick_workflow, require_lasting_server, session_of
from torc_ssh.addresses import read_worker_file
from torc_ssh.commands.hosts import DEFAULT_PARALLEL, OUTPUT_DIR, MaxParallelSsh, SshCommand, workers_of
from torc_ssh.commands.workers import store_workers

Workers = Annotated[
    Path | None,
    typer.Option("--workers", "-w", metavar="FILE", help="Worker file; its machines are added before the start."),
]
OutputDir = Annotated[
    str,
    typer.Option("--output-dir", "-o", metavar="PATH", help="Output directory on the machines, from the home folder."),
]
PollInterval = Annotated[
    float, typer.Option("--poll-interval", "-p", metavar="SECONDS", min=0, help="Passed to the runners.")
]
MaxParallelJobs = Annotated[
    int | None, typer.Option("--max-parallel-jobs", min=1, help="Most jobs at once on each machine.")
]
NumCpus = Annotated[int | None, typer.Option("--num-cpus", min=1, help="CPUs of each machine; by default all.")]
MemoryGb = Annotated[
    float | None, typer.Option("--memory-gb", metavar="GIB", min=0, help="Memory of each machine; by default all.")
]
NumGpus = Annotated[int | None, typer.Option("--num-gpus", min=0, help="GPUs of each machine; by default all.")]
SkipVersionCheck = Annotated[
    bool, typer.Option("--skip-version-check", help="Also with other versions of torc; not recommended.")
]
UseTunnel = Annotated[
    bool, typer.Option("--tunnel", help="Let the runners reach the server through SSH; stay until they have ended.")
]
TorcOnHosts = Annotated[
    str, typer.Option("--torc", metavar="PATH", help="The program torc on the machines; by default it is looked for.")
]


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("run")(run)


def run(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    workers: Workers = None,
    output_dir: OutputDir = OUTPUT_DIR,
    max_parallel_ssh: MaxParallelSsh = DEFAULT_PARALLEL,
    poll_interval: PollInterval = 5.0,
    max_parallel_jobs: MaxParallelJobs = None,
    num_cpus: NumCpus = None,
    memory_gb: MemoryGb = None,
    num_gpus: NumGpus = None,
    skip_version_check: SkipVersionCheck = False,
    tunnel: UseTunnel = False,
    ssh_command: SshCommand = "",
    torc: TorcOnHosts = "",
) -> None:
    """Start a runner of torc on each remote worker.

    All machines are checked first: their SSH connections, and their versions of torc. If one fails, none is started.
    The runners survive the end of the connection. A machine on which one works for the workflow gets no other.

    Examples:
        torc remote run 42
        torc remote run 42 --workers workers.txt --output-dir /data/torc_output
        torc remote run 42 --tunnel
    """
    from torc_ssh.commands.starting import start_on_workers
    from torc_ssh.remote_runners.runner_process import RunnerFiles, check_output_dir
    from torc_ssh.remote_runners.server_access import ServerAccess
    from torc_ssh.remote_runners.startup import RunnerOrder

    session = session_of(ctx)
    if skip_version_check:
        session.set_option("skip_version_check", True)
    folder = check_output_dir(output_dir, "--output-dir")
    added = read_worker_file(workers) if workers else []
    require_lasting_server(session)
    chosen = pick_workflow(session, workflow_id)
    options = {
        "--poll-interval": poll_interval,
        "--max-parallel-jobs": max_parallel_jobs,
        "--num-cpus": num_cpus,
        "--memory-gb": memory_gb,
        "--num-gpus": num_gpus,
    }
    order = RunnerOrder(
        RunnerFiles(folder, chosen),
        _words(options),
        ServerAccess.of_client(session.client.environment, for_tunnel=tunnel),
        tunnel,
        torc,
        checks_version=not (skip_version_check or session.has_option("skip_version_check")),
    )
    store_workers(session.client, chosen, added)
    start_on_workers(session, order, workers_of(session, chosen), ssh_command=ssh_command, limit=max_parallel_ssh)


def _words(options: Mapping[str, Any]) -> list[str]:
    given = [(flag, value) for flag, value in options.items() if value is not None]
    return [word for flag, value in given for word in (flag, str(value))]
