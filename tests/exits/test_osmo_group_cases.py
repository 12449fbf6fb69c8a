"""Cases of OSMO groups and workflows: the whole tables of statuses, events and reports."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.exit_cases.cases import answer_case
from torc_framework.exits.osmo_codes import STATUSES, is_failed, is_finished
from torc_framework.models.exits import ExitClass

FAILURES = sorted(filter(is_failed, STATUSES))
FINISHED = sorted(filter(is_finished, STATUSES))
OF_THE_GROUP = {
    "FAILED_UPSTREAM",
    "FAILED_SERVER_ERROR",
    "FAILED_CANCELED",
    "FAILED_EXEC_TIMEOUT",
    "FAILED_QUEUE_TIMEOUT",
}
"""Statuses that concern all tasks of a group."""


def group(policy: dict[str, Any] | None = None, **observation: Any) -> dict[str, Any]:
    """Return the answer of kind "group"."""
    return answer_case({"executor": "osmo", "kind": "group", "observation": observation, "policy": policy or {}})


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["COMPLETED", "COMPLETED"], "COMPLETED"),
        (["FAILED_PREEMPTED", "FAILED_UPSTREAM", "COMPLETED"], "FAILED_PREEMPTED"),
        (["FAILED_EVICTED", "FAILED_EVICTED"], "FAILED_EVICTED"),
        (["FAILED_EVICTED", "FAILED_IMAGE_PULL"], "FAILED"),
        (["FAILED", "FAILED_UPSTREAM", "FAILED_UPSTREAM"], "FAILED"),
        (["FAILED_UPSTREAM"], "FAILED"),
        (["FAILED_EXEC_TIMEOUT", "FAILED_QUEUE_TIMEOUT"], "FAILED_EXEC_TIMEOUT"),
        (["FAILED_QUEUE_TIMEOUT", "FAILED"], "FAILED_QUEUE_TIMEOUT"),
        (["FAILED_EXEC_TIMEOUT", "FAILED_SERVER_ERROR"], "FAILED_SERVER_ERROR"),
        (["FAILED_SERVER_ERROR", "FAILED_CANCELED", "FAILED"], "FAILED_CANCELED"),
        (["FAILED_CANCELED", "RUNNING"], "RUNNING"),
        (["COMPLETED", "WAITING"], "PENDING"),
        (["SCHEDULING", "WAITING"], "PENDING"),
    ],
)
def test_the_status_of_a_workflow(statuses: list[str], expected: str) -> None:
    """Named reasons have precedence; one common reason counts; victims of others never do."""
    for written in (statuses, [each.lower() for each in statuses], [{"status": each} for each in statuses]):
        assert group(group_statuses=written)["status"] == expected
        assert group(groups=written)["status"] == expected


@given(st.permutations(["FAILED_CANCELED", "FAILED_EVICTED", "FAILED_UPSTREAM", "COMPLETED"]))
def test_the_order_of_groups_does_not_matter(statuses: list[str]) -> None:
    assert group(group_statuses=statuses)["status"] == "FAILED_CANCELED"


def event(status: str, *, lead: bool, ignores: bool, code: int | None = None, others: Any = ("b", "c")) -> Any:
    """Return the answer to an event of the task a."""
    task = {"task": "a", "lead": lead, "status": status, "retry_id": 1, "exit_code": code}
    return group({"ignore_nonlead_status": ignores}, event=task, others=list(others))


@pytest.mark.parametrize("ignores", [True, False])
@pytest.mark.parametrize("lead", [True, False])
def test_a_rescheduled_task_is_created_again(*, lead: bool, ignores: bool) -> None:
    """The others restart with the lead task, and with any task if the group does not ignore it."""
    answer = event("RESCHEDULED", lead=lead, ignores=ignores)
    restarts = ["b", "c"] if lead or not ignores else []
    assert (answer["status"], answer["action"], answer["outcome"]) == ("RUNNING", "reschedule", None)
    assert (answer["recreated"], answer["restarted"]) == ({"a": 2}, restarts)
    assert answer["untouched"] == ([] if restarts else ["b", "c"])


@pytest.mark.parametrize("ignores", [True, False])
@pytest.mark.parametrize("status", FINISHED)
def test_the_end_of_the_lead_task_ends_the_group(status: str, *, ignores: bool) -> None:
    """The others are completed with it, or fail plainly and without a code."""
    answer = event(status, lead=True, ignores=ignores, code=7 if status == "FAILED" else None)
    if status in OF_THE_GROUP:
        assert {each["status"] for each in answer["siblings"].values()} == {status}
        return
    sibling = "COMPLETED" if status == "COMPLETED" else "FAILED"
    assert answer["siblings"] == {key: {"status": sibling, "exit_code": None} for key in "bc"}
    assert answer["action"] == ("complete" if status == "COMPLETED" else "fail")
    named = status in {"COMPLETED", "FAILED_PREEMPTED", "FAILED_EVICTED"}
    assert answer["status"] == (status if named else "FAILED")


@pytest.mark.parametrize("status", FAILURES)
def test_the_failure_of_another_task(status: str) -> None:
    """It changes nothing by default, and fails all others if the group asks for that."""
    ignored, counted = event(status, lead=False, ignores=True), event(status, lead=False, ignores=False)
    if status in OF_THE_GROUP:
        assert ignored == counted
        return
    assert (ignored["status"], ignored["action"], ignored["siblings"]) == ("RUNNING", "none", {})
    assert ignored["untouched"] == ["b", "c"]
    assert counted["siblings"] == {key: {"status": "FAILED", "exit_code": None} for key in "bc"}
    assert (counted["action"], counted["untouched"]) == ("fail", [])


def test_finished_tasks_keep_their_status() -> None:
    answer = event("FAILED", lead=True, ignores=True, code=1, others=["b", {"task": "c", "status": "COMPLETED"}])
    assert (list(answer["siblings"]), answer["untouched"]) == (["b"], ["c"])


def test_the_tasks_of_a_group_may_include_that_of_the_event() -> None:
    tasks = [{"name": "a", "lead": True, "status": "RUNNING"}, {"name": "b", "status": "RUNNING"}]
    answer = group(event={"task": "a", "lead": True, "status": "FAILED", "exit_code": 1}, tasks=tasks)
    assert (list(answer["siblings"]), answer["status"]) == (["b"], "FAILED")


@pytest.mark.parametrize(("ignores", "expected"), [(True, "COMPLETED"), (False, "FAILED")])
def test_the_last_task_to_end_may_be_one_that_is_ignored(*, ignores: bool, expected: str) -> None:
    lead = {"task": "b", "lead": True, "status": "COMPLETED"}
    assert event("FAILED", lead=False, ignores=ignores, code=1, others=[lead])["status"] == expected


def test_an_event_is_answered_by_exit_actions_first() -> None:
    policy = {"exit_actions": {"RESCHEDULE": "16"}, "max_retry_per_task": 3}
    task = {"task": "a", "lead": True, "status": "FAILED", "exit_code": 16, "retry_id": 0}
    assert group(policy, event=task, others=["b"])["recreated"] == {"a": 1}


@pytest.mark.parametrize("status", FINISHED)
def test_the_end_of_a_group_reaches_its_successors(status: str) -> None:
    answer = group(group_status=status, downstream=["g2", {"name": "g3"}])
    effect = {"status": "FAILED_UPSTREAM", "exit_code": 3000} if is_failed(status) else {"status": "PROCESSING"}
    for name in ("g2", "g3"):
        assert answer["downstream"][name].items() >= effect.items()
    assert answer["action"] == ("fail" if is_failed(status) else "none")
    assert answer["outcome"] == STATUSES[status] or status == "FAILED"


def test_late_reports_are_dropped() -> None:
    """A final status stays; a start timeout reaches only tasks that do not run yet; nothing goes back."""
    for current, reported in product(sorted(STATUSES), repeat=2):
        answer, pair = group(current_status=current, reported=reported, exit_code=3005), (current, reported)
        if is_finished(current) or pair == ("RUNNING", "FAILED_START_TIMEOUT"):
            assert (answer["status"], answer["action"], answer["exit"]) == (current, "none", None), pair
        if current == "RUNNING" and is_finished(reported) and reported != "FAILED_START_TIMEOUT":
            assert (answer["status"], answer["exit"]) == (reported, 3005), pair
        if pair == ("RUNNING", "SCHEDULING"):
            assert answer["status"] == "RUNNING"


def test_a_dropped_report_takes_no_exit_action() -> None:
    """The same rule holds where exit actions are asked."""
    seen = {"exit_code": 3005, "status": "FAILED_START_TIMEOUT", "current_status": "RUNNING"}
    policy = {"exit_actions": {"RESCHEDULE": "3005"}, "max_retry_per_task": 9}
    answer = answer_case({"executor": "osmo", "kind": "match", "observation": seen, "policy": policy})
    assert (answer["status"], answer["action"], answer["outcome"]) == ("RUNNING", "none", None)


@pytest.mark.parametrize(("retry", "limit"), [(0, 0), (2, 2), (5, 2), (0, None)])
def test_an_exhausted_budget_is_named(retry: int, limit: int | None) -> None:
    """The service's default is no retry; the pool is not asked then."""
    policy = {
        "exit_actions": {"RESCHEDULE": "16"},
        "pool_default_exit_actions": {"COMPLETE": "16"},
        "max_retry_per_task": limit,
    }
    seen = {"exit_code": 16, "status": "FAILED", "retry_id": retry}
    answer = answer_case({"executor": "osmo", "kind": "match", "observation": seen, "policy": policy})
    assert (answer["status"], answer["action"], answer["next_retry_id"]) == ("FAILED", "none", None)
    assert answer["message_mentions"] in answer["message"]


@pytest.mark.parametrize("reason", ["StartError", "ContainerCannotRun"])
@pytest.mark.parametrize(("name", "code"), [("user", 128), ("osmo-ctrl", 2128)])
def test_a_container_that_was_not_started(reason: str, name: str, code: int) -> None:
    """Its reason tells more than its code; a start error ends a running pod."""
    for phase in ("Running", "Failed"):
        if (phase, reason, name) == ("Running", "ContainerCannotRun", "user"):
            continue
        ended = {"name": name, "terminated": {"reason": reason, "exit_code": 128}}
        seen = {"pod_phase": phase, "containers": [ended, {"name": "side", "terminated": {"reason": "Completed"}}]}
        answer = answer_case({"executor": "osmo", "observation": seen})
        assert (answer["outcome"], answer["status"], answer["exit"]) == (ExitClass.LAUNCH_FAILURE, "FAILED", code)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ({}, "observation describes no group; expected one of tasks, group_statuses, group_status, event, reported"),
        ({"tasks": []}, "observation describes no group"),
        ({"event": "lead"}, "observation.event is 'lead'; expected an object"),
        ({"event": {"status": "FAILED"}, "others": []}, "observation.event has no task"),
        ({"event": {"task": "a", "status": "BROKEN"}}, "observation.event.status is 'BROKEN'; known: SUBMITTING"),
        ({"group_statuses": ["FAILED", 3]}, "observation.group_statuses[1] is 3; expected an object"),
        ({"group_statuses": ["DONE"]}, "observation.group_statuses[0].status is 'DONE'; known: "),
        ({"current_status": "RUNNING", "reported": 3}, "observation.reported is 3; expected a text"),
    ],
)
def test_wrong_observations(observation: dict[str, Any], message: str) -> None:
    assert message in group(**observation)["error"]
