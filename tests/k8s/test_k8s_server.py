"""The manifests of torc-server with PostgreSQL, applied, and used by worker pods."""

import os
import secrets
import signal
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from k8s_cluster import MANIFESTS, Document, Namespace, PodTorc, eventually, kubectl
from k8s_images import postgres_image, torc_image
from programs import BIN

PASSWORD = "lab-pass-of-admin"


def volume(namespace: Namespace, folder: Path) -> str:
    """Create the volume that the claim of the database gets: the cluster has no provisioner. Return its name."""
    folder.mkdir()
    folder.chmod(0o777)
    name = f"{namespace.name}-data"
    claim = {"namespace": namespace.name, "name": "data-torc-postgres-0"}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": str(folder)},
        "claimRef": claim,
        "persistentVolumeReclaimPolicy": "Retain",
    }
    namespace.admin.call("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})
    return name


def manifests(namespace: Namespace, folder: str) -> list[Document]:
    """Return the objects that ``kubectl kustomize`` makes of a folder of manifests, with the images of the tests.

    The cluster is older than ``policy/v1`` of disruption budgets (1.21).
    """
    text = kubectl("kustomize", str(MANIFESTS / folder))
    text = text.replace("policy/v1\n", "policy/v1beta1\n").replace("namespace: default", f"namespace: {namespace.name}")
    text = text.replace("image: torc:0.1.0", f"image: {torc_image()}")
    text = text.replace("image: postgres:16", f"image: {postgres_image()}")
    return list(yaml.safe_load_all(text))


def apply(folder: Path, objects: list[Document]) -> None:
    """Create objects as a user does."""
    path = folder / "objects.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    kubectl("apply", "-f", str(path))


def ready_pods(namespace: Namespace, app: str) -> list[Document]:
    """Return the pods of an application whose probes succeed."""
    pods = namespace.pods(f"app.kubernetes.io/name={app}").values()
    return [pod for pod in pods if {"type": "Ready", "status": "True"}.items() <= _ready(pod).items()]


def _ready(pod: Document) -> Document:
    found = (each for each in pod["status"].get("conditions", ()) if each["type"] == "Ready")
    return {key: value for each in found for key, value in each.items() if key in ("type", "status")}


@pytest.fixture
def namespace(quiet_namespace: Namespace) -> Namespace:
    """A namespace of a cluster that no other test uses."""
    return quiet_namespace


@pytest.fixture
def server(namespace: Namespace, tmp_path: Path, work: Path) -> Iterator[PodTorc]:
    """torc on this machine, with two servers and PostgreSQL in pods.

    With a worker they request 1.75 CPUs, so a group of two pods in another test could wait for these, and they for it.
    """
    users = tmp_path / "users"
    htpasswd = [
        str(BIN / "torc-htpasswd"),
        "add",
        "--create",
        "--password",
        PASSWORD,
        "--cost",
        "4",
        str(users),
        "admin",
    ]
    subprocess.run(htpasswd, check=True, capture_output=True)
    password = f"--from-literal=database-password={secrets.token_hex(8)}"
    kubectl("-n", namespace.name, "create", "secret", "generic", "torc-server", password, f"--from-file={users}")
    name = volume(namespace, tmp_path / "database")
    try:
        objects = manifests(namespace, "server")
        servers = next(each for each in objects if each["kind"] == "Deployment")
        apply(tmp_path, [each for each in objects if each is not servers])
        (database,) = eventually(lambda: ready_pods(namespace, "torc-postgres"))
        alias = {"ip": database["status"]["podIP"], "hostnames": ["torc-postgres"]}  # the cluster has no DNS
        servers["spec"]["template"]["spec"]["hostAliases"] = [alias]
        apply(tmp_path, [servers])
        eventually(lambda: len(ready_pods(namespace, "torc-server")) >= 2)
        url = f"http://{ready_pods(namespace, 'torc-server')[0]['status']['podIP']}:8080/torc-service/v1"
        torc = PodTorc(namespace, work, url, tmp_path / "home")
        torc.env |= {"TORC_USERNAME": "admin", "TORC_PASSWORD": PASSWORD}
        yield torc
    finally:
        namespace.admin.call("DELETE", f"/api/v1/persistentvolumes/{name}")


def test_servers_in_pods_answer(server: PodTorc, namespace: Namespace) -> None:
    """They require a password; the budget lets one of two go."""
    server("ping")
    denied = server.run("workflows", "list", env={"TORC_PASSWORD": "wrong"})
    assert denied.returncode != 0
    budget = namespace.admin.call(
        "GET", f"/apis/policy/v1beta1/namespaces/{namespace.name}/poddisruptionbudgets/torc-server"
    )
    assert all(
        pod["status"]["containerStatuses"][0]["restartCount"] == 0 for pod in ready_pods(namespace, "torc-server")
    )
    assert (budget["status"]["expectedPods"], budget["status"]["disruptionsAllowed"]) == (2, 1)
    check_monitor(namespace)


def check_monitor(namespace: Namespace) -> None:
    """Check that the ServiceMonitor names a Service, a port and a path whose endpoints answer with metrics.

    It is not applied: an API server of Kubernetes 1.20 that was built with Go 1.18 or newer ends with a memory fault
    when it reads a custom resource (github.com/modern-go/reflect2 1.0.1).
    """
    (monitor,) = manifests(namespace, "monitoring")
    assert (monitor["apiVersion"], monitor["kind"]) == ("monitoring.coreos.com/v1", "ServiceMonitor")
    assert monitor["metadata"]["namespace"] == namespace.name  # without a namespaceSelector it is that of the Service
    wanted = ",".join(f"{name}={value}" for name, value in monitor["spec"]["selector"]["matchLabels"].items())
    (service,) = namespace.all("services", wanted)
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    subsets = namespace.get("endpoints", service["metadata"]["name"])["subsets"]
    found = [
        f"http://{address['ip']}:{port['port']}{endpoint['path']}"
        for subset in subsets
        for port in subset["ports"]
        for address in subset["addresses"]
        if port["name"] == endpoint["port"]
    ]
    assert len(found) == 2
    for url in found:
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert b"torc_" in answer.read()


SPEC = """
name: many
jobs:
  - {name: "job_{i}", command: "echo out-{i} >> $HOME/log && test -n \\"$TORC_API_URL\\"", parameters: {i: "1:20"}}
actions:
  - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler_type: k8s, num_allocations: 2}
"""


def test_worker_pods_run_a_workflow_against_it(server: PodTorc, namespace: Namespace) -> None:
    """An action of the spec requests them; they end when no job is left, and nothing secret is in their pods."""
    options = {"TORC_EXECUTOR__K8S__WORKER_IMAGE": torc_image(), "TORC_EXECUTOR__K8S__WORKER_MEMORY": "512m"}
    server.env |= options
    server.write("many.yaml", SPEC)
    done = server.json("submit", "many.yaml")
    assert len(done["allocations"]) == 2
    pods = namespace.pods("torc-request")
    assert {each["allocation_id"] for each in done["allocations"]} == set(pods)
    assert PASSWORD not in str(pods)
    wf = done["workflow_id"]
    eventually(lambda: statuses(server, wf) == {"completed": 20})
    eventually(lambda: {pod["status"]["phase"] for pod in namespace.pods("torc-request").values()} == {"Succeeded"})
    nodes = server.json("scheduled-compute-nodes", "list", wf)
    assert {each["status"] for each in nodes["scheduled_compute_nodes"]} == {"complete"}
    check_clean(server, namespace, wf)


def check_clean(torc: PodTorc, namespace: Namespace, workflow_id: int) -> None:
    """Check that ``torc k8s clean`` shows and removes the worker pods that have ended, and keeps them if told to."""
    ended = sorted(namespace.pods("torc-request"))
    assert ended
    kept = torc.run("k8s", "clean", workflow_id, env={"TORC_EXECUTOR__K8S__KEEP_PODS": "all"})
    assert "have left nothing" in kept.stdout
    assert torc.json("k8s", "clean", workflow_id, "--dry-run")["workers"] == ended
    assert sorted(namespace.pods("torc-request")) == ended
    said = torc("k8s", "clean", workflow_id)
    assert all(f"worker pod {name}" in said for name in ended)
    assert namespace.pods("torc-request") == {}


def statuses(torc: PodTorc, workflow_id: int) -> dict[str, int]:
    """Return how many jobs have each status."""
    jobs = torc.json("jobs", "list", workflow_id)["jobs"]
    return dict(Counter(each["status"] for each in jobs))


SLOW = """
name: slow
jobs:
  - {name: "job_{i}", command: "test -e $HOME/again || sleep 600", parameters: {i: "1:2"}}
"""


def workers(server: PodTorc, workflow_id: int, *options: str) -> list[str]:
    """Start worker pods; return their names."""
    done = server.json("k8s", "schedule-nodes", workflow_id, "--image", torc_image(), "--memory", "512m", *options)
    return [each["allocation_id"] for each in done["allocations"]]


def runner_of(pod: str) -> int:
    """Return the process id of a worker's runner, which is a process of this machine."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"TORC_ALLOCATION=k8s:{pod}\0".encode() not in (process / "environ").read_bytes():
                continue
            ids = next(line for line in (process / "status").read_text().splitlines() if line.startswith("NSpid"))
            if ids.split()[-1] == "1":
                return int(process.name)
    raise AssertionError(f"no process of {pod}")


def running(torc: PodTorc, workflow_id: int, count: int) -> bool:
    """Return whether so many jobs run."""
    return statuses(torc, workflow_id).get("running") == count


def test_workers_that_are_deleted_lost_or_canceled(server: PodTorc, namespace: Namespace) -> None:
    """What they held goes on in the next worker, or is canceled with the workflow, and no pod stays."""
    server.write("slow.yaml", SLOW)
    wf = server.json("workflows", "create", "slow.yaml")["workflow_id"]
    server("workflows", "initialize", wf)

    (first,) = workers(server, wf, "--max-parallel-jobs", "2")
    eventually(lambda: running(server, wf, 2))
    assert server.json("k8s", "clean", wf, "--kept")["workers"] == []
    namespace.delete("pods", first)  # as a drain does it: the runner has time to report
    eventually(lambda: first not in namespace.pods())
    assert statuses(server, wf).get("running") is None

    (second,) = workers(server, wf, "--max-parallel-jobs", "2")
    eventually(lambda: running(server, wf, 2))
    os.kill(runner_of(second), signal.SIGKILL)  # it reports nothing
    found = eventually(lambda: server.json("workflows", "sync-status", wf)["jobs"])
    assert len(found) == 2

    server("workflows", "reset-status", wf, "--failed-only", "--reinitialize", "--no-prompts")
    (third,) = workers(server, wf, "--max-parallel-jobs", "2")
    server("workflows", "cancel", wf)
    eventually(lambda: third in server.json("k8s", "clean", wf)["workers"] or third not in namespace.pods())
    assert namespace.pods("torc-request") == {}
    eventually(lambda: not any(name.startswith("torc-worker") for name in namespace.left().get("secrets", ())))
