"""Adds the dependencies that files and user data imply: a job that reads one waits for each job that writes it.

A plan has these dependencies already. For jobs that were created one by one, the next initialize adds them. It
considers only pairs with such a job, so that it adds no pairs for dependencies that a group has already.
"""

from collections.abc import Iterable
from typing import Final

import sqlalchemy as sa

from torc_framework.store.database.sql import Statement, Tx, ids_param, number, param
from torc_framework.store.errors import RuleError
from torc_framework.store.job_state.dependency_cycles import nodes_in_or_behind_cycles
from torc_framework.store.job_state.structure_changes import count_structure_change
from torc_framework.store.tables import core as t

_HAS_UNRESOLVED = Statement(
    sa.select(sa.exists().where(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.dependencies_resolved == number(0))),
    "workflow",
)
_RESOLVED = Statement(
    sa.update(t.JOB)
    .where(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.dependencies_resolved == number(0))
    .values(dependencies_resolved=number(1)),
    "workflow",
)


def _implied(inputs: sa.Table, outputs: sa.Table, what: str) -> Statement:
    consumer, producer = t.JOB.alias("consumer"), t.JOB.alias("producer")
    known = sa.exists().where(
        t.JOB_DEPENDENCY.c.job_id == inputs.c.job_id, t.JOB_DEPENDENCY.c.depends_on_job_id == outputs.c.job_id
    )
    pairs = (
        sa.select(inputs.c.job_id, outputs.c.job_id)
        .distinct()
        .select_from(
            consumer.join(inputs, inputs.c.job_id == consumer.c.id)
            .join(outputs, outputs.c[what] == inputs.c[what])
            .join(producer, producer.c.id == outputs.c.job_id)
        )
        .where(
            consumer.c.workflow_id == param("workflow"),
            consumer.c.id != producer.c.id,
            sa.or_(consumer.c.dependencies_resolved == number(0), producer.c.dependencies_resolved == number(0)),
            ~known,
        )
    )
    return Statement(sa.insert(t.JOB_DEPENDENCY).from_select(["job_id", "depends_on_job_id"], pairs), "workflow")


_IMPLIED: Final = (
    _implied(t.JOB_INPUT_FILE, t.JOB_OUTPUT_FILE, "file_id"),
    _implied(t.JOB_INPUT_USER_DATA, t.JOB_OUTPUT_USER_DATA, "user_data_id"),
)


def add_implied_dependencies(tx: Tx, workflow_id: int) -> bool:
    """Add the implied dependencies of jobs that do not have them yet.

    Returns:
        Whether any were added; then the caller has to compute the counters of blockers again.

    Raises:
        RuleError: the dependencies have a cycle.
    """
    if not tx.value(_HAS_UNRESOLVED, workflow_id):
        return False
    added = sum(tx.changed(statement, workflow_id) for statement in _IMPLIED)
    _refuse_cycles(tx, workflow_id)
    tx.run(_RESOLVED, workflow_id)
    if added:
        count_structure_change(tx, workflow_id)
    return added > 0


_NAMES = Statement(sa.select(t.JOB.c.id, t.JOB.c.name).where(t.JOB.c.id.in_(ids_param())))
_EDGES: Final = tuple(
    Statement(
        sa.select(a, b)
        .select_from(table.join(t.JOB, t.JOB.c.id == table.c.job_id))
        .where(t.JOB.c.workflow_id == param("workflow")),
        "workflow",
    )
    for table, a, b in (
        (t.JOB_DEPENDENCY, t.JOB_DEPENDENCY.c.job_id, t.JOB_DEPENDENCY.c.depends_on_job_id),
        (t.GROUP_WAITER, t.GROUP_WAITER.c.job_id, -t.GROUP_WAITER.c.group_id),
        (t.GROUP_MEMBER, -t.GROUP_MEMBER.c.group_id, t.GROUP_MEMBER.c.job_id),
    )
)


def dependency_edges(tx: Tx, workflow_id: int) -> Iterable[tuple[int, int]]:
    """Return the workflow's dependencies as pairs (node, node that it waits for); a group is a node, minus its id."""
    return [(node, on) for statement in _EDGES for node, on in tx.rows(statement, workflow_id)]


def _refuse_cycles(tx: Tx, workflow_id: int) -> None:
    pairs = dependency_edges(tx, workflow_id)
    nodes = sorted({node for pair in pairs for node in pair})
    position = {node: n for n, node in enumerate(nodes)}
    stuck = [nodes[n] for n in nodes_in_or_behind_cycles(len(nodes), ((position[a], position[b]) for a, b in pairs))]
    jobs = [node for node in stuck if node > 0][:10]
    if jobs:
        names = ", ".join(name for _, name in sorted(tx.rows_for(_NAMES, jobs)))
        raise RuleError(f"the dependencies have a cycle; among its jobs or waiting for it: {names}")
