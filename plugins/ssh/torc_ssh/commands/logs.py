"""``torc remote collect-logs`` and ``torc remote delete-logs``: the output directories on the remote workers."""

import posixpath
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import typer

from torc_framework.api import TorcError, UserError, size_text
from torc_framework.api.commands import (
    CommandGroup,
    NoPrompts,
    StatusLine,
    WorkflowId,
    confirm,
    pick_workflow,
    session_of,
)
from torc_ssh.addresses import HostAddress
from torc_ssh.commands.hosts import (
    DEFAULT_PARALLEL,
    OUTPUT_DIR,
    HostLines,
    MaxParallelSsh,
    RemoteOutputDir,
    SshCommand,
    on_all_hosts,
    workers_of,
)
from torc_ssh.remote_runners.host_pool import Host, HostError
from torc_ssh.remote_runners.log_collection import MOST_PROBLEMS, Collection
from torc_ssh.remote_runners.log_files import OutputFolder, local_path
from torc_ssh.remote_runners.runner_process import RunnerFiles, check_output_dir, runner_state
from torc_ssh.session import HelperError

RETRIES: Final = 6
"""How often the collection from a host goes on after its connection was lost."""


def register(app: CommandGroup) -> None:
    """Add the commands to a group."""
    app.command("collect-logs")(collect_logs)
    app.command("delete-logs")(delete_logs)


def collect_logs(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    local_output_dir: Annotated[
        Path, typer.Option("--local-output-dir", "-l", metavar="PATH", help="Folder for the logs on this machine.")
    ] = Path("remote_logs"),
    remote_output_dir: RemoteOutputDir = OUTPUT_DIR,
    max_parallel_ssh: MaxParallelSsh = DEFAULT_PARALLEL,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete files there whose copies here are complete.")
    ] = False,
    ssh_command: SshCommand = "",
) -> None:
    """Collect logs and resource data from remote workers.

    Each machine gets a folder with the files as they lie there: logs of the runner and of jobs, and the databases that
    'torc plot-resources' reads. Files that are here already are not fetched again, and one that was cut goes on where
    it ended. With --delete a file is deleted there when its copy here has the same digest; nothing is while a runner
    works.

    Examples:
        torc remote collect-logs 42
        torc remote collect-logs 42 -l logs --delete
    """
    session = session_of(ctx)
    folder = check_output_dir(remote_output_dir, "--remote-output-dir")
    chosen = pick_workflow(session, workflow_id)
    addresses, lines = workers_of(session, chosen), HostLines(session, chosen)
    status = StatusLine(enabled=not session.wants_json)
    files = RunnerFiles(folder, chosen)
    collections = {
        address: Collection(
            files, _target(local_output_dir, address), delete, show=lambda: status.show(_progress(collections.values()))
        )
        for address in addresses
    }

    async def collect(host: Host) -> Collection | None:
        try:
            return await collections[host.address].carry_out(host.session)
        except HelperError as error:
            if error.kind != "not_found":
                raise
            return None

    def report(address: HostAddress, result: Collection | TorcError | None) -> None:
        status.erase()
        if isinstance(result, TorcError):
            lines.fail(address, result)
        elif result is None:
            lines.add(address, "none", f"there is no folder {folder}")
        else:
            _show_collection(lines, address, result)

    on_all_hosts(
        addresses, collect, report, ssh_command=ssh_command, limit=max_parallel_ssh, timeout_s=None, retries=RETRIES
    )
    lines.finish(local_output_dir=str(local_output_dir))


def _target(folder: Path, address: HostAddress) -> Path:
    path = local_path(folder, address.host)
    if path is None:
        raise UserError(f"{folder / address.host} is a link or no folder of its own; name another with -l")
    return path


def _progress(several: Iterable[Collection]) -> str:
    collections = list(several)
    done, total = sum(each.done_files for each in collections), sum(each.total_files for each in collections)
    here, size = sum(each.here_bytes for each in collections), sum(each.total_bytes for each in collections)
    return f"{done:,} of {total:,} files, {size_text(here)} of {size_text(size)}"


def _show_collection(lines: HostLines, address: HostAddress, done: Collection) -> None:
    text = f"{done.done_files:,} of {done.total_files:,} files ({size_text(done.done_bytes)}) are in {done.target}"
    if done.fetched_files < done.done_files:
        text += f", {done.fetched_files:,} of them new"
    if done.deletes:
        text += f"; {done.kept or f'{done.deleted_files:,} deleted there'}"
    shown = done.problems[:MOST_PROBLEMS]
    if len(done.problems) > MOST_PROBLEMS:
        shown.append(f"and {len(done.problems) - MOST_PROBLEMS} more")
    lines.add(
        address,
        "incomplete" if done.problems else "collected",
        text,
        below=shown,
        failed=bool(done.problems or done.kept),
        values={
            "local_dir": str(done.target),
            "files": done.done_files,
            "bytes": done.done_bytes,
            "fetched_files": done.fetched_files,
            "deleted_files": done.deleted_files,
            "problems": done.problems,
        },
    )


def delete_logs(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    remote_output_dir: RemoteOutputDir = OUTPUT_DIR,
    max_parallel_ssh: MaxParallelSsh = DEFAULT_PARALLEL,
    no_prompts: NoPrompts = False,
    ssh_command: SshCommand = "",
) -> None:
    """Delete the output directory on all remote workers.

    'torc remote collect-logs --delete' deletes only what it has collected. A directory in which a runner works stays,
    and so does one that contains what torc did not make.

    Examples:
        torc remote delete-logs 42
        torc remote delete-logs 42 --remote-output-dir /data/torc_output --no-prompts
    """
    session = session_of(ctx)
    folder = check_output_dir(remote_output_dir, "--remote-output-dir")
    chosen = pick_workflow(session, workflow_id)
    addresses, lines = workers_of(session, chosen), HostLines(session, chosen)
    question = f"Delete {folder} with all logs on {', '.join(map(str, addresses))}?"
    confirm(question, assume_yes=no_prompts or session.wants_json)

    async def delete(host: Host) -> bool:
        try:
            found = await OutputFolder.read(host.session, folder)
        except HelperError as error:
            if error.kind != "not_found":
                raise
            return False
        await _check_unused(host, folder, found)
        await host.session.request("remove", path=folder, below=posixpath.dirname(folder) or host.session.facts.home)
        return True

    def report(address: HostAddress, result: bool | TorcError) -> None:
        if isinstance(result, TorcError):
            lines.fail(address, result)
        elif result:
            lines.add(address, "deleted", folder)
        else:
            lines.add(address, "none", f"there is no folder {folder}")

    on_all_hosts(addresses, delete, report, ssh_command=ssh_command, limit=max_parallel_ssh)
    lines.finish()


async def _check_unused(host: Host, folder: str, found: OutputFolder) -> None:
    """Refuse to delete a directory that torc did not make, or in which a runner works.

    Raises:
        HostError: it is such a directory.
    """
    if found.foreign or not found.is_torc:
        named = f"it contains {', '.join(found.foreign[:5])}" if found.foreign else "it is empty"
        raise HostError(f"{folder} stays, because it is not only an output directory of torc: {named}")
    for workflow_id in found.workflow_ids:
        if (await runner_state(host.session, RunnerFiles(folder, workflow_id))).is_running:
            raise HostError(
                f"{folder} stays, because a runner of workflow {workflow_id} works in it; "
                f"'torc remote stop {workflow_id}' ends it"
            )
