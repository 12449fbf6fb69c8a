"""References between the records of a workflow, and the one check of them.

Torc's clients send ids of compute nodes and schedulers that do not exist. Such ids may be unknown, but may not be of
another workflow's records. The ``scheduler_config_id`` of compute nodes and of scheduled compute nodes is not checked:
its meaning depends on the executor that obtained the nodes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.store.database.sql import Statement, Tx, ids_param
from torc_framework.store.errors import RuleError
from torc_framework.store.tables import core as t

_SHOWN: Final = 10
"""Largest number of unknown ids in an error message."""


@frozen
class Reference:
    """The records that the id, or the list of ids, in a field refers to.

    Attributes:
        tables: Tables that may have the record.
        may_be_unknown: The id of no record is allowed.
    """

    tables: tuple[sa.Table, ...]
    may_be_unknown: bool = False


_SCHEDULER: Final = Reference((t.SLURM_SCHEDULER, t.LOCAL_SCHEDULER), may_be_unknown=True)
_NODE: Final = Reference((t.COMPUTE_NODE,), may_be_unknown=True)
REFERENCES: Final[dict[str, dict[str, Reference]]] = {
    "jobs": {
        "depends_on_job_ids": Reference((t.JOB,)),
        "input_file_ids": Reference((t.FILE,)),
        "output_file_ids": Reference((t.FILE,)),
        "input_user_data_ids": Reference((t.USER_DATA,)),
        "output_user_data_ids": Reference((t.USER_DATA,)),
        "resource_requirements_id": Reference((t.RESOURCE_REQUIREMENTS,)),
        "failure_handler_id": Reference((t.FAILURE_HANDLER,)),
        "scheduler_id": _SCHEDULER,
    },
    "actions": {"job_ids": Reference((t.JOB,)), "executed_by": _NODE},
    "action_config": {"scheduler_id": _SCHEDULER},
    "results": {"job_id": Reference((t.JOB,)), "compute_node_id": _NODE},
}
"""References by the path of the record in the API, or by ``action_config``, and by field."""
_OWNERS: Final = {
    table.name: Statement(sa.select(table.c.id, table.c.workflow_id).where(table.c.id.in_(ids_param())))
    for references in REFERENCES.values()
    for reference in references.values()
    for table in reference.tables
}


def check_references(tx: Tx, path: str, workflow_id: int, records: Sequence[Mapping[str, Any]]) -> None:
    """Refuse records that refer to records that their workflow does not have.

    Args:
        path: The key of `REFERENCES` for these records.

    Raises:
        RuleError: one of them does; the message has the field and the first of its unknown ids.
    """
    for name, reference in REFERENCES.get(path, {}).items():
        named: set[int] = set()
        for record in records:
            value = record.get(name)
            named.update(each for each in (value if isinstance(value, list) else [value]) if isinstance(each, int))
        if not named:
            continue
        ids = sorted(named)
        owners = [row for table in reference.tables for row in tx.rows_for(_OWNERS[table.name], ids)]
        own = {record_id for record_id, owner in owners if owner == workflow_id}
        wanted = {record_id for record_id, _ in owners} if reference.may_be_unknown else named
        if wrong := sorted(wanted - own):
            listed = ", ".join(map(str, wrong[:_SHOWN]))
            raise RuleError(f"{name}: workflow {workflow_id} has no such record(s): {listed}")
