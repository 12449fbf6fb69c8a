"""Leases: which process speaks in the name of a runner's record, and which of its calls are carried out.

A record has a lease with an epoch, 0 at first. Who takes over from a dead runner takes the lease by comparing the epoch
that it has read with the stored one, and raises it; of several that try, one succeeds. The end of a record raises its
epoch, too. A call with another epoch than the stored one comes from a process that does not hold the lease any more.

The calls of one holder have numbers that grow. One that arrives after a newer one, or twice, changes nothing: its
runner has reported again what it said, and would not learn of the jobs that it asks for.
"""

from collections.abc import Collection
from typing import Final

import msgspec
import sqlalchemy as sa
from attrs import Factory, define

from torc_framework.models.exchange import ExchangeReply, ExchangeRequest, TakenLeases, TakeOverOrder
from torc_framework.store.database.sql import Statement, Tx, number, param
from torc_framework.store.errors import ConflictError, NotFoundError
from torc_framework.store.records.events import utc_text
from torc_framework.store.tables.core import COMPUTE_NODE

_EPOCH: Final = sa.func.coalesce(COMPUTE_NODE.c.epoch, number(0))
_LEASE = Statement(
    sa.select(COMPUTE_NODE.c.workflow_id, _EPOCH, COMPUTE_NODE.c.taken_over_by).where(
        COMPUTE_NODE.c.id == param("node")
    ),
    "node",
)
_ITS_LEASES: Final = sa.or_(
    COMPUTE_NODE.c.id == param("node"),
    sa.and_(COMPUTE_NODE.c.taken_over_by == param("node"), COMPUTE_NODE.c.is_active == number(1)),
)
_READ_LEASES = Statement(sa.select(COMPUTE_NODE.c.id, _EPOCH).where(_ITS_LEASES), "node", "node")
_TAKE_LEASES = Statement(
    sa.update(COMPUTE_NODE).where(_ITS_LEASES).values(epoch=_EPOCH + number(1), taken_over_by=param("by")),
    "by",
    "node",
    "node",
)
_HEARD = Statement(
    sa.update(COMPUTE_NODE).where(COMPUTE_NODE.c.id == param("node")).values(last_heard_at=param("now")), "now", "node"
)
_CARRIED_OUT = Statement(
    sa.update(COMPUTE_NODE)
    .where(COMPUTE_NODE.c.id == param("node"))
    .values(last_heard_at=param("now"), last_seq=param("seq"), last_answer=param("answer")),
    "now",
    "seq",
    "answer",
    "node",
)


@define
class LastAnswer:
    """What a runner must know of the last answer to it that a later answer does not tell by itself.

    Attributes:
        refused: `ExchangeReply.refused`.
        held: `ExchangeReply.held`.
        early: Ids of the jobs with `ClaimedJob.is_early`.
    """

    refused: list[int] = Factory(list)
    held: list[int] = Factory(list)
    early: list[int] = Factory(list)

    @classmethod
    def of(cls, reply: ExchangeReply) -> "LastAnswer":
        """Return this part of a reply."""
        return cls(reply.refused, reply.held, [job.id for job in reply.jobs if job.is_early])

    def __bool__(self) -> bool:
        return bool(self.refused or self.held or self.early)


_NO_ANSWER: Final = LastAnswer()
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(LastAnswer).decode


def read_answer(text: str | None) -> LastAnswer:
    """Return the stored part of an answer; an empty one if nothing is stored."""
    return _NO_ANSWER if text is None else _decode(text)


def check_lease(request: ExchangeRequest, epoch: int | None) -> None:
    """Check that a call comes from the holder of the lease.

    Args:
        request: The call.
        epoch: The stored epoch of its compute node.

    Raises:
        ConflictError: the lease has changed hands.
    """
    if request.epoch != (epoch or 0):
        raise ConflictError(
            f"Compute node {request.compute_node_id} has ended or was taken over by another runner (epoch {epoch or 0} "
            f"of its lease, this call has {request.epoch}): nothing was changed"
        )


def is_superseded(request: ExchangeRequest, last_seq: int | None, *, waited: bool) -> bool:
    """Return whether a numbered call comes too late: a newer one, or this one, was carried out.

    Args:
        request: The call.
        last_seq: The number of the last call that was carried out.
        waited: It was carried out itself, has waited for jobs since, and claims them now.
    """
    last = last_seq or 0
    return 0 < request.seq < last or (request.seq == last != 0 and not waited)


def note_exchange(tx: Tx, request: ExchangeRequest, reply: ExchangeReply) -> None:
    """Store that a runner was heard, and the number of its call with what a later answer would not tell."""
    if not request.seq:
        tx.run(_HEARD, utc_text(), request.compute_node_id)
        return
    told = LastAnswer.of(reply)
    answer = _encode(told).decode() if told else None
    tx.run(_CARRIED_OUT, utc_text(), request.seq, answer, request.compute_node_id)


def take_over(tx: Tx, node_id: int, order: TakeOverOrder) -> TakenLeases:
    """Take the lease of a runner that is dead, and with it the leases that this one has taken from others.

    All of them change hands together: an attempt of any of them may be known to the launchers of another one.

    Raises:
        NotFoundError: there is no such compute node.
        ConflictError: the lease has changed hands meanwhile, or the runner that takes it does not hold its own.
    """
    workflow_id, epoch, taken_by = _lease(tx, node_id)
    if epoch != order.epoch:
        holder = "it has ended" if taken_by is None else f"compute node {taken_by} has taken over"
        raise ConflictError(f"The lease of compute node {node_id} has epoch {epoch}, not {order.epoch}: {holder}")
    if order.by is not None and (order.by == node_id or _lease(tx, order.by)[:2] != (workflow_id, 0)):
        raise ConflictError(f"Compute node {order.by} is no runner of workflow {workflow_id} that may take over")
    leases = tx.rows(_READ_LEASES, node_id, node_id)
    tx.run(_TAKE_LEASES, order.by, node_id, node_id)
    tx.workflows_to_wake.add(workflow_id)  # a call of the dead runner may still wait
    return TakenLeases({id_: before + 1 for id_, before in leases})


def taken_over(tx: Tx, by: int, node_ids: Collection[int]) -> set[int]:
    """Return those of these compute nodes whose leases a runner has taken over, and that have not ended."""
    if not node_ids:
        return set()
    return {id_ for id_, _ in tx.rows(_READ_LEASES, by, by) if id_ != by}.intersection(node_ids)


def _lease(tx: Tx, node_id: int) -> tuple[int, int, int | None]:
    """Return the workflow of a compute node, the epoch of its lease, and who has taken it over."""
    row = tx.row(_LEASE, node_id)
    if row is None:
        raise NotFoundError("Compute node", node_id)
    workflow_id, epoch, taken_by = row
    return workflow_id, epoch, taken_by
