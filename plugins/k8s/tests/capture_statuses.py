"""Writes the files of the folder ``statuses``: pods of a real cluster, as its API returned them at their ends.

Run it while the cluster of ``tests/k8s/cluster.sh`` is up, after a change of the pods or for another version of
Kubernetes::

    .venv/bin/python plugins/k8s/tests/capture_statuses.py [NAME ...]

Each scenario is a function with the name of its file. It makes pods as torc makes them and returns the pod to be
written. The whole takes about three minutes, most of which scenarios wait beside each other.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[3] / "tests" / "helpers"))

from k8s_cluster import BUSYBOX, Administrator, ApiAnswer
from torc_k8s.pods.merge import merge
from torc_k8s.pods.pod_options import PodOptions, Volume
from torc_k8s.pods.pod_spec import PodPlan, build_pod

from torc_framework.api import Attempt, AttemptKey, Resources

FOLDER: Final = Path(__file__).with_name("statuses")
NAMESPACE: Final = "torc-statuses"
MIB: Final = 1024**2
Pod = dict[str, Any]
SCENARIOS: Final[dict[str, Callable[["Scenario"], Pod]]] = {}
HANDLER: Final = "trap 'exit 7' TERM; while :; do sleep 0.1; done"
EAT: Final = "dd if=/dev/zero of=/dev/null bs=200M count=1"
"""Uses more memory than the limit of 32 MiB."""


class Scenario:
    """One pod, or several, that are made for one file.

    Args:
        admin: The API.
        number: Number of the scenario, which is the id of its job.
        name: Its name.
    """

    def __init__(self, admin: Administrator, number: int, name: str) -> None:
        self.admin, self.number, self.name = admin, number, name
        self.made: list[str] = []

    def make(
        self,
        command: str,
        patch: Mapping[str, Any] | None = None,
        *,
        memory: int = 0,
        plain: bool = False,
        **options: Any,
    ) -> str:
        """Create a pod, and return its name.

        Args:
            command: The job's command.
            patch: Further fields of the spec; ``containers`` are merged by name.
            memory: Memory in MiB; 0 is no limit.
            plain: The container runs the command itself, without torc's program.
            options: Options of the pod.
        """
        key = AttemptKey(self.number, len(self.made) + 1)
        resources = Resources(memory_bytes=memory * MIB, runtime_s=600.0) if memory else Resources()
        attempt = Attempt(key, self.name, command, {}, "/out/o", "/out/e", "/work", resources)
        wanted = PodOptions(**{"image": BUSYBOX, "grace_s": 4, "cpu_limit": "none", **options})
        pod = build_pod(
            PodPlan(
                scope="5ca1ab1e", workflow_id=1, namespace=NAMESPACE, attempt=attempt, options=wanted, log_wait_s=0.0
            )
        )
        pod["spec"]["containers"][0].get("resources", {}).get("requests", {}).pop("cpu", None)
        if plain:
            pod["spec"]["containers"][0]["command"] = ["/bin/sh", "-c", command.replace("$", "$$")]
        pod["spec"] = merge(pod["spec"], patch or {})
        name: str = pod["metadata"]["name"]
        self.admin.call("POST", self.path(), pod)
        self.made.append(name)
        return name

    def path(self, name: str = "", kind: str = "pods") -> str:
        return f"/api/v1/namespaces/{NAMESPACE}/{kind}" + (f"/{name}" if name else "")

    def get(self, name: str) -> Pod:
        return self.admin.call("GET", self.path(name))

    def until(self, name: str, done: Callable[[Pod], Any], patience_s: float = 150.0) -> Pod:
        """Return the pod when ``done`` is true of it."""
        until = time.monotonic() + patience_s
        while True:
            pod = self.get(name)
            if done(pod):
                return pod
            if time.monotonic() > until:
                print(f"{self.name}: not seen: {json.dumps(pod['status'])[:2000]}", file=sys.stderr)
                return pod
            time.sleep(0.1)

    def delete(self, name: str, grace_s: int | None = None) -> None:
        body = {"propagationPolicy": "Background"} | ({} if grace_s is None else {"gracePeriodSeconds": grace_s})
        self.admin.call("DELETE", self.path(name), body)

    def events(self, name: str) -> list[dict[str, Any]]:
        found = self.admin.call("GET", self.path(kind="events") + f"?fieldSelector=involvedObject.name={name}")["items"]
        return [
            {field: each.get(field) for field in ("reason", "message", "type", "count", "lastTimestamp", "source")}
            for each in found
        ]

    def remove(self) -> None:
        for name in self.made:
            with suppress(ApiAnswer):
                self.admin.patch(self.path(name), {"metadata": {"finalizers": None}})
                self.delete(name, 0)


def scenario(function: Callable[[Scenario], Pod]) -> Callable[[Scenario], Pod]:
    """Take a function as a scenario."""
    SCENARIOS[function.__name__] = function
    return function


def main_of(pod: Pod) -> dict[str, Any]:
    found = pod["status"].get("containerStatuses") or [{}]
    return next((each for each in found if each.get("name") == "main"), {})


def ready_of(pod: Pod) -> dict[str, Any]:
    return next(each for each in pod["status"]["conditions"] if each["type"] == "Ready")


def is_running(pod: Pod) -> bool:
    return "running" in main_of(pod).get("state", {})


def is_over(pod: Pod) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def waits(reason: str) -> Callable[[Pod], bool]:
    return lambda pod: main_of(pod).get("state", {}).get("waiting", {}).get("reason") == reason


# --- ends -------------------------------------------------------------------------------------------


def ends(command: str, **how: Any) -> Callable[[Scenario], Pod]:
    """Return a scenario: a pod that ends by itself."""
    return lambda lab: lab.until(lab.make(command, **how), is_over)


_ENDS: Final[Mapping[str, Callable[[Scenario], Pod]]] = {
    "exit_0": ends("true"),
    "exit_13": ends("exit 13"),
    "plain_exit_13": ends("exit 13", plain=True),
    "child_killed": ends("sh -c 'kill -9 $$'"),
    "job_killed": ends("kill -9 $$"),
    "segfault": ends("kill -11 $$"),
    "main_killed": ends("kill -9 $$", plain=True, patch={"shareProcessNamespace": True}),
    "main_segfault": ends("kill -11 $$", plain=True, patch={"shareProcessNamespace": True}),
    "oom_of_main": ends(f"exec {EAT}", memory=32, plain=True),
    "oom_of_job": ends(f"exec {EAT}", memory=32),
    "oom_of_child_exit_3": ends(f"{EAT}; exit 3", memory=32),
    "oom_of_child_exit_0": ends(f"{EAT}; exit 0", memory=32),
    "oom_of_child_plain_exit_0": ends(f"{EAT}; exit 0", memory=32, plain=True),
    "pod_deadline": ends("sleep 60", patch={"activeDeadlineSeconds": 4}),
    "empty_dir_full": ends(
        "dd if=/dev/zero of=/data/x bs=1M count=30; sleep 300",
        volumes=[Volume(mount="/data", empty="8Mi")],
    ),
    "command_not_found": ends("no-such-program"),
    "init_fails": ends(
        "true", patch={"initContainers": [{"name": "prepare", "image": BUSYBOX, "command": ["sh", "-c", "exit 1"]}]}
    ),
    "sidecar_fails": ends(
        "sleep 2", patch={"containers": [{"name": "side", "image": BUSYBOX, "command": ["sh", "-c", "exit 4"]}]}
    ),
    "refused_by_kubelet": ends(
        "true",
        patch={"nodeName": "127.0.0.1", "containers": [{"name": "main", "resources": {"requests": {"cpu": "99"}}}]},
    ),
}
"""Scenarios of pods that end by themselves."""


@scenario
def start_error(lab: Scenario) -> Pod:
    name = lab.make("true", {"containers": [{"name": "main", "command": ["/no/such/program"]}]})
    return lab.until(name, is_over)


@scenario
def sidecar_runs_on(lab: Scenario) -> Pod:
    side = {"name": "side", "image": BUSYBOX, "command": ["sh", "-c", "sleep 300"]}
    name = lab.make("exit 5", {"containers": [side]})
    return lab.until(name, lambda pod: "terminated" in main_of(pod).get("state", {}))


# --- waits ------------------------------------------------------------------------------------------


@scenario
def image_missing(lab: Scenario) -> Pod:
    return lab.until(lab.make("true", image="localhost/missing:1"), waits("ImagePullBackOff"))


@scenario
def image_being_pulled(lab: Scenario) -> Pod:
    return lab.until(lab.make("true", image="localhost/missing:2"), waits("ErrImagePull"))


@scenario
def image_never_pulled(lab: Scenario) -> Pod:
    return lab.until(lab.make("true", image="localhost/missing:1", pull_policy="Never"), waits("ErrImageNeverPull"))


@scenario
def image_name_invalid(lab: Scenario) -> Pod:
    return lab.until(lab.make("true", image="Not/An:Image:1"), waits("InvalidImageName"))


@scenario
def secret_missing(lab: Scenario) -> Pod:
    name = lab.make("true", env_from_secrets={"PASSWORD": "missing/password"})
    return lab.until(name, waits("CreateContainerConfigError"))


@scenario
def volume_missing(lab: Scenario) -> Pod:
    name = lab.make("true", volumes=[Volume(mount="/data", config_map="missing")])
    return lab.until(name, lambda _pod: any(each["reason"] == "FailedMount" for each in lab.events(name)))


@scenario
def claim_missing(lab: Scenario) -> Pod:
    name = lab.make("true", volumes=[Volume(mount="/data", claim="missing")])
    return lab.until(name, lambda pod: pod["status"].get("conditions"))


@scenario
def unschedulable(lab: Scenario) -> Pod:
    name = lab.make("true", {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100"}}}]})
    return lab.until(name, lambda pod: pod["status"].get("conditions"))


# --- deletions --------------------------------------------------------------------------------------


def deleted(lab: Scenario, command: str, grace_s: int | None = None, **how: Any) -> Pod:
    """Delete a pod that runs, and return it at its end, or after a minute."""
    name = lab.make(command, **how)
    lab.until(name, is_running)
    time.sleep(2)
    lab.delete(name, grace_s)
    return lab.until(name, lambda pod: is_over(pod) or "terminated" in main_of(pod).get("state", {}), 60)


@scenario
def deleted_with_handler(lab: Scenario) -> Pod:
    return deleted(lab, HANDLER)


@scenario
def deleted_with_handler_exit_0(lab: Scenario) -> Pod:
    return deleted(lab, HANDLER.replace("7", "0"))


@scenario
def deleted_without_handler(lab: Scenario) -> Pod:
    return deleted(lab, "trap '' TERM; sleep 300; sleep 300")


@scenario
def deleted_plain_without_handler(lab: Scenario) -> Pod:
    return deleted(lab, "exec sleep 300", plain=True)


@scenario
def deleted_with_grace_0(lab: Scenario) -> Pod:
    return deleted(lab, HANDLER, 0)


@scenario
def deleted_after_its_end(lab: Scenario) -> Pod:
    name = lab.make("true")
    lab.until(name, is_over)
    time.sleep(2)
    lab.delete(name)
    return lab.get(name)


@scenario
def deleted_without_node(lab: Scenario) -> Pod:
    name = lab.make("true", {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100"}}}]})
    lab.until(name, lambda pod: pod["status"].get("conditions"))
    lab.delete(name)
    time.sleep(3)
    return lab.get(name)


@scenario
def deleted_before_its_image(lab: Scenario) -> Pod:
    name = lab.make("true", image="localhost/missing:1")
    lab.until(name, waits("ImagePullBackOff"))
    lab.delete(name)
    return lab.until(name, is_over, 30)


@scenario
def evicted_by_api(lab: Scenario) -> Pod:
    name = lab.make(HANDLER)
    lab.until(name, is_running)
    time.sleep(2)
    body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
    lab.admin.call("POST", lab.path(name) + "/eviction", body)
    return lab.until(name, is_over, 60)


@scenario
def preempted(lab: Scenario) -> Pod:
    """A pod of priority -10 makes room for one of -5, so that no pod of another is affected."""
    for name, value in (("torc-statuses-low", -10), ("torc-statuses-high", -5)):
        with suppress(ApiAnswer):
            lab.admin.call(
                "POST",
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                {"metadata": {"name": name}, "value": value, "preemptionPolicy": "PreemptLowerPriority"},
            )
    node = lab.admin.call("GET", "/api/v1/nodes/127.0.0.1")
    memory = int(node["status"]["allocatable"]["memory"].removesuffix("Ki")) // 1024
    asks = {"containers": [{"name": "main", "resources": {"requests": {"memory": f"{memory * 6 // 10}Mi"}}}]}
    low = lab.make(HANDLER, asks, priority_class="torc-statuses-low")
    lab.until(low, is_running)
    time.sleep(2)
    lab.make("true", asks, priority_class="torc-statuses-high")
    return lab.until(low, is_over, 60)


# --- nodes ------------------------------------------------------------------------------------------


def on_silent_node(lab: Scenario, node: str, tolerated_s: int) -> str:
    """Make a node without a kubelet and a pod that runs on it as far as the API knows; return the pod's name."""
    with suppress(ApiAnswer):
        lab.admin.call(
            "POST",
            "/api/v1/nodes",
            {
                "metadata": {"name": node},
                "spec": {"unschedulable": True, "taints": [{"key": "silent", "effect": "NoSchedule"}]},
            },
        )
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    lab.admin.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [ready]}})
    tolerations = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": tolerated_s,
        }
        for key in ("not-ready", "unreachable")
    ]
    name = lab.make("sleep 600", {"nodeName": node, "tolerations": tolerations})
    running = {
        "name": "main",
        "ready": True,
        "restartCount": 0,
        "image": BUSYBOX,
        "imageID": "",
        "state": {"running": {"startedAt": now}},
    }
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": now}
        for type_ in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    status = {"phase": "Running", "startTime": now, "conditions": conditions, "containerStatuses": [running]}
    lab.admin.patch(lab.path(name) + "/status", {"status": status})
    return name


@scenario
def node_silent(lab: Scenario) -> Pod:
    name = on_silent_node(lab, "silent-a", 600)
    return lab.until(name, lambda pod: {"type": "Ready", "status": "False"}.items() <= ready_of(pod).items())


@scenario
def node_silent_and_pod_deleted(lab: Scenario) -> Pod:
    name = on_silent_node(lab, "silent-b", 5)
    return lab.until(name, lambda pod: pod["metadata"].get("deletionTimestamp"))


@scenario
def node_removed(lab: Scenario) -> Pod:
    name = on_silent_node(lab, "silent-c", 600)
    lab.admin.call("DELETE", "/api/v1/nodes/silent-c")
    return lab.until(name, lambda pod: pod["metadata"].get("deletionTimestamp"))


# --- all --------------------------------------------------------------------------------------------


def capture(admin: Administrator, number: int, name: str) -> None:
    """Run a scenario and write its file."""
    lab = Scenario(admin, number, name)
    try:
        pod = SCENARIOS[name](lab)
        pod["metadata"].pop("managedFields", None)
        text = json.dumps({"pod": pod, "events": lab.events(pod["metadata"]["name"])}, indent=1)
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(name, pod["status"].get("phase"), json.dumps(main_of(pod).get("state")))
    except (ApiAnswer, OSError, KeyError) as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        lab.remove()


def main(names: list[str]) -> None:
    """Write the files of these scenarios, or of all."""
    SCENARIOS.update(_ENDS)
    admin = Administrator()
    with suppress(ApiAnswer):
        admin.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        time.sleep(2)  # until the namespace has its default account
    FOLDER.mkdir(exist_ok=True)
    with ThreadPoolExecutor(6) as pool:
        for number, name in enumerate(names or SCENARIOS, 1):
            pool.submit(capture, admin, number, name)
    admin.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    for node in ("silent-a", "silent-b", "silent-c"):
        with suppress(ApiAnswer):
            admin.call("DELETE", f"/api/v1/nodes/{node}")
    for name in ("torc-statuses-low", "torc-statuses-high"):
        with suppress(ApiAnswer):
            admin.call("DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")


if __name__ == "__main__":
    main(sys.argv[1:])
