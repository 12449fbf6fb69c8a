"""Jobs get new schedulers in one transaction, and earlier actions that request nodes are retired."""

from typing import Any

import pytest
from attrs import evolve

from torc_framework.models.plan import PlannedAction, SchedulerOrder
from torc_framework.models.records import SlurmSchedulerRecord
from torc_framework.models.responses import Rescheduled
from torc_framework.store.errors import ConflictError, NotFoundError, RuleError
from torc_framework.store.record_kinds.actions import all_actions, claim_action, due_actions, finish_action
from torc_framework.store.recovery.rescheduling import reschedule
from torc_framework.store.runs.lifecycle import begin_run

NODES: dict[str, Any] = {"scheduler_type": "batch", "num_allocations": 1}


def scheduler(name: str) -> SlurmSchedulerRecord:
    return SlurmSchedulerRecord(workflow_id=0, name=name, account="a", nodes=1, walltime="01:00:00")


def asks(jobs: list[int] | None, to: int = 0) -> PlannedAction:
    trigger = "on_jobs_ready" if jobs else "on_workflow_start"
    return PlannedAction(trigger, "schedule_nodes", dict(NODES), jobs, to)


def stored(bench: Any) -> None:
    """Store jobs 0, then 1, and 2 after both; nodes are requested at the start and when 2 is ready."""
    bench.plan(
        3,
        [(1, 0), (2, 0), (2, 1)],
        slurm_schedulers=[scheduler("old")],
        actions=[
            asks(None),
            asks([2]),
            PlannedAction("on_worker_start", "schedule_nodes", dict(NODES), None, 0, persistent=True),
            PlannedAction("on_workflow_complete", "run_commands", {"commands": ["x"]}),
        ],
    )


def order(bench: Any, **changes: Any) -> SchedulerOrder:
    first, *others = [bench.job_id(n) for n in range(3)]
    made = SchedulerOrder(
        bench.run_id(),
        [scheduler("now"), scheduler("later")],
        [[first], others],
        [asks(None), asks([others[0]], 1), asks([others[1]], 1)],
    )
    return evolve(made, **changes)


def carry_out(bench: Any, wanted: SchedulerOrder) -> Rescheduled:
    with bench.database.write() as tx:
        return reschedule(tx, bench.workflow_id, wanted)


def actions(bench: Any) -> list[dict[str, Any]]:
    with bench.database.read() as tx:
        return all_actions(tx, bench.workflow_id)


def due(bench: Any) -> list[int]:
    with bench.database.read() as tx:
        return [each["id"] for each in due_actions(tx, bench.workflow_id)]


def test_everything_changes_together(bench: Any) -> None:
    stored(bench)
    before = [each["id"] for each in actions(bench)]
    done = carry_out(bench, order(bench))
    now, later = done.scheduler_ids
    assert bench.column("scheduler_id") == [now, later, later]
    assert done.retired_action_ids == before[:2], "neither those of workers nor those that do other things"
    mine = [each for each in actions(bench) if each["id"] in done.action_ids]
    assert [each["action_config"]["scheduler_id"] for each in mine] == [now, later, later]
    assert all(each["is_recovery"] for each in mine)
    assert [each for each in due(bench) if each in done.action_ids] == done.action_ids[:1]
    assert not set(due(bench)).intersection(done.retired_action_ids)
    retired = [each for each in actions(bench) if each["id"] in done.retired_action_ids]
    assert all(each["executed"] and each["finished_at"] for each in retired), "no submission was cut short"


def test_new_actions_become_due_when_their_jobs_are_ready(bench: Any) -> None:
    stored(bench)
    done = carry_out(bench, order(bench))
    bench.finish(0)
    assert set(done.action_ids[:2]) <= set(due(bench))
    bench.finish(1)
    assert set(done.action_ids) <= set(due(bench))


def test_jobs_that_are_ready_already_count(bench: Any) -> None:
    stored(bench)
    bench.finish(0)
    done = carry_out(bench, order(bench, actions=[asks([bench.job_id(1)])]))
    assert done.action_ids[0] in due(bench)


def test_it_can_be_done_again_and_again(bench: Any) -> None:
    """Each call retires the actions of the one before."""
    stored(bench)
    first = carry_out(bench, order(bench))
    again = carry_out(bench, order(bench, schedulers=[scheduler("now_2"), scheduler("later_2")]))
    assert again.retired_action_ids == first.action_ids
    assert bench.column("scheduler_id") == [again.scheduler_ids[0], *[again.scheduler_ids[1]] * 2]


def test_an_action_that_failed_is_not_done_again(bench: Any) -> None:
    stored(bench)
    failed = actions(bench)[0]["id"]
    with bench.database.write() as tx:
        claim_action(tx, bench.workflow_id, failed, 1, will_report=True)
        finish_action(tx, bench.workflow_id, failed, 1, "refused")
    assert failed in carry_out(bench, order(bench)).retired_action_ids
    assert actions(bench)[0].get("error") is None


def test_a_new_run_goes_back_to_the_actions_of_the_spec(bench: Any) -> None:
    stored(bench)
    before = [each["id"] for each in actions(bench)]
    carry_out(bench, order(bench))
    with bench.database.write() as tx:
        begin_run(tx, bench.workflow_id)
    assert [each["id"] for each in actions(bench)] == before
    assert before[0] in due(bench)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"run_id": 9}, ConflictError, "is in run 1"),
        ({"schedulers": [scheduler("now"), scheduler("old")]}, ConflictError, "'old' exists already"),
        ({"schedulers": [scheduler("same"), scheduler("same")]}, RuleError, "may be used once"),
        ({"job_ids": [[1]]}, RuleError, "1 lists for 2 schedulers"),
        ({"job_ids": [[987654], []]}, RuleError, "no such record"),
        ({"actions": [asks([987654])]}, RuleError, "no such record"),
        ({"actions": [asks(None, 7)]}, RuleError, "no scheduler number 7"),
        ({"actions": [PlannedAction("on_workflow_start", "schedule_nodes", NODES)]}, RuleError, "name a scheduler"),
        (
            {"actions": [PlannedAction("on_workflow_start", "run_commands", {"commands": ["x"]})]},
            RuleError,
            "only schedule_nodes",
        ),
        (
            {"actions": [PlannedAction("on_jobs_complete", "schedule_nodes", NODES, None, 0)]},
            RuleError,
            "without on_workflow_start",
        ),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    bench: Any, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    stored(bench)
    before = actions(bench)
    with pytest.raises(error, match=message):
        carry_out(bench, order(bench, **changes))
    assert actions(bench) == before
    assert bench.column("scheduler_id") == [None] * 3


def test_an_unknown_workflow_is_told(bench: Any) -> None:
    stored(bench)
    wanted = order(bench)
    bench.workflow_id += 100
    with pytest.raises(NotFoundError):
        carry_out(bench, wanted)
