"""What needs the API of a cluster and no node: rights, refusals, removal, and statuses that the test writes."""

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest
from k8s_cluster import ACCOUNT, BUSYBOX, ApiAnswer, Document, Namespace, PodTorc, by_pods, eventually
from run_results import EndedJob, ended_jobs, listed

pytestmark = pytest.mark.e2e

NOWHERE = {"apiVersion": "v1", "kind": "Pod", "spec": {"schedulerName": "of-the-tests"}}
"""Template of pods that no scheduler gives a node, so that the test alone writes their status."""


def write_spec(torc: PodTorc, *jobs: str) -> None:
    """Write a spec with these jobs, whose pods get no node."""
    torc.write("nowhere.json", NOWHERE)
    torc.write("w.yaml", {"name": "w", "jobs": [{"name": name, "command": "true"} for name in jobs]})


def nowhere(*options: str | int) -> list[str | int]:
    """Return the words that follow ``torc run SPEC`` for such a spec."""
    return by_pods(BUSYBOX, "--pod-template", "nowhere.json", *options)


def job_pods(namespace: Namespace) -> dict[str, Document]:
    """Return the pods by the names of their jobs."""
    noted = [(pod["metadata"].get("annotations", {}), pod) for pod in namespace.pods().values()]
    return {notes["torc-framework/job-name"]: pod for notes, pod in noted if notes}


def test_the_rights_are_checked(api_torc: PodTorc) -> None:
    """The account of the manifests has all that is required; without its role the missing rights are named."""
    assert api_torc.json("k8s", "check")
    api_torc.namespace.delete("rolebindings", ACCOUNT)

    def names_pods() -> bool:
        done = api_torc.run("k8s", "check")
        return done.returncode != 0 and "pods" in done.stdout

    eventually(names_pods)


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda namespace: namespace.delete("rolebindings", ACCOUNT), ("may not create", "torc k8s manifests role")),
        (lambda namespace: namespace.write_kubeconfig("no.such.token"), ("refuses the credentials", "--context")),
        (lambda namespace: namespace.kubeconfig.write_text("{"), ("kubeconfig",)),
    ],
    ids=["no rights", "wrong token", "broken kubeconfig"],
)
def test_a_refusal_is_one_message(
    api_torc: PodTorc, break_it: Callable[[Namespace], None], words: tuple[str, ...]
) -> None:
    """The command fails at once and says why; nothing is created."""
    write_spec(api_torc, "a")
    break_it(api_torc.namespace)

    def refused() -> bool:
        done = api_torc.run("run", "w.yaml", *nowhere())
        return done.returncode != 0 and all(word.lower() in done.stderr.lower() for word in words)

    eventually(refused, lambda: api_torc.run("run", "w.yaml", *nowhere()).stderr, patience_s=20)
    known = len(api_torc.json("workflows", "list"))
    assert "Traceback" not in api_torc.run("run", "w.yaml", *nowhere()).stderr
    assert len(api_torc.json("workflows", "list")) == known


def test_the_next_command_has_the_options_of_the_run(api_torc: PodTorc) -> None:
    """Without --image and --namespace it would fail the jobs, or look for them elsewhere."""
    write_spec(api_torc, "a")
    options = nowhere("--namespace", api_torc.namespace.name)
    running = api_torc.start("run", "w.yaml", *options)
    eventually(lambda: len(job_pods(api_torc.namespace)) == 1)
    running.send_signal(signal.SIGINT)
    printed = running.communicate(timeout=60)[0]
    command = f"torc run 1 {' '.join(map(str, options))}"
    assert f"Next: {command}\n" in printed
    assert api_torc.json("explain", 1)["next"]["command"] == command


def test_a_pod_without_room_ends_after_a_limit(api_torc: PodTorc) -> None:
    """It says what it waited for, in the words of the cluster."""
    api_torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": "true"}]})
    options = by_pods(BUSYBOX, "--node-selector", "no-such=label", "--unschedulable-limit-s", 2)
    api_torc("run", "w.yaml", *options, code=1)
    job = ended_jobs(api_torc)["a"]
    assert job.exit_class == "launch_failure"
    assert "Unschedulable" in f"{job.reason} {job.observation}"
    assert api_torc.namespace.left() == {}


@pytest.mark.parametrize("count", [2, 60])
def test_an_interrupted_run_leaves_nothing(api_torc: PodTorc, count: int) -> None:
    """Many pods are created in portions, and deleted together."""
    write_spec(api_torc, *(f"j{number}" for number in range(count)))
    running = api_torc.start("run", "w.yaml", *nowhere())
    eventually(lambda: len(job_pods(api_torc.namespace)) == count)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    eventually(lambda: api_torc.namespace.left() == {}, api_torc.namespace.left)


def test_what_a_killed_run_left_is_for_the_next(api_torc: PodTorc) -> None:
    """`torc k8s clean` leaves the pods that the next run continues; when that ends, nothing is left."""
    write_spec(api_torc, "a", "b")
    running = api_torc.start("run", "w.yaml", *nowhere())
    eventually(lambda: len(job_pods(api_torc.namespace)) == 2)
    names = {*api_torc.namespace.pods()}
    running.kill()
    running.communicate()
    api_torc("k8s", "clean", 1)
    assert {*api_torc.namespace.pods()} == names
    following = api_torc.start("run", 1, *nowhere())
    eventually(lambda: len(listed(api_torc, "compute-nodes", 1)) == 2, "the next runner works")
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=120)
    eventually(lambda: api_torc.namespace.left() == {}, api_torc.namespace.left)


def test_a_late_request_of_a_killed_run_is_refused(api_torc: PodTorc) -> None:
    """The next runner takes the names of the pods that it does not find, before it begins their jobs again."""
    namespace = api_torc.namespace
    write_spec(api_torc, "a", "b")
    running = api_torc.start("run", "w.yaml", *nowhere())
    eventually(lambda: len(job_pods(namespace)) == 2)
    running.kill()
    running.communicate()
    late = job_pods(namespace)["b"]
    name = late["metadata"]["name"]
    namespace.patch("pods", name, {"metadata": {"finalizers": None}})
    namespace.delete("pods", name, 0)  # as if its request were still on its way
    following = api_torc.start("run", 1, *nowhere())
    metadata = {each: late["metadata"][each] for each in ("name", "labels", "annotations")}
    eventually(
        lambda: "torc-fence" in namespace.pods().get(name, late)["metadata"]["labels"],
        "the name is taken",
        patience_s=30,
    )
    with pytest.raises(ApiAnswer, match="AlreadyExists"):
        namespace.create("pods", {"metadata": metadata, "spec": NOWHERE["spec"] | late["spec"]})
    eventually(lambda: job_pods(namespace).get("b"), "its job is begun again")
    again = job_pods(namespace)["b"]["metadata"]
    assert again["labels"]["torc-scope"] != late["metadata"]["labels"]["torc-scope"]
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=120)
    eventually(lambda: namespace.left() == {}, namespace.left)


def test_pods_hold_no_secrets(api_torc: PodTorc) -> None:
    """What gives access to the server is in a Secret, and in no pod; pods get no token of the cluster."""
    write_spec(api_torc, "a")
    running = api_torc.start("run", "w.yaml", *nowhere(), env={"TORC_PASSWORD": "very-secret-word"})
    eventually(lambda: job_pods(api_torc.namespace))
    (pod,) = api_torc.namespace.pods().values()
    shown = [pod, *api_torc.namespace.all("configmaps"), *api_torc.namespace.all("events")]
    assert "very-secret-word" not in json.dumps(shown)
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "torc"
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)


def terminated(code: int, reason: str) -> list[Document]:
    """Return the status of an ended container."""
    times = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:05Z"}
    state = {"terminated": {"exitCode": code, "reason": reason, **times}}
    return [{"name": "main", "image": BUSYBOX, "imageID": "", "ready": False, "restartCount": 0, "state": state}]


GOOD: Document = {"phase": "Succeeded", "containerStatuses": terminated(0, "Completed")}
STATUSES: dict[str, tuple[Document, str]] = {
    "evicted": (
        {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."},
        "evicted",
    ),
    "node_shutdown": ({"phase": "Failed", "reason": "NodeShutdown", "message": "Node is shutting down"}, "evicted"),
    "deadline": ({"phase": "Failed", "reason": "DeadlineExceeded", "message": "was active too long"}, "timeout"),
    "oom": ({"phase": "Failed", "containerStatuses": terminated(137, "OOMKilled")}, "oom"),
    "start": ({"phase": "Failed", "containerStatuses": terminated(128, "StartError")}, "launch_failure"),
    "unknown": ({"phase": "Failed", "containerStatuses": terminated(137, "ContainerStatusUnknown")}, "node_failure"),
    "preempted": (
        {
            "phase": "Failed",
            "containerStatuses": terminated(143, "Error"),
            "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
        },
        "preempted",
    ),
}
"""Status of a pod as the cluster's parts write it (also of versions newer than this one), and the class."""


def test_statuses_name_the_class(api_torc: PodTorc) -> None:
    """Of the first attempt; those that cost no retry are repeated, and then succeed."""
    namespace = api_torc.namespace
    write_spec(api_torc, *STATUSES)
    running = api_torc.start("run", "w.yaml", *nowhere("--log-wait-s", 0))
    eventually(lambda: len(job_pods(namespace)) == len(STATUSES))
    done: set[str] = set()

    def finished() -> bool:
        for name, pod in namespace.pods().items():
            if name in done:
                continue
            job = pod["metadata"]["annotations"]["torc-framework/job-name"]
            first = pod["metadata"]["labels"]["torc-attempt"] == "1"
            status = (
                STATUSES[job][0] if first else {"phase": "Succeeded", "containerStatuses": terminated(0, "Completed")}
            )
            namespace.patch("pods", f"{name}/status", {"status": status})
            done.add(name)
        return running.poll() is not None

    eventually(finished)
    stdout, stderr = running.communicate()
    results = api_torc.json("results", "list", 1, "--all-runs")["results"]
    names = {job["id"]: job["name"] for job in api_torc.json("jobs", "list", 1)["jobs"]}
    first: dict[str, Any] = {names[each["job_id"]]: each["exit_class"] for each in results if each["attempt_id"] == 1}
    assert first == {name: row[1] for name, row in STATUSES.items()}, stdout + stderr
    ended: dict[str, EndedJob] = ended_jobs(api_torc)
    repeated = {name for name, job in ended.items() if job.attempts == 2 and job.status == "completed"}
    assert repeated == {"evicted", "node_shutdown", "unknown", "preempted"}
    assert namespace.left() == {}
