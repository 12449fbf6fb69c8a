"""The setting ``stdio`` of workflows and jobs: stored, changed, claimed."""

from typing import Any

from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord
from torc_framework.store.record_kinds.jobs import JOBS, create_jobs
from torc_framework.store.record_kinds.workflows import WORKFLOWS
from torc_framework.store.records import crud
from torc_framework.store.workflows.plans import create_plan


def test_a_plan_keeps_it_and_a_claim_returns_that_of_the_job(bench: Any) -> None:
    """None and false are different: with the first the workflow's value applies."""
    bench.plan(
        [
            PlannedJob("a", "a", stdio="none", delete_stdio_on_success=True),
            PlannedJob("b", "b", delete_stdio_on_success=False),
            PlannedJob("c", "c"),
        ]
    )
    claimed = [(job.stdio, job.delete_stdio_on_success) for job in bench.claim()]
    assert claimed == [("none", True), (None, False), (None, None)]
    with bench.database.read() as tx:
        stored = [crud.get(tx, JOBS, bench.job_id(n)) for n in range(3)]
    assert [(job.get("stdio"), job.get("delete_stdio_on_success")) for job in stored] == claimed


def test_jobs_are_created_with_it_and_take_changes(bench: Any) -> None:
    bench.plan(1)
    fields = {"stdio": "combined", "delete_stdio_on_success": True}
    with bench.database.write() as tx:
        (made,) = create_jobs(tx, [{"workflow_id": bench.workflow_id, "name": "n", "command": "c", **fields}])
        assert {name: crud.get(tx, JOBS, made["id"])[name] for name in fields} == fields
        changed = crud.update(tx, JOBS, made["id"], {"delete_stdio_on_success": False})
        assert (changed["stdio"], changed["delete_stdio_on_success"]) == ("combined", False)


def test_a_workflow_has_it_and_takes_changes(bench: Any) -> None:
    record = WorkflowRecord(name="w", user="u", stdio="no_stdout", delete_stdio_on_success=True)
    with bench.database.write() as tx:
        id_ = create_plan(tx, Plan(workflow=record, jobs=[PlannedJob("a", "a")])).id
        stored = crud.get(tx, WORKFLOWS, id_)
        assert (stored["stdio"], stored["delete_stdio_on_success"]) == ("no_stdout", True)
        assert crud.update(tx, WORKFLOWS, id_, {"stdio": "none"})["stdio"] == "none"
