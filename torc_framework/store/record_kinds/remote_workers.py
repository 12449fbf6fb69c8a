"""Remote workers: machines that a workflow may use, each as a text ``[user@]host[:port]``."""

import re
from collections.abc import Iterable
from typing import Final

import sqlalchemy as sa

from torc_framework.models.responses import RemoteWorker
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.records.crud import require_workflow
from torc_framework.store.tables.core import REMOTE_WORKER

_ADDRESS: Final = re.compile(r"(?:[^@\s/:]+@)?(?:\[[0-9a-fA-F:.]+\]|[^@\s/:\[\]]+)(?::[0-9]{1,5})?")


def remote_workers(tx: Tx, workflow_id: int) -> list[RemoteWorker]:
    """Return a workflow's remote workers in alphabetical order.

    Raises:
        NotFoundError: there is no such workflow.
    """
    require_workflow(tx, workflow_id)
    worker = REMOTE_WORKER.c.worker
    found = tx.connection.execute(sa.select(worker).where(REMOTE_WORKER.c.workflow_id == workflow_id)).scalars()
    return [RemoteWorker(address, workflow_id) for address in sorted(found)]


def add_remote_workers(tx: Tx, workflow_id: int, addresses: Iterable[str]) -> list[RemoteWorker]:
    """Add remote workers that the workflow does not have yet; return all of ``addresses``.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: a text is not an address.
    """
    wanted = sorted(set(addresses))
    for address in wanted:
        if not _ADDRESS.fullmatch(address):
            raise RuleError(f"remote worker {address!r}: expected [user@]host[:port]")
    known = {worker.worker for worker in remote_workers(tx, workflow_id)}
    new = [{"workflow_id": workflow_id, "worker": address} for address in wanted if address not in known]
    if new:
        tx.connection.execute(sa.insert(REMOTE_WORKER), new)
    return [RemoteWorker(address, workflow_id) for address in wanted]


def delete_remote_worker(tx: Tx, workflow_id: int, address: str) -> RemoteWorker:
    """Remove a remote worker; return it.

    Raises:
        NotFoundError: there is no such workflow, or it has no such remote worker.
    """
    require_workflow(tx, workflow_id)
    this = sa.and_(REMOTE_WORKER.c.workflow_id == workflow_id, REMOTE_WORKER.c.worker == address)
    if not tx.connection.execute(sa.delete(REMOTE_WORKER).where(this)).rowcount:
        raise NotFoundError("Remote worker", address)
    return RemoteWorker(address, workflow_id)
