"""The actions of a workflow, and changes of its jobs, while it runs."""

from typing import Any

import pytest

from torc_framework.models.plan import PlannedAction
from torc_framework.store.errors import ConflictError, NotFoundError, RuleError
from torc_framework.store.record_kinds import workflow_queries
from torc_framework.store.record_kinds.actions import ACTIONS, all_actions, claim_action, due_actions
from torc_framework.store.record_kinds.jobs import JOBS, delete_job, delete_jobs
from torc_framework.store.records import crud
from torc_framework.store.runs.workflow_status import (
    workflow_completion,
)

DIAMOND = [(1, 0), (2, 0), (3, 1), (3, 2)]


# --- actions ---------------------------------------------------------------------------------------


def act(trigger: str, *jobs: int, **options: Any) -> PlannedAction:
    """Return an action that runs a command."""
    return PlannedAction(trigger, "run_commands", {"commands": ["x"]}, jobs=list(jobs) or None, **options)


def due(bench: Any, *triggers: str) -> list[str]:
    """Return the triggers of the actions that are due."""
    return [action["trigger_type"] for action in bench.do(due_actions, triggers)]


def test_actions_become_due_with_their_jobs(bench: Any) -> None:
    """Ready counts jobs that are ready or later, complete those that are over; each job counts once."""
    actions = [act("on_jobs_ready", 1, 2), act("on_jobs_complete", 0, 1), act("on_workflow_complete")]
    bench.plan(3, [(1, 0), (2, 0)], actions=actions)
    assert due(bench) == []
    bench.start(0)
    bench.retry(0, 2)
    assert due(bench) == []
    bench.finish(0)
    assert due(bench) == ["on_jobs_ready"]
    bench.finish(1)
    assert due(bench) == ["on_jobs_ready", "on_jobs_complete"]
    bench.finish(2)
    assert due(bench) == ["on_jobs_ready", "on_jobs_complete", "on_workflow_complete"]
    assert due(bench, "on_jobs_ready", "on_worker_start") == ["on_jobs_ready"]
    assert [action["trigger_count"] for action in bench.do(all_actions)] == [2, 2, 1]


def test_a_canceled_job_counts_for_its_actions(bench: Any) -> None:
    """A canceled job will never be ready, so it counts for both triggers."""
    bench.plan(2, [(1, 0)], actions=[act("on_jobs_ready", 1), act("on_jobs_complete", 0, 1)])
    bench.finish(0, status="failed")
    assert due(bench) == ["on_jobs_ready", "on_jobs_complete"]


def test_start_actions_are_due_from_the_start(bench: Any) -> None:
    """Each run triggers them again, and deletes actions of recoveries."""
    bench.plan(1, actions=[act("on_workflow_start"), act("on_worker_start", persistent=True)])
    with bench.database.write() as tx:
        config = {"action_type": "run_commands", "action_config": {"commands": ["x"]}, "is_recovery": True}
        crud.create(tx, ACTIONS, {"workflow_id": bench.workflow_id, "trigger_type": "on_jobs_ready", **config})
    start, worker, _ = bench.do(all_actions)
    for _ in range(2):
        assert due(bench) == ["on_workflow_start", "on_worker_start"]
        bench.do(claim_action, start["id"], bench.nodes[0])
        bench.do(claim_action, worker["id"], bench.nodes[0])
        assert due(bench) == ["on_worker_start"]
        with pytest.raises(ConflictError, match=f"claimed by compute node {bench.nodes[0]}"):
            bench.do(claim_action, start["id"], bench.nodes[0])
        bench.begin()
        assert len(bench.do(all_actions)) == 2


def test_an_action_of_another_workflow_is_not_found(bench: Any) -> None:
    """An action is claimed through its own workflow only."""
    bench.plan(1, actions=[act("on_workflow_start")])
    (action,) = bench.do(all_actions)
    bench.plan(1)
    with pytest.raises(NotFoundError, match="Action not found"):
        bench.do(claim_action, action["id"], None)


@pytest.mark.parametrize(
    ("kind", "config", "reason"),
    [
        ("run_commands", {"commands": []}, "commands must be a list"),
        ("run_commands", {"commands": ["x"], "other": 1}, "unknown key 'other'"),
        ("run_commands", {"commands": [1]}, "commands must be a list"),
        ("schedule_nodes", {"scheduler_id": "x"}, "scheduler_id must be of type int"),
    ],
)
def test_action_settings_are_checked(bench: Any, kind: str, config: dict[str, Any], reason: str) -> None:
    """Configurations of Torc's own types are checked, others are not."""
    bench.plan(1)
    with bench.database.write() as tx:
        action = {"workflow_id": bench.workflow_id, "trigger_type": "on_workflow_start", "action_config": config}
        with pytest.raises(RuleError, match=f"Invalid action_config: {reason}"):
            crud.create(tx, ACTIONS, {**action, "action_type": kind})
        crud.create(tx, ACTIONS, {**action, "action_type": "of_a_plugin"})


# --- jobs ------------------------------------------------------------------------------------------


def test_deleting_a_job_frees_what_waits_for_it(bench: Any) -> None:
    """Its dependents become ready, directly or through a group."""
    bench.plan(5, [(1, 0)], [([0, 2], [3, 4])])
    with bench.database.write() as tx:
        delete_job(tx, bench.job_id(0))
    assert bench.statuses() == ["ready", "ready", "blocked", "blocked"]
    with bench.database.write() as tx:
        delete_job(tx, bench.job_id(2))
    assert bench.statuses() == ["ready"] * 3
    with bench.database.write() as tx:
        assert delete_jobs(tx, bench.workflow_id, workflow_queries.job_ids(tx, bench.workflow_id)) == 3
    assert bench.do(workflow_completion).is_complete


def test_an_initialized_job_takes_few_changes(bench: Any) -> None:
    """Fields that a runner relies on cannot be changed; the message names those that were refused."""
    bench.plan(2)
    with bench.database.write() as tx:
        changed = {"scheduler_id": 3, "invocation_script": "s", "supports_termination": True, "command": "run 0"}
        job = crud.update(tx, JOBS, bench.job_id(0), changed)
        assert (job["scheduler_id"], job["invocation_script"], job["supports_termination"]) == (3, "s", True)
        for refused in (
            {"name": "n"},
            {"command": "c"},
            {"depends_on_job_ids": [bench.job_id(1)]},
        ):
            message = f"cannot change {next(iter(refused))}, which needs a job that is uninitialized"
            with pytest.raises(RuleError, match=message):
                crud.update(tx, JOBS, bench.job_id(0), refused)
        with pytest.raises(RuleError, match=r"Cannot update job status of job \d+ from ready to disabled"):
            crud.update(tx, JOBS, bench.job_id(0), {"status": "disabled"})
        with pytest.raises(RuleError, match="cannot change input_file_ids"):
            crud.update(tx, JOBS, bench.job_id(0), {"input_file_ids": [4]})


def test_an_uninitialized_job_takes_dependencies(bench: Any) -> None:
    """They replace the old ones, also those of groups; initialize refuses a cycle."""
    bench.plan(4, [(1, 0)], [([0, 1], [2, 3])], begin=False)
    with bench.database.write() as tx:
        job = crud.update(tx, JOBS, bench.job_id(2), {"depends_on_job_ids": [bench.job_id(3)], "name": "new"})
        assert (job["depends_on_job_ids"], job["name"]) == ([bench.job_id(3)], "new")
    bench.check_counters()
    with bench.database.write() as tx:
        crud.update(tx, JOBS, bench.job_id(3), {"depends_on_job_ids": [bench.job_id(2)]})
    with pytest.raises(RuleError, match="cycle"):
        bench.begin()
