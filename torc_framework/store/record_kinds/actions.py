"""Actions: the kind of record, the actions that are due, and their claim and end by a runner."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.records import WorkflowActionRecord
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import ConflictError, NotFoundError, RuleError
from torc_framework.store.job_state.triggers import required_triggers
from torc_framework.store.records.crud import find, get
from torc_framework.store.records.events import TransactionEvents, utc_text
from torc_framework.store.records.kind import PageRequest, RecordKind, RelationTable, Values
from torc_framework.store.records.references import check_references
from torc_framework.store.runs.workflow_status import workflow_status
from torc_framework.store.tables import core as t

TRIGGERS: Final = (
    "on_workflow_start",
    "on_workflow_complete",
    "on_worker_start",
    "on_worker_complete",
    "on_jobs_ready",
    "on_jobs_complete",
)
"""Types of triggers."""
_CONFIG_KEYS: Final[Mapping[str, Mapping[str, type[Any]]]] = {
    "run_commands": {"commands": list},
    "schedule_nodes": {
        "scheduler_id": int,
        "scheduler_type": str,
        "num_allocations": int,
        "start_one_worker_per_node": bool,
        "max_parallel_jobs": int,
    },
}
"""Keys in the configurations of Torc's own action types; configurations of other types are not checked."""


def _check_config(action_type: str, config: Any) -> None:
    keys = _CONFIG_KEYS.get(action_type)
    if keys is None:
        return
    if not isinstance(config, dict):
        raise RuleError(f"Invalid action_config: {action_type} takes an object")
    for name, value in config.items():
        if name not in keys:
            raise RuleError(f"Invalid action_config: unknown key {name!r}; known: {', '.join(keys)}")
        if value is not None and type(value) is not keys[name]:
            raise RuleError(f"Invalid action_config: {name} must be of type {keys[name].__name__}, not {value!r}")
    commands = config.get("commands")
    if action_type == "run_commands" and not (commands and all(isinstance(command, str) for command in commands)):
        raise RuleError("Invalid action_config: commands must be a list of at least one string")


def check_action(trigger: str, action_type: str, config: Any) -> None:
    """Refuse an action with an unknown trigger, or with a wrong configuration of one of Torc's own types.

    Raises:
        RuleError: the trigger or the configuration is refused.
    """
    if trigger not in TRIGGERS:
        raise RuleError(f"unknown trigger_type {trigger!r}; known: {', '.join(TRIGGERS)}")
    _check_config(action_type, config)


def _new_action(tx: Tx, values: Values) -> Values:
    trigger = values["trigger_type"]
    check_action(trigger, values["action_type"], values["action_config"])
    if isinstance(config := values["action_config"], dict):
        check_references(tx, "action_config", values["workflow_id"], [config])
    jobs = list(dict.fromkeys(values.get("job_ids") or []))
    return {**values, "job_ids": jobs, "required_triggers": required_triggers(trigger, jobs)}


ACTIONS: Final = RecordKind(
    path="actions",
    title="Action",
    record=WorkflowActionRecord,
    table=t.WORKFLOW_ACTION,
    relations={"job_ids": RelationTable(t.ACTION_JOB, "action_id", "job_id")},
    before_create=_new_action,
)


def all_actions(tx: Tx, workflow_id: int) -> list[Values]:
    """Return a workflow's actions."""
    workflow_status(tx, workflow_id)
    return find(tx, ACTIONS, [t.WORKFLOW_ACTION.c.workflow_id == workflow_id], PageRequest(limit=-1), relations=True)[0]


def due_actions(tx: Tx, workflow_id: int, triggers: Sequence[str] = ()) -> list[Values]:
    """Return the actions that are triggered and not executed; ``triggers`` limits them to some trigger types."""
    workflow_status(tx, workflow_id)
    action = t.WORKFLOW_ACTION.c
    due = [
        action.workflow_id == workflow_id,
        action.trigger_count >= action.required_triggers,
        sa.not_(action.executed),
    ]
    if triggers:
        due.append(action.trigger_type.in_(triggers))
    return find(tx, ACTIONS, due, PageRequest(limit=-1), relations=True)[0]


def _action_of(tx: Tx, workflow_id: int, action_id: int) -> Values:
    action = get(tx, ACTIONS, action_id)
    if action["workflow_id"] != workflow_id:
        raise NotFoundError(ACTIONS.title, action_id)
    return action


def claim_action(
    tx: Tx,
    workflow_id: int,
    action_id: int,
    compute_node_id: int | None,
    *,
    will_report: bool = False,
    again: bool = False,
) -> None:
    """Claim an action for a runner; a persistent one can be claimed any number of times.

    Args:
        will_report: The runner will call `finish_action`; if the runner ends before, the action is due again.
        again: Claim it also if it was executed and failed.

    Raises:
        NotFoundError: the workflow has no such action.
        ConflictError: another runner has claimed it.
        RuleError: the compute node is another workflow's.
    """
    action = _action_of(tx, workflow_id, action_id)
    check_references(tx, ACTIONS.path, workflow_id, [{"executed_by": compute_node_id}])
    if action["persistent"]:
        return
    if action["executed"] and not (again and action.get("error") is not None):
        raise ConflictError(f"Action {action_id} has been claimed by compute node {action.get('executed_by')}")
    tx.connection.execute(
        sa.update(t.WORKFLOW_ACTION)
        .where(t.WORKFLOW_ACTION.c.id == action_id)
        .values(
            executed=True,
            executed_at=utc_text(),
            executed_by=compute_node_id,
            finished_at=None,
            error=None,
            is_open=will_report and compute_node_id is not None,
        )
    )


def finish_action(tx: Tx, workflow_id: int, action_id: int, compute_node_id: int | None, error: str | None) -> Values:
    """Store how an action ended, with an event; return the action.

    Raises:
        NotFoundError: the workflow has no such action.
        RuleError: the compute node is another workflow's.
    """
    action = _action_of(tx, workflow_id, action_id)
    check_references(tx, ACTIONS.path, workflow_id, [{"executed_by": compute_node_id}])
    tx.connection.execute(
        sa.update(t.WORKFLOW_ACTION)
        .where(t.WORKFLOW_ACTION.c.id == action_id)
        .values(finished_at=utc_text(), error=error, is_open=False)
    )
    events = TransactionEvents(workflow_id)
    events.add(
        "action_failed" if error else "action_completed",
        action_id=action_id,
        trigger_type=action["trigger_type"],
        action_type=action["action_type"],
        compute_node_id=compute_node_id,
        reason=error or None,
    )
    events.write(tx)
    return get(tx, ACTIONS, action_id)
