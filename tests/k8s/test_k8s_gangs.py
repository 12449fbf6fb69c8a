"""Groups of pods on a real cluster: exit actions, what the end of one pod means for the others, and barriers."""

import signal
from pathlib import Path
from typing import Any, Final

import pytest
from k8s_cluster import BUSYBOX, ApiAnswer, Namespace, PodTorc, by_pods, eventually
from run_results import all_results, ended_jobs

pytestmark = pytest.mark.e2e

LONG: Final = "sleep 600"
FIRST_FAILS: Final = 'case "$(hostname)" in *-r1) exit 0 ;; *) exit 7 ;; esac'
"""Fails in the first pod of a member, and succeeds in the second: the name of a pod is its host name."""


def group(*tasks: dict[str, Any], **rules: Any) -> dict[str, Any]:
    """Return the fields of a job that is a group."""
    return {"command": "false", "executor_options": {"k8s": {"group": {"tasks": list(tasks), **rules}}}}


def lead(command: str, **fields: Any) -> dict[str, Any]:
    return {"name": "lead", "lead": True, "command": command, **fields}


def other(command: str, **fields: Any) -> dict[str, Any]:
    return {"name": "other", "command": command, **fields}


ACTIONS: Final[dict[str, dict[str, Any]]] = {
    "complete": group(lead("exit 16", exit_actions={"COMPLETE": "0,1-10,16,20"})),
    "fail": group(lead("true", exit_actions={"FAIL": "0"})),
    "no_budget": group(lead("exit 7", exit_actions={"RESCHEDULE": "1-9"})),
    "budget": group(lead(FIRST_FAILS, exit_actions={"RESCHEDULE": "7"}), max_retries=1),
    "spent": group(lead("exit 7", exit_actions={"RESCHEDULE": "7"}), max_retries=1),
    "lead_done": group(other(LONG), lead("true")),
    "lead_fails": group(other(LONG), lead("exit 3")),
    "ignored": group(lead("sleep 20"), other("exit 5")),
    "counted": group(lead(LONG), other("exit 5"), ignore_nonlead_status=False),
    "restart": group(lead(FIRST_FAILS, exit_actions={"RESCHEDULE": "7"}), other("echo began; " + LONG), max_retries=1),
}
EXPECTED: Final[dict[str, tuple[str, dict[str, tuple[str, int | None, int]]]]] = {
    "complete": ("COMPLETED", {"lead": ("COMPLETED", 16, 0)}),
    "fail": ("FAILED", {"lead": ("FAILED", 0, 0)}),
    "no_budget": ("FAILED", {"lead": ("FAILED", 7, 0)}),
    "budget": ("COMPLETED", {"lead": ("COMPLETED", 0, 1)}),
    "spent": ("FAILED", {"lead": ("FAILED", 7, 1)}),
    "lead_done": ("COMPLETED", {"lead": ("COMPLETED", 0, 0), "other": ("COMPLETED", None, 0)}),
    "lead_fails": ("FAILED", {"lead": ("FAILED", 3, 0), "other": ("FAILED", None, 0)}),
    "ignored": ("COMPLETED", {"lead": ("COMPLETED", 0, 0), "other": ("FAILED", 5, 0)}),
    "counted": ("FAILED", {"lead": ("FAILED", None, 0), "other": ("FAILED", 5, 0)}),
    "restart": ("COMPLETED", {"lead": ("COMPLETED", 0, 1), "other": ("COMPLETED", None, 0)}),
}
"""Status of each group, and status, code and retries of each of its tasks."""
UPSTREAM: Final = ("FAILED_UPSTREAM", {"lead": ("FAILED_UPSTREAM", 3000, 0), "other": ("FAILED_UPSTREAM", 3000, 0)})


def seen_groups(torc: PodTorc, workflow_id: int = 1) -> dict[str, tuple[str, dict[str, tuple[str, int | None, int]]]]:
    """Return the groups as ``torc k8s groups`` has them, in the form of `EXPECTED`."""
    return {
        each["name"]: (
            each["status"],
            {task["name"]: (task["status"], task["code"], task["retries"]) for task in each["tasks"]},
        )
        for each in torc.json("k8s", "groups", workflow_id)["groups"]
    }


def log(torc: PodTorc, job_id: int, suffix: str = "") -> str:
    """Return the standard output of a member of the first attempt of a job."""
    (path,) = (torc.folder / Path("output", "job_stdio")).glob(f"job_wf1_j{job_id}_r1_a1{suffix}.o")
    return path.read_text()


def test_exit_actions_and_siblings(pod_torc: PodTorc) -> None:
    """Every action, with and without a budget; jobs after a failed group are FAILED_UPSTREAM, code 3000."""
    jobs = [{"name": name, **fields} for name, fields in ACTIONS.items()]
    jobs.append({"name": "next", "depends_on": ["complete"], **group(lead("true"))})
    jobs.append({"name": "never", "depends_on": ["fail"], **group(lead("true"), other("true"))})
    pod_torc.write("w.yaml", {"name": "groups", "jobs": jobs})
    pod_torc("run", "w.yaml", *by_pods(BUSYBOX), code=1)
    expected = {**EXPECTED, "next": ("COMPLETED", {"lead": ("COMPLETED", 0, 0)}), "never": UPSTREAM}
    assert seen_groups(pod_torc) == expected
    by_status = {"COMPLETED": "completed", "FAILED": "failed", "FAILED_UPSTREAM": "canceled"}
    ended = ended_jobs(pod_torc)
    assert {name: job.status for name, job in ended.items()} == {
        name: by_status[status] for name, (status, _) in expected.items()
    }
    assert ended["counted"].code == 5
    assert "an exit action of task lead makes exit code 0 a failure" in ended["fail"].reason
    assert ended["spent"].observation["raw"]["group"]["tasks"][0]["message"] == "the retry limit of 1 is reached"
    number = [*ACTIONS].index("restart") + 1
    assert log(pod_torc, number, "_m1") == log(pod_torc, number, "_m1_p1") == "began\n"
    assert "never" in pod_torc("k8s", "groups", 1)
    assert pod_torc.namespace.left() == {}


def test_members_begin_together_and_find_each_other(quiet_torc: PodTorc) -> None:
    """No command begins before all pods run; each knows the addresses of all, and they reach each other.

    Two pods request both CPUs of the cluster, and each would wait for the other beside a test that keeps one.
    """
    serve = 'nc -l -p 5000; echo "$TORC_MEMBER_RANK $TORC_MEMBER_COUNT $TORC_MEMBER_NAME"'
    call = 'until echo "from $TORC_MEMBER_NAME" | nc "$TORC_LEAD_HOST" 5000; do sleep 0.2; done; exec ' + LONG
    nodes = (
        'echo "$TORC_MEMBER_RANK of $TORC_MEMBER_COUNT: $TORC_MEMBER_HOSTS"; '
        'test "$TORC_MEMBER_RANK" = 0 || { until echo | nc "$TORC_LEAD_HOST" 5001; do sleep 0.2; done; exit 4; }; '
        "while :; do nc -l -p 5001 >/dev/null; done"
    )
    jobs: list[dict[str, Any]] = [
        {"name": "talk", **group(other(call), lead(serve))},
        {"name": "nodes", "command": nodes, "resource_requirements": "two"},
        {"name": "free", **group(lead('echo "<$TORC_MEMBER_HOSTS>"'), other("true"), barrier=False)},
    ]
    two = {"name": "two", "num_cpus": 1, "num_nodes": 2, "memory": "20m", "runtime": "PT5M"}
    quiet_torc.write("w.yaml", {"name": "gang", "jobs": jobs, "resource_requirements": [two]})
    quiet_torc("run", "w.yaml", *by_pods(BUSYBOX, "--cpu-limit", "none"), code=1)
    assert log(quiet_torc, 1) == "from other\n0 2 lead\n"
    first, second = log(quiet_torc, 2), log(quiet_torc, 2, "_m1")
    assert (first[:8], second[:8]) == ("0 of 2: ", "1 of 2: ")
    assert first[8:] == second[8:]
    assert len(set(first[8:].strip().split(","))) == 2
    assert log(quiet_torc, 3) == "<>\n"
    found = seen_groups(quiet_torc)
    assert found["talk"] == ("COMPLETED", {"lead": ("COMPLETED", 0, 0), "other": ("COMPLETED", None, 0)})
    assert found["nodes"] == ("FAILED", {"node-0": ("FAILED", None, 0), "node-1": ("FAILED", 4, 0)})
    assert ended_jobs(quiet_torc)["nodes"].code == 4
    assert quiet_torc.namespace.left() == {}


@pytest.mark.parametrize("killed_in", [0, 1])
def test_a_group_outlives_its_runner(pod_torc: PodTorc, killed_in: int) -> None:
    """The runner is killed before or after a retry of the lead; the next one keeps the budget and makes new pods."""
    job = group(lead("sleep 8; exit 7", exit_actions={"RESCHEDULE": "7"}), other(LONG), max_retries=1)
    pod_torc.write("w.yaml", {"name": "adopted", "jobs": [{"name": "g", **job}]})
    with pod_torc.start("run", "w.yaml", *by_pods(BUSYBOX)) as runner:
        eventually(lambda: _begun(pod_torc, f"torc-retry={killed_in}") == 2)
        runner.send_signal(signal.SIGKILL)
    pod_torc("run", 1, *by_pods(BUSYBOX), code=1)
    assert seen_groups(pod_torc) == {"g": ("FAILED", {"lead": ("FAILED", 7, 1), "other": ("FAILED", None, 0)})}
    assert ended_jobs(pod_torc)["g"].attempts == 1
    assert pod_torc.namespace.left() == {}


def permit_one_pod(namespace: Namespace) -> None:
    """Make a quota of one pod that is enforced: the cluster begins with it some time after it is made."""
    namespace.create("resourcequotas", {"metadata": {"name": "one"}, "spec": {"hard": {"pods": "0"}}})
    container = {"name": "main", "image": BUSYBOX}
    probe = {"metadata": {"name": "probe"}, "spec": {"containers": [container]}}

    def is_enforced() -> bool:
        try:
            namespace.create("pods?dryRun=All", probe)
        except ApiAnswer as answer:
            return "exceeded quota" in answer.text
        return False

    eventually(is_enforced, "the quota is enforced")
    namespace.patch("resourcequotas", "one", {"spec": {"hard": {"pods": "1"}}})


@pytest.mark.parametrize("barrier", [True, False])
def test_a_group_whose_runner_was_killed_while_it_made_the_pods(pod_torc: PodTorc, barrier: bool) -> None:
    """The next runner removes the pods that are there; where no command can have begun, nothing has happened."""
    command = "true" if barrier else 'test "$TORC_ATTEMPT_ID" = 1 && exec sleep 600; true'
    pod_torc.write(
        "w.yaml", {"name": "half", "jobs": [{"name": "g", **group(lead(command), other(LONG), barrier=barrier)}]}
    )
    permit_one_pod(pod_torc.namespace)
    with pod_torc.start("run", "w.yaml", *by_pods(BUSYBOX)) as runner:
        eventually(lambda: [pod["status"]["phase"] for pod in pod_torc.namespace.pods().values()] == ["Running"])
        runner.send_signal(signal.SIGKILL)
    pod_torc.namespace.delete("resourcequotas", "one")
    done = pod_torc.run("run", 1, *by_pods(BUSYBOX))
    assert done.returncode == 0, done.stdout + done.stderr
    classes = [each["exit_class"] for each in all_results(pod_torc)]
    assert classes == (["success"] if barrier else ["orphaned", "success"])
    assert pod_torc.namespace.left() == {}


def test_a_late_request_of_a_killed_runner(pod_torc: PodTorc) -> None:
    """A pod that appears when the next runner has taken over is removed, and what was taken over goes on."""
    pod_torc.write("w.yaml", {"name": "late", "jobs": [{"name": "a", "command": "sleep 20"}]})
    with pod_torc.start("run", "w.yaml", *by_pods(BUSYBOX)) as runner:
        (first,) = eventually(lambda: [*pod_torc.namespace.pods().values()])
        runner.send_signal(signal.SIGKILL)
    with pod_torc.start("run", 1, *by_pods(BUSYBOX)) as runner:
        eventually(lambda: len(pod_torc.json("compute-nodes", "list", 1)["compute_nodes"]) == 2, "it has begun")
        metadata = first["metadata"]
        late = {
            "name": metadata["name"].replace("-j1-", "-j7-") + "-m1",
            "labels": {**metadata["labels"], "torc-job": "7", "torc-member": "1"},
            "finalizers": metadata["finalizers"],
        }
        container = {"name": "main", "image": BUSYBOX, "command": ["sleep", "600"]}
        spec = {"restartPolicy": "Never", "containers": [container]}
        pod_torc.namespace.create("pods", {"metadata": late, "spec": spec})
        eventually(lambda: late["name"] not in pod_torc.namespace.pods(), "it is removed", patience_s=15)
        assert metadata["name"] in pod_torc.namespace.pods()
        assert runner.wait(120) == 0
    assert [each["exit_class"] for each in all_results(pod_torc)] == ["success"]
    assert pod_torc.namespace.left() == {}


def test_a_canceled_group_leaves_nothing(pod_torc: PodTorc) -> None:
    """No member is started again, also where its exit code says so."""
    every = {"RESCHEDULE": "0-255"}
    job = group(lead(LONG, exit_actions=every), other(LONG, exit_actions=every), max_retries=9)
    pod_torc.write("w.yaml", {"name": "canceled", "jobs": [{"name": "g", **job}]})
    with pod_torc.start("run", "w.yaml", *by_pods(BUSYBOX)) as runner:
        eventually(lambda: _begun(pod_torc, "torc-retry=0") == 2)
        runs = ("RUNNING", {"lead": ("RUNNING", None, 0), "other": ("RUNNING", None, 0)})
        eventually(lambda: seen_groups(pod_torc) == {"g": runs}, "the tasks run")
        pod_torc("workflows", "cancel", 1)
        runner.wait(60)
    assert seen_groups(pod_torc)["g"][0] == "FAILED_CANCELED"
    assert pod_torc.namespace.left() == {}


def _begun(torc: PodTorc, labels: str) -> int:
    """Return how many pods with these labels run a command."""
    return sum(
        pod["status"].get("phase") == "Running" and "torc-framework/go" in pod["metadata"].get("annotations", {})
        for pod in torc.namespace.pods(labels).values()
    )
