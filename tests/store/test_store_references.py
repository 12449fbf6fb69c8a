"""Every function that stores references refuses records of other workflows."""

from typing import Any

import pytest
from sample_records import ACTION, RECORDS

from torc_framework.models.plan import AddedJob, Addition
from torc_framework.models.records import WorkflowRecord
from torc_framework.store.database.base import Database
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import StoreError
from torc_framework.store.exchange import single_steps
from torc_framework.store.record_kinds import actions, jobs
from torc_framework.store.record_kinds.kinds import IN_WORKFLOWS
from torc_framework.store.records import crud
from torc_framework.store.records.references import REFERENCES
from torc_framework.store.workflows import additions
from torc_framework.store.workflows.plans import create_workflow

KINDS = {resource.path: resource for resource in IN_WORKFLOWS} | {"actions": actions.ACTIONS}
TARGETS = {
    "depends_on_job_ids": "jobs",
    "job_ids": "jobs",
    "job_id": "jobs",
    "input_file_ids": "files",
    "output_file_ids": "files",
    "input_user_data_ids": "user_data",
    "output_user_data_ids": "user_data",
    "resource_requirements_id": "resource_requirements",
    "failure_handler_id": "failure_handlers",
    "scheduler_id": "slurm_schedulers",
    "compute_node_id": "compute_nodes",
}
FIELDS = [(path, name) for path in KINDS for name in REFERENCES.get(path, {}) if name != "executed_by"]


def make(tx: Tx, path: str, workflow_id: int, **fields: Any) -> int:
    """Store a record of a kind."""
    values = {**(ACTION if path == "actions" else RECORDS[path]), "workflow_id": workflow_id, **fields}
    if path == "jobs":
        return int(jobs.create_jobs(tx, [values])[0]["id"])
    if path == "results" and "job_id" not in fields:
        values["job_id"] = make(tx, "jobs", workflow_id, name="of a result")
    return int(crud.create(tx, KINDS[path], values)["id"])


def workflow(tx: Tx) -> int:
    return create_workflow(tx, WorkflowRecord(name="w", user="u"))


@pytest.mark.parametrize(("path", "name"), FIELDS)
def test_another_workflows_record_is_refused(database: Database, path: str, name: str) -> None:
    """At creation and at a change; the same field accepts a record of the same workflow."""
    with database.write() as tx:
        mine, other = workflow(tx), workflow(tx)
        own, foreign = (make(tx, TARGETS[name], each, **_named(TARGETS[name])) for each in (mine, other))
        given, wrong = ([own], [foreign]) if name.endswith("_ids") else (own, foreign)
        there = make(tx, path, mine, **{name: given})
        with pytest.raises(StoreError, match=rf"{name}: workflow {mine} has no such record|Job {foreign} is not in"):
            make(tx, path, mine, **{name: wrong})
        if path in ("jobs", "results"):
            with pytest.raises(StoreError):
                crud.update(tx, KINDS[path], there, {name: wrong})


def _named(path: str) -> dict[str, str]:
    return {"name": "target"} if "name" in RECORDS[path] else {}


def test_every_other_way_is_checked_too(bench: Any) -> None:
    """An addition, the configuration, claim and end of an action, and the result of a job."""
    bench.plan(1)
    bench.start(0)
    with bench.database.write() as tx:
        mine, other = bench.workflow_id, workflow(tx)
        job, node, scheduler = (make(tx, path, other) for path in ("jobs", "compute_nodes", "slurm_schedulers"))
        action = make(tx, "actions", mine)
        config = {"scheduler_id": scheduler, "scheduler_type": "slurm", "num_allocations": 1}
        result = {**RECORDS["results"], "workflow_id": mine, "job_id": bench.job_id(0), "compute_node_id": node}
        for way in (
            lambda: additions.add_to_workflow(tx, mine, Addition(jobs=[AddedJob("a", "a")], depends_on_job_ids=[job])),
            lambda: make(tx, "actions", mine, action_type="schedule_nodes", action_config=config),
            lambda: actions.claim_action(tx, mine, action, node),
            lambda: actions.finish_action(tx, mine, action, node, None),
            lambda: single_steps.complete_job(tx, bench.job_id(0), "completed", 1, result),
        ):
            with pytest.raises(StoreError, match=rf"workflow {mine} has no such record"):
                way()


def test_an_unknown_node_is_taken(database: Database) -> None:
    """Torc's clients send results of compute nodes that they never registered."""
    with database.write() as tx:
        assert make(tx, "results", workflow(tx), compute_node_id=987_654)
