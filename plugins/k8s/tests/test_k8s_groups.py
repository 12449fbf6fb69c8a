"""What a job says about its group, what its members run, and the statuses of their ends."""

from typing import Any

import pytest
from torc_k8s.groups import GroupOptions, GroupTask, plan_group, status_of_end

from torc_framework.api import Attempt, AttemptKey, ConfigError, ExitObservation, LaunchError, Resources


def attempt(**changes: Any) -> Attempt:
    """Return an attempt of a job."""
    values: dict[str, Any] = {
        "key": AttemptKey(1, 1),
        "job_name": "j",
        "command": "run it",
        "environment": {"A": "1"},
        "stdout_path": "/o/1.o",
        "stderr_path": "/o/1.e",
        "working_dir": "/w",
        "container": "job:1",
        "outputs": ("out.txt",),
        "resources": Resources(num_cpus=2, memory_bytes=2**30),
    }
    return Attempt(**(values | changes))


def task(name: str = "a", **values: Any) -> GroupTask:
    return GroupTask(name=name, **values)


@pytest.mark.parametrize(
    ("tasks", "rules", "text"),
    [
        ([], {}, "it has 0 tasks; expected 1 to 256"),
        ([task(), task("a", lead=True)], {}, "two tasks are named 'a'"),
        ([task(), task("b")], {}, "no task is marked 'lead: true'"),
        ([task(lead=True), task("b", lead=True)], {}, "a, b are all marked 'lead: true'"),
        ([task("no name")], {}, "'no name' is no name of a task"),
        ([task(exit_actions={"RETRY": "1"})], {}, "exit action 'RETRY' of task a is unknown"),
        ([task(exit_actions={"FAIL": "1, 2"})], {}, "exit action FAIL of task a lists '1, 2'"),
        ([task(exit_actions={"FAIL": True})], {}, "exit action FAIL of task a lists True"),
        ([task(memory="lots")], {}, "memory of task a"),
        ([task(num_cpus=0)], {}, "num_cpus of task a is 0; expected at least 1"),
        ([task()], {"max_retries": -1}, "max_retries is -1; expected 0 to 1000"),
    ],
)
def test_what_a_group_cannot_be(tasks: list[GroupTask], rules: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        GroupOptions(tasks=tasks, **rules)
    assert text in str(raised.value)


def test_most_attempts_are_single_pods() -> None:
    assert plan_group(attempt(), None) is None


def test_several_nodes_are_equal_members() -> None:
    """They begin together, each runs the command of the job, and the failure of any ends all."""
    job = attempt(resources=Resources(num_nodes=3, num_cpus=2))
    plan = plan_group(job, None)
    assert plan is not None
    assert (len(plan.members), plan.barrier, plan.ignore_nonlead_status) == (3, True, False)
    member = plan.members[2].attempt_of(job)
    assert (member.command, member.resources.num_nodes, member.resources.num_cpus) == ("run it", 1, 2)
    with pytest.raises(LaunchError, match="at most 256"):
        plan_group(attempt(resources=Resources(num_nodes=257)), None)
    with pytest.raises(LaunchError, match="give one of the two"):
        plan_group(job, GroupOptions(tasks=[task()]))


def test_members_run_what_their_tasks_say() -> None:
    """The lead has rank 0; what a task does not say is the job's. Declared outputs are the lead's."""
    worker = task("w", command="work", image="w:2", num_gpus=1, memory="4g", env={"B": "2"})
    plan = plan_group(attempt(), GroupOptions(tasks=[worker, task("l", lead=True, exit_actions={"FAIL": "0"})]))
    assert plan is not None
    lead, other = (member.attempt_of(attempt()) for member in plan.members)
    assert (plan.members[0].name, plan.members[0].actions) == ("l", {"FAIL": "0"})
    assert (lead.command, lead.container, lead.outputs) == ("run it", "job:1", ("out.txt",))
    assert (other.command, other.container, other.outputs) == ("work", "w:2", ())
    assert other.environment == {"A": "1", "B": "2"}
    assert other.resources == Resources(num_cpus=2, num_gpus=1, memory_bytes=4 * 2**30)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"exit_code": 0}, ("COMPLETED", 0)),
        ({"exit_code": 16}, ("FAILED", 16)),
        ({"signal": 9}, ("FAILED", 137)),
        ({"exit_code": 0, "missing_outputs": ("x",)}, ("COMPLETED", 0)),
        ({"signal": 9, "scheduler_state": "OOMKilled"}, ("FAILED_EVICTED", 3004)),
        ({"exit_code": 137, "scheduler_state": "Evicted"}, ("FAILED_EVICTED", 3004)),
        ({"scheduler_reason": "PreemptionByScheduler"}, ("FAILED_PREEMPTED", 3006)),
        ({"scheduler_state": "NodeLost"}, ("FAILED_BACKEND_ERROR", 3001)),
        ({"lost": True}, ("FAILED_BACKEND_ERROR", 3001)),
        ({"launch_error": "no image"}, ("FAILED_START_ERROR", 3003)),
        ({"scheduler_state": "ImagePullBackOff"}, ("FAILED_IMAGE_PULL", 301)),
        ({"scheduler_state": "DeadlineExceeded"}, ("FAILED_EXEC_TIMEOUT", None)),
        ({}, ("FAILED", 4000)),
    ],
)
def test_the_status_of_an_end(seen: dict[str, Any], expected: tuple[str, int | None]) -> None:
    assert status_of_end(ExitObservation("k8s", **seen)) == expected
