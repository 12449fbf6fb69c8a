"""``torc remote add-workers|add-workers-from-file|list-workers|remove-worker``: the remote workers of a workflow.

The server keeps the addresses of the machines. A machine is a host and a port; it is listed once for each workflow.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from torc_framework.api import TorcClient, UserError
from torc_framework.api.commands import (
    Column,
    CommandGroup,
    WorkflowId,
    pick_workflow,
    print_json,
    print_table,
    session_of,
)
from torc_ssh.addresses import HostAddress, parse_address, parse_addresses, read_worker_file

WorkerFile = Annotated[
    Path, typer.Argument(metavar="WORKER_FILE", help="File with one address on each line; # begins a comment.")
]
Address = Annotated[str, typer.Argument(metavar="WORKER", help="Its address, as 'torc remote list-workers' shows it.")]


def register(app: CommandGroup) -> None:
    """Add the commands to a group."""
    app.command("add-workers")(add_workers)
    app.command("add-workers-from-file")(add_workers_from_file)
    app.command("list-workers")(list_workers)
    app.command("remove-worker")(remove_worker)


def add_workers(
    ctx: typer.Context,
    workflow_id: Annotated[int, typer.Argument(metavar="WORKFLOW_ID", help="The workflow.")],
    workers: Annotated[list[str], typer.Argument(metavar="WORKERS...", help="Addresses: [user@]host[:port].")],
) -> None:
    """Add machines to a workflow, its remote workers.

    An address is [user@]host[:port]; an IPv6 address with a port stands in brackets, as in [2001:db8::1]:2222. A host
    may be an alias of ~/.ssh/config. Workers that the workflow has already stay as they are.

    Examples:
        torc remote add-workers 42 worker1.example.com alice@worker2.example.com
        torc remote add-workers 42 admin@192.168.1.10:2222 '[2001:db8::1]'
    """
    _add(ctx, workflow_id, parse_addresses(workers))


def add_workers_from_file(ctx: typer.Context, worker_file: WorkerFile, workflow_id: WorkflowId = None) -> None:
    """Add the machines that a file lists to a workflow.

    Each line is an address [user@]host[:port]; empty lines and lines that begin with # are ignored. Each host may
    appear once.

    Examples:
        torc remote add-workers-from-file workers.txt 42
    """
    addresses = read_worker_file(worker_file)
    _add(ctx, pick_workflow(session_of(ctx), workflow_id), addresses)


def _add(ctx: typer.Context, workflow_id: int, addresses: Sequence[HostAddress]) -> None:
    session = session_of(ctx)
    added = store_workers(session.client, workflow_id, addresses)
    known = len(addresses) - len(added)
    if session.wants_json:
        document = {"workflow_id": workflow_id, "added": [str(each) for each in added]}
        print_json({**document, "remote_workers": session.client.remote_workers(workflow_id)})
        return
    print(f"Added {len(added)} worker(s) to workflow {workflow_id}")
    for address in added:
        print(f"  {address}")
    if known:
        print(f"{known} worker(s) were there already")


def store_workers(client: TorcClient, workflow_id: int, addresses: Sequence[HostAddress]) -> list[HostAddress]:
    """Add workers that the workflow does not have; return these.

    Raises:
        UserError: the workflow has one of the hosts under another address, such as another user.
        ApiError: there is no such workflow.
    """
    known = {each.worker for each in client.remote_workers(workflow_id)}
    same_host = {_host_key(text): text for text in known}
    new = [address for address in addresses if str(address) not in known]
    for address in new:
        if other := same_host.get(address.host_key):
            raise UserError(
                f"{address}: workflow {workflow_id} has this host as {other}, and each host can only appear once; "
                f"'torc remote remove-worker {other} {workflow_id}' removes it"
            )
    if new:
        client.create_remote_workers(workflow_id, [str(address) for address in new])
    return new


def _host_key(text: str) -> str:
    """Return the host of an address that the server has; another client may have stored what is no address here."""
    try:
        return parse_address(text).host_key
    except UserError:
        return text


_COLUMNS: Final[list[Column]] = [("Worker", "worker")]


def list_workers(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """List the remote workers of a workflow.

    'torc remote status' shows what runs on them.

    Examples:
        torc remote list-workers 42
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    workers = session.client.remote_workers(chosen)
    if session.wants_json:
        print_json({"workflow_id": chosen, "remote_workers": workers})
    elif not workers:
        print(f"No workers configured for workflow {chosen}.")
    else:
        print(f"Remote workers of workflow {chosen}:")
        print_table(_COLUMNS, workers)
        print(f"Total: {len(workers)}")


def remove_worker(ctx: typer.Context, worker: Address, workflow_id: WorkflowId = None) -> None:
    """Remove a machine from a workflow.

    A runner that works there goes on; 'torc remote stop' before this ends it.

    Examples:
        torc remote remove-worker worker1.example.com 42
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    known = [each.worker for each in session.client.remote_workers(chosen)]
    if worker not in known:
        listed = f"its workers: {', '.join(known)}" if known else "it has none"
        raise UserError(f"{worker} is not among the remote workers of workflow {chosen}; {listed}")
    removed = session.client.delete_remote_worker(chosen, worker)
    if session.wants_json:
        print_json(removed)
    else:
        print(f"Removed worker {removed.worker} from workflow {chosen}")
