"""The rules of groups: what the end of one pod means for the others, and the status of the group."""

import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torc_k8s.groups import (
    CreatePod,
    DeletePod,
    EndGroup,
    FoundPod,
    GroupMember,
    GroupPlan,
    GroupState,
    LetBegin,
)
from torc_k8s.groups.statuses import group_status, is_finished

OK: Final = ("COMPLETED", 0)
BAD: Final = ("FAILED", 3)


def plan(*actions: dict[str, Any], **rules: Any) -> GroupPlan:
    """Return a group whose members have these exit actions; the first is the lead."""
    members = tuple(GroupMember(rank=rank, name=f"t{rank}", actions=each) for rank, each in enumerate(actions))
    return GroupPlan(members=members, **{"barrier": False, **rules})


def running(made: GroupPlan) -> GroupState:
    """Return a group of which all pods run."""
    state = GroupState(made)
    state.begin()
    for rank in range(len(made.members)):
        state.runs(rank, 0, f"10.0.0.{rank}")
    return state


def statuses(state: GroupState) -> list[str]:
    return [each.status for each in state.members]


# --- one task, and its exit actions ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "end", "status"),
    [
        ({}, OK, "COMPLETED"),
        ({}, BAD, "FAILED"),
        ({"COMPLETE": "0,1-10,16,20"}, ("FAILED", 16), "COMPLETED"),
        ({"COMPLETE": "0,1-10,16,20"}, ("FAILED", 17), "FAILED"),
        ({"FAIL": "0"}, OK, "FAILED"),
        ({"complete": "3"}, BAD, "COMPLETED"),
        ({"FAIL": "3", "COMPLETE": "3"}, BAD, "FAILED"),
        ({"COMPLETE": "10-1"}, BAD, "FAILED"),
        ({"COMPLETE": 3004}, ("FAILED_EVICTED", 3004), "COMPLETED"),
        ({"RESCHEDULE": "3"}, BAD, "FAILED"),
        ({"COMPLETE": "0-9999"}, ("FAILED_EXEC_TIMEOUT", 137), "FAILED"),
        ({"COMPLETE": "0-9999"}, ("FAILED_CANCELED", None), "FAILED"),
        ({}, ("FAILED_EVICTED", 3004), "FAILED_EVICTED"),
        ({}, ("FAILED_PREEMPTED", 3006), "FAILED_PREEMPTED"),
        ({}, ("FAILED_BACKEND_ERROR", 3001), "FAILED"),
    ],
)
def test_a_single_task(actions: dict[str, Any], end: tuple[str, int | None], status: str) -> None:
    """Its status is the group's; without a budget RESCHEDULE lets its status stand."""
    state = running(plan(actions))
    assert state.ended(0, 0, *end) == [EndGroup(status, 0)]
    assert state.as_json()["tasks"][0]["code"] == end[1]


def test_the_limit_of_retries_is_mentioned() -> None:
    """First run and two retries; then the failure stands."""
    state = running(plan({"RESCHEDULE": "1-5", "COMPLETE": "0-9"}, max_retries=2))
    for number in (0, 1):
        assert state.ended(0, number, *BAD) == [CreatePod(0, number + 1)]
        assert (state.status, state.members[0].status) == ("INITIALIZING", "PROCESSING")
        state.runs(0, number + 1, "10.0.0.9")
        assert state.status == "RUNNING"
    assert state.ended(0, 2, *BAD) == [EndGroup("FAILED", 0)]
    (task,) = state.as_json()["tasks"]
    assert (task["retries"], task["pods"], task["message"]) == (2, 3, "the retry limit of 2 is reached")
    assert task["rescheduled"] == [{"pod": 0, "code": 3}, {"pod": 1, "code": 3}]
    json.dumps(state.as_json())


# --- siblings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ignores", [True, False])
@pytest.mark.parametrize(("end", "status"), [(OK, "COMPLETED"), (BAD, "FAILED")])
def test_the_end_of_the_lead_ends_the_others(ignores: bool, end: tuple[str, int], status: str) -> None:
    """They take its status without a code, and the group ends when their processes have."""
    state = running(plan({}, {}, {}, ignore_nonlead_status=ignores))
    assert state.ended(2, 0, *OK) == []
    assert state.ended(0, 0, *end) == [DeletePod(1, 0)]
    assert (state.members[1].status, state.members[1].code) == (status, None)
    assert state.ended(1, 0, "FAILED", 143) == [EndGroup(status, 0)]
    assert statuses(state) == [status, status, "COMPLETED"]
    assert state.ended(1, 0, *OK) == []


def test_a_failure_of_another_counts_only_if_the_group_says_so() -> None:
    """With the flag the lead goes on; without it all others are failed."""
    state = running(plan({}, {}, {}))
    assert state.ended(1, 0, *BAD) == []
    assert state.status == "RUNNING"
    assert state.ended(2, 0, *OK) == []
    assert state.ended(0, 0, *OK) == [EndGroup("COMPLETED", 0)]
    state = running(plan({}, {}, {}, ignore_nonlead_status=False))
    assert state.ended(1, 0, *BAD) == [DeletePod(0, 0), DeletePod(2, 0)]
    assert statuses(state) == ["FAILED"] * 3
    assert state.ended(2, 0, "FAILED", 143) == []
    assert state.ended(0, 0, "FAILED", 143) == [EndGroup("FAILED", 1)]
    assert [each.code for each in state.members] == [None, 3, None]


def test_a_preempted_task_shows_in_the_status_of_its_group() -> None:
    """Also where only the lead counts."""
    state = running(plan({}, {}))
    state.ended(1, 0, "FAILED_PREEMPTED", 3006)
    assert state.ended(0, 0, *OK) == [EndGroup("FAILED_PREEMPTED", 1)]


def test_the_retry_of_the_lead_restarts_all() -> None:
    """Those that have ended stay as they are; a restart costs the others no retry."""
    state = running(plan({"RESCHEDULE": "3"}, {}, {}, max_retries=1))
    state.ended(2, 0, *BAD)
    assert state.ended(0, 0, *BAD) == [CreatePod(0, 1), DeletePod(1, 0)]
    assert state.runs(1, 0, "10.9.9.9") == []
    assert state.ended(1, 0, "FAILED", 143) == [CreatePod(1, 1)]
    assert [(each.retries, each.number) for each in state.members] == [(1, 1), (0, 1), (0, 0)]
    assert state.ended(0, 1, *OK) == [DeletePod(1, 1)]


@pytest.mark.parametrize("ignores", [True, False])
def test_the_retry_of_another(ignores: bool) -> None:
    """It alone gets a new pod, or the others are restarted with it."""
    state = running(plan({}, {"RESCHEDULE": "3"}, {}, max_retries=1, ignore_nonlead_status=ignores))
    others = [] if ignores else [DeletePod(0, 0), DeletePod(2, 0)]
    assert state.ended(1, 0, *BAD) == [CreatePod(1, 1), *others]


# --- barrier -----------------------------------------------------------------------------------------


def test_commands_begin_when_all_pods_run() -> None:
    """With the addresses of all, in the order of ranks; a member that ended before is not awaited."""
    state = GroupState(plan({}, {}, {}, barrier=True))
    assert state.begin() == [CreatePod(0, 0), CreatePod(1, 0), CreatePod(2, 0)]
    assert state.runs(1, 0, "b") == []
    assert state.ended(2, 0, "FAILED_IMAGE_PULL", 301) == []
    assert state.runs(0, 0, "a") == [LetBegin(0, 0, ("a", "b", "")), LetBegin(1, 0, ("a", "b", ""))]
    assert state.runs(1, 0, "b") == []


def test_the_barrier_holds_again_after_a_restart() -> None:
    """A member that has not begun yet is not restarted; one that is restarted alone begins alone."""
    made = plan({"RESCHEDULE": "3"}, {"RESCHEDULE": "3"}, barrier=True, max_retries=5)
    state = running(made)
    assert state.ended(1, 0, *BAD) == [CreatePod(1, 1)]
    assert state.runs(1, 1, "c") == [LetBegin(1, 1, ("10.0.0.0", "c"))]
    assert state.ended(0, 0, *BAD) == [CreatePod(0, 1), DeletePod(1, 1)]
    assert state.runs(0, 1, "d") == []
    assert state.ended(1, 1, "FAILED", 143) == [CreatePod(1, 2)]
    assert state.runs(1, 2, "e") == [LetBegin(0, 1, ("d", "e")), LetBegin(1, 2, ("d", "e"))]
    state = GroupState(made)
    state.begin()
    state.runs(1, 0, "b")
    assert state.ended(0, 0, *BAD) == [CreatePod(0, 1)]
    assert state.runs(0, 1, "a") == [LetBegin(0, 1, ("a", "b")), LetBegin(1, 0, ("a", "b"))]


def test_a_stop_from_outside_restarts_nothing() -> None:
    """Also a code that would be rescheduled, and a member that was to be replaced."""
    state = running(plan({"RESCHEDULE": "0-255"}, {}, {}, max_retries=9))
    state.ended(2, 0, *OK)
    state.ended(0, 0, *BAD)
    assert state.stop() == [DeletePod(0, 1), DeletePod(1, 0)]
    assert state.ended(1, 0, "FAILED", 143) == []
    assert state.ended(0, 1, "FAILED", 143) == [EndGroup("FAILED", 0)]


# --- status of a group -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "ignores", "expected"),
    [
        (["PROCESSING", "SCHEDULING"], True, "INITIALIZING"),
        (["PROCESSING", "COMPLETED"], True, "RUNNING"),
        (["RESCHEDULED", "PROCESSING"], True, "INITIALIZING"),
        (["COMPLETED", "FAILED"], True, "COMPLETED"),
        (["COMPLETED", "FAILED"], False, "FAILED"),
        (["COMPLETED", "FAILED_EVICTED"], True, "COMPLETED"),
        (["FAILED", "FAILED_EVICTED"], False, "FAILED_EVICTED"),
        (["COMPLETED", "FAILED_PREEMPTED", "FAILED_SERVER_ERROR"], True, "FAILED_SERVER_ERROR"),
        (["FAILED_UPSTREAM", "FAILED_UPSTREAM"], True, "FAILED_UPSTREAM"),
        (["FAILED_IMAGE_PULL"], True, "FAILED"),
    ],
)
def test_the_status_of_a_group(found: list[str], ignores: bool, expected: str) -> None:
    assert group_status(found, ignore_nonlead_status=ignores) == expected


# --- another runner ----------------------------------------------------------------------------------


def found(state: GroupState, rank: int, *, ended_by_itself: bool = False) -> FoundPod:
    """Return a member's newest pod as another runner finds it."""
    each = state.members[rank]
    note = json.loads(json.dumps(state.note(rank)))
    return FoundPod(rank=rank, number=each.number, note=note, has_begun=each.has_begun, ended_by_itself=ended_by_itself)


def test_another_runner_goes_on() -> None:
    """Budgets are kept, a member without a pod gets one, and rules are read back."""
    made = plan({"RESCHEDULE": "3"}, {}, max_retries=1)
    assert GroupPlan.from_json(json.loads(json.dumps(made.as_json()))) == made
    with pytest.raises(ValueError, match="no rules of a group"):
        GroupPlan.from_json({"members": 3})
    state = running(made)
    state.ended(0, 0, *BAD)
    again, actions = GroupState.restore(made, [found(state, 0)])
    assert actions == [CreatePod(1, 0)]
    assert again.ended(0, 1, *BAD) == [DeletePod(1, 0)]
    assert again.ended(1, 0, "FAILED", 143) == [EndGroup("FAILED", 0)]


@pytest.mark.parametrize("ended_by_itself", [True, False])
def test_a_restart_that_was_under_way_is_finished(ended_by_itself: bool) -> None:
    """The runner was killed between the deletion of an old pod and the creation of the new one."""
    made = plan({"RESCHEDULE": "3"}, {}, max_retries=1)
    state = running(made)
    state.ended(0, 0, *BAD)
    pods = [found(state, 0), found(state, 1, ended_by_itself=ended_by_itself)]
    again, actions = GroupState.restore(made, pods)
    assert actions == ([] if ended_by_itself else [DeletePod(1, 0)])
    assert again.ended(1, 0, "FAILED", 143) == ([] if ended_by_itself else [CreatePod(1, 1)])


# --- any order of events ----------------------------------------------------------------------------

ENDS: Final = (OK, BAD, ("FAILED", 7), ("FAILED_PREEMPTED", 3006), ("FAILED_EXEC_TIMEOUT", None))
ACTIONS: Final = st.sampled_from([{}, {"RESCHEDULE": "1-9"}, {"COMPLETE": "7"}, {"FAIL": "0", "RESCHEDULE": "3006"}])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(ACTIONS, min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
    st.lists(st.tuples(st.sampled_from("rrees"), st.integers(0, 3), st.sampled_from(ENDS)), max_size=40),
)
def test_every_group_ends_once(
    actions: list[dict[str, Any]], ignores: bool, barrier: bool, retries: int, happened: list[tuple[str, int, Any]]
) -> None:
    """With one end of each pod that was created, within the budgets, and with a final status of each task."""
    made = plan(*actions, ignore_nonlead_status=ignores, barrier=barrier, max_retries=retries)
    state = GroupState(made)
    live: set[tuple[int, int]] = set()
    ends: list[EndGroup] = []
    begun: set[tuple[int, int]] = set()
    is_stopped = False

    def note(done: list[Any]) -> None:
        for action in done:
            match action:
                case CreatePod(rank, number):
                    assert not ends
                    assert not is_stopped
                    assert not any(pod[0] == rank for pod in live)
                    live.add((rank, number))
                case LetBegin(rank, number, hosts):
                    assert barrier
                    assert (rank, number) not in begun
                    assert len(hosts) == len(actions)
                    begun.add((rank, number))
                case DeletePod(rank, number):
                    assert (rank, number) in live
                case EndGroup():
                    assert not live
                    ends.append(action)

    note(state.begin())
    for kind, rank, end in [*happened, *(("e", turn % 4, BAD) for turn in range(80))]:
        pod = next((each for each in live if each[0] == rank), None)
        if kind == "s":
            is_stopped = True
            note(state.stop())
        elif pod is not None and kind == "r":
            note(state.runs(*pod, f"host{rank}"))
        elif pod is not None:
            live.discard(pod)
            note(state.ended(*pod, *end))
    assert [end.status for end in ends] == [state.status]
    assert all(is_finished(each.status) for each in state.members)
    assert all(each.retries <= retries for each in state.members)
