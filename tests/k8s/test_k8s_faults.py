"""Pods, nodes, runners and the API server that go away while jobs run."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from k8s_cluster import BUSYBOX, Document, Namespace, PodTorc, by_pods, eventually, kubectl, script
from run_results import all_results, ended_jobs
from waiting import let_pass

pytestmark = [pytest.mark.e2e, pytest.mark.crash, pytest.mark.slow]

ONCE = 'echo "$TORC_JOB_NAME" >> /marks/ran; '
"""What a job runs to say that it has begun; see `marks`."""
FIRST_TIME = 'test "$TORC_ATTEMPT_ID" = 1 && '
"""What follows runs in the first attempt only."""


def shared(torc: PodTorc) -> list[str | int]:
    """Return options by which pods see a folder of the test, for their marks."""
    folder = torc.folder / "marks"
    folder.mkdir(exist_ok=True)
    return by_pods(BUSYBOX, "--volumes", f"host:{folder}:/marks")


def marks(torc: PodTorc) -> Counter[str]:
    """Return how often each job has begun."""
    path = torc.folder / "marks" / "ran"
    return Counter(path.read_text().split() if path.exists() else [])


def pod_of(namespace: Namespace, job: str) -> Document | None:
    """Return the pod of a job's running attempt; None if none runs."""
    for pod in namespace.pods().values():
        is_of_job = pod["metadata"].get("annotations", {}).get("torc-framework/job-name") == job
        if is_of_job and pod["status"]["phase"] == "Running":
            return pod
    return None


def begun_pod(torc: PodTorc, job: str) -> Document:
    """Return the pod of a job's attempt as soon as it has begun."""
    return eventually(lambda: pod_of(torc.namespace, job) if marks(torc)[job] else None, f"{job} begins") or {}


def delete(namespace: Namespace, pod: Document) -> None:
    """As a person does."""
    namespace.delete("pods", pod["metadata"]["name"])


def delete_at_once(namespace: Namespace, pod: Document) -> None:
    """Without a word to the node, as ``kubectl delete --force`` does."""
    namespace.delete("pods", pod["metadata"]["name"], 0)


def evict(namespace: Namespace, pod: Document) -> None:
    """As ``kubectl drain`` does."""
    name = pod["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": name}}
    namespace.create(f"pods/{name}/eviction", eviction)


def kill(namespace: Namespace, pod: Document) -> None:
    """The first process of the container, as the kernel may."""
    uid = pod["metadata"]["uid"]
    container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if uid in (text := path.read_text()) and container in text:
                inside = (path.parent / "status").read_text().partition("NSpid:")[2].splitlines()[0].split()
                if inside[-1] == "1":
                    os.kill(int(path.parent.name), signal.SIGKILL)
        except OSError:
            continue


DISTURBANCES: dict[str, Callable[[Namespace, Document], None]] = {
    "deleted": delete,
    "deleted_at_once": delete_at_once,
    "evicted": evict,
    "killed": kill,
}


def test_pods_that_others_end(pod_torc: PodTorc) -> None:
    """Each is told as what it was; what the cluster does costs no retry, and the job runs again."""
    jobs = [{"name": name, "command": f"{ONCE}{FIRST_TIME}exec sleep 300; true"} for name in DISTURBANCES]
    pod_torc.write("w.yaml", {"name": "w", "jobs": jobs})
    running = pod_torc.start("run", "w.yaml", *shared(pod_torc), "--grace-s", 3)
    for name, disturb in DISTURBANCES.items():
        disturb(pod_torc.namespace, begun_pod(pod_torc, name))
    stdout, stderr = running.communicate(timeout=240)
    first = {each["job_name"]: each for each in results_by_name(pod_torc) if each["attempt_id"] == 1}
    classes = {name: each["exit_class"] for name, each in first.items()}
    expected = {"deleted": "evicted", "deleted_at_once": "evicted", "evicted": "evicted", "killed": "signaled"}
    assert classes == expected, stdout + stderr
    ended = ended_jobs(pod_torc)
    assert {name: job.status for name, job in ended.items()} == {
        name: "failed" if name == "killed" else "completed" for name in DISTURBANCES
    }
    assert pod_torc.namespace.left() == {}


def results_by_name(torc: PodTorc) -> list[dict[str, Any]]:
    """Return all results, each with the name of its job."""
    jobs = torc.json("jobs", "list", 1, "--limit", 10_000)["jobs"]
    names = {job["id"]: job["name"] for job in jobs}
    return [{**each, "job_name": names[each["job_id"]]} for each in all_results(torc)]


def sweep(count: int, command: str) -> dict[str, Any]:
    """Return a workflow of this many jobs, with the exit codes 0 to 4 in turn."""
    job = {"name": "j{i}", "command": f"{ONCE}{command}; exit $(( {{i}} % 5 ))", "parameters": {"i": f"1:{count}"}}
    return {"name": "sweep", "jobs": [job]}


def check_sweep(torc: PodTorc, count: int) -> None:
    """Check that each job ran once and ended with its exit code, and that nothing is left."""
    assert {name: job.code for name, job in ended_jobs(torc).items()} == {f"j{i}": i % 5 for i in range(1, count + 1)}
    assert marks(torc) == Counter({f"j{i}": 1 for i in range(1, count + 1)})
    assert len(all_results(torc)) == count
    assert torc.namespace.left() == {}


def test_a_runner_that_is_killed(pod_torc: PodTorc) -> None:
    """The next one adopts its pods: each job runs once, and its output is whole."""
    command = "for n in 1 2 3 4 5 6 7 8; do echo line $n; sleep 1; done"
    pod_torc.write("w.yaml", sweep(30, command))
    options = [*shared(pod_torc), "--max-parallel-jobs", 10]
    first = pod_torc.start("run", "w.yaml", *options)
    eventually(lambda: len(marks(pod_torc)) >= 6, "jobs begin")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    let_pass(3)
    pod_torc("run", 1, *options, code=1)
    check_sweep(pod_torc, 30)
    for each in pod_torc.json("reports", "results", 1, "--all-runs")["results"]:
        assert (pod_torc.folder / each["job_stdout"]).read_text().split("\n")[:8] == [f"line {n}" for n in range(1, 9)]


def test_an_api_server_that_is_away(quiet_torc: PodTorc) -> None:
    """For a minute: pods go on, no attempt fails, and none is started twice."""
    quiet_torc.write("w.yaml", sweep(40, "sleep 3"))
    running = quiet_torc.start("run", "w.yaml", *shared(quiet_torc), "--max-parallel-jobs", 8)
    eventually(lambda: len(marks(quiet_torc)) >= 6, "jobs begin")
    script("stop", "kube-apiserver")
    try:
        let_pass(60)
        assert running.poll() is None
    finally:
        script("start", "kube-apiserver")
    stdout, stderr = running.communicate(timeout=300)
    assert running.returncode == 1, stdout + stderr
    check_sweep(quiet_torc, 40)


def test_an_api_server_that_is_away_when_the_next_run_begins(quiet_torc: PodTorc) -> None:
    """That run takes nothing over and says why; the one after it adopts the pods, and each job has run once."""
    quiet_torc.write("w.yaml", sweep(6, "sleep 5"))
    options = shared(quiet_torc)
    first = quiet_torc.start("run", "w.yaml", *options)
    eventually(lambda: len(marks(quiet_torc)) >= 2, "jobs begin")
    first.kill()
    first.communicate()
    script("stop", "kube-apiserver")
    try:
        refused = quiet_torc.run("run", 1, *options)
        assert refused.returncode != 0
        assert "cluster" in refused.stderr, refused.stdout + refused.stderr
        assert "Traceback" not in refused.stderr
    finally:
        script("start", "kube-apiserver")
    quiet_torc("run", 1, *options, code=1)
    check_sweep(quiet_torc, 6)


@contextmanager
def second_node() -> Iterator[str]:
    """Have a second node; yield its name."""
    script("node2")
    try:
        yield "127.0.0.2"
    finally:
        script("node2-down")


@pytest.mark.parametrize("sees_nodes", [False, True])
def test_a_node_that_is_lost(quiet_torc: PodTorc, *, sees_nodes: bool) -> None:
    """Its job ends as lost with its node, runs again on the other node, and uses no retry."""
    command = f"{ONCE}{FIRST_TIME}exec sleep 1000; true"
    quiet_torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": command}]})
    with quiet_torc.namespace.seeing_nodes(granted=sees_nodes), second_node() as node:
        kubectl("cordon", "127.0.0.1")
        try:
            running = quiet_torc.start("run", "w.yaml", *shared(quiet_torc), "--lost-after-s", 10)
            begun_pod(quiet_torc, "a")  # the node has reported it, too
        finally:
            kubectl("uncordon", "127.0.0.1")
        script("stop", "kubelet2")
        stdout, stderr = running.communicate(timeout=300)
        assert running.returncode == 0, stdout + stderr
        first, second = (each["observation"] for each in all_results(quiet_torc))
        assert (first["raw"]["node"], second["raw"]["node"]) == (node, "127.0.0.1")
        assert all_results(quiet_torc)[0]["exit_class"] == "node_failure"
        assert quiet_torc.namespace.left() == {}


def test_a_node_that_is_lost_before_it_reports_the_pod(quiet_torc: PodTorc) -> None:
    """The pod never begins there: its attempt ends with its node, also without the right to see nodes."""
    quiet_torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": "true"}]})
    with second_node() as node:
        kubectl("cordon", "127.0.0.1")
        try:
            script("stop", "kubelet2")
            running = quiet_torc.start("run", "w.yaml", *shared(quiet_torc), "--lost-after-s", 10)
            pods = quiet_torc.namespace.pods
            eventually(lambda: [pod for pod in pods().values() if pod["spec"].get("nodeName") == node], "it is bound")
        finally:
            kubectl("uncordon", "127.0.0.1")
        stdout, stderr = running.communicate(timeout=120)
        assert running.returncode == 0, stdout + stderr
        assert [each["exit_class"] for each in all_results(quiet_torc)] == ["node_failure", "success"]
        assert [each["observation"]["raw"]["node"] for each in all_results(quiet_torc)] == [node, "127.0.0.1"]
        assert quiet_torc.namespace.left() == {}


def test_a_node_that_is_drained(quiet_torc: PodTorc) -> None:
    """Its job is evicted, waits for room, and completes when the node takes pods again."""
    command = f"{ONCE}{FIRST_TIME}exec sleep 1000; true"
    quiet_torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": command}]})
    running = quiet_torc.start("run", "w.yaml", *shared(quiet_torc), "--grace-s", 3)
    eventually(lambda: marks(quiet_torc)["a"], "the job begins")
    try:
        kubectl("drain", "127.0.0.1", "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s")
        eventually(lambda: "Unschedulable" in quiet_torc.run("explain", 1).stdout, "the job waits for a node")
    finally:
        kubectl("uncordon", "127.0.0.1")
    stdout, stderr = running.communicate(timeout=240)
    assert running.returncode == 0, stdout + stderr
    assert [each["exit_class"] for each in all_results(quiet_torc)] == ["evicted", "success"]


@contextmanager
def priority_classes(namespace: Namespace, *values: int) -> Iterator[list[str]]:
    """Have priority classes of these values; yield their names."""
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    names = [f"{namespace.name}-{value}" for value in values]
    for name, value in zip(names, values, strict=True):
        namespace.admin.call("POST", path, {"metadata": {"name": name}, "value": value})
    try:
        yield names
    finally:
        for name in names:
            namespace.admin.call("DELETE", f"{path}/{name}")


def test_a_job_that_is_preempted(quiet_torc: PodTorc) -> None:
    """A pod of higher priority takes its place: the job ends as preempted, waits, runs again, and uses no retry."""
    namespace = quiet_torc.namespace
    requirements = [{"name": "large", "num_cpus": 1, "memory": "50m", "runtime": "PT30M"}]
    command = f"{ONCE}{FIRST_TIME}exec sleep 1000; true"
    job: Document = {"name": "a", "command": command, "resource_requirements": "large"}
    with priority_classes(namespace, 100, 1000) as (low, high):
        job |= {"executor_options": {"k8s": {"priority_class": low}}}
        quiet_torc.write("w.yaml", {"name": "w", "jobs": [job], "resource_requirements": requirements})
        running = quiet_torc.start("run", "w.yaml", *shared(quiet_torc), "--grace-s", 3)
        eventually(lambda: marks(quiet_torc)["a"], "the job begins")
        resources: Any = {"requests": {"cpu": "1500m"}}
        container: Document = {"name": "main", "image": BUSYBOX, "command": ["sleep", "20"], "resources": resources}
        spec = {"restartPolicy": "Never", "priorityClassName": high, "containers": [container]}
        namespace.create("pods", {"metadata": {"name": "urgent"}, "spec": spec})
        stdout, stderr = running.communicate(timeout=240)
        assert running.returncode == 0, stdout + stderr
    assert [each["exit_class"] for each in all_results(quiet_torc)] == ["preempted", "success"]
