"""How attempts in pods end: each kind of ending of a pod, as a result of ``torc run``."""

import json
from typing import Any

import pytest
from attrs import field, frozen
from k8s_cluster import BUSYBOX, PYTHON, Namespace, PodTorc, bare_image, by_pods, eventually
from run_results import EndedJob, ended_jobs

pytestmark = pytest.mark.e2e

ENDINGS: dict[str, Any] = {
    "name": "endings",
    "resource_requirements": [{"name": "quick", "num_cpus": 1, "memory": "50m", "runtime": "PT2S"}],
    "jobs": [
        {"name": "good", "command": "true"},
        {"name": "seven", "command": "exit 7"},
        {"name": "high", "command": "exit 139"},
        {"name": "crash", "command": "kill -SEGV $$"},
        {"name": "killed", "command": "kill -KILL $$"},
        {"name": "ended", "command": "kill -TERM $$"},
        {"name": "child_killed", "command": "sh -c 'kill -9 $$'; exit $?"},
        {"name": "missing", "command": "no-such-program"},
        {"name": "not_a_program", "command": "/etc/passwd"},
        {"name": "late", "command": "exec sleep 60", "resource_requirements": "quick"},
        {"name": "left_behind", "command": "sleep 100 & exit 3"},
        {"name": "after", "command": "true", "depends_on": ["good"]},
        {"name": "never", "command": "true", "depends_on": ["seven"]},
    ],
}


def essence(job: EndedJob) -> tuple[object, ...]:
    """Return what has to be the same whichever executor ran a job."""
    seen = {name: job.observation.get(name) for name in ("exit_code", "signal", "launch_error", "stop_reason")}
    return job.status, job.code, job.exit_class, job.reason, job.attempts, seen


def test_ends_are_those_of_the_local_executor(pod_torc: PodTorc) -> None:
    pod_torc.write("w.yaml", ENDINGS)
    pod_torc("run", "w.yaml", code=1)
    pod_torc("run", "w.yaml", *by_pods(BUSYBOX), code=1)
    local, pods = ended_jobs(pod_torc, 1), ended_jobs(pod_torc, 2)
    assert {name: essence(job) for name, job in pods.items()} == {name: essence(job) for name, job in local.items()}
    assert pod_torc.namespace.left() == {}


@frozen
class Ending:
    """A job, and how it ends.

    Attributes:
        command: What it runs.
        status: Its status.
        code: Its return code.
        exit_class: Class of its ending.
        state: What the cluster says of it (``scheduler_state``).
        words: What its reason contains.
        more: Further fields of the job.
    """

    command: str
    status: str
    code: int
    exit_class: str
    state: str | None
    words: str = ""
    more: dict[str, Any] = field(factory=dict)

    def seen(self, job: EndedJob) -> "Ending":
        """Return how the job ended; its words are these if its reason contains them."""
        said = f"{job.reason}\n{job.observation.get('launch_error')}\n{job.observation.get('scheduler_reason')}"
        words = self.words if self.words in said else said
        state = job.observation.get("scheduler_state")
        return Ending(self.command, job.status, job.code or 0, job.exit_class or "", state, words, self.more)


def template(**spec: Any) -> str:
    """Return a template of pods."""
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": spec})


FILL = "python3 -c 'x = bytearray(300_000_000)'"
SMALL = {"resource_requirements": "small"}
TABLE = {
    "memory, the whole job": Ending(
        f"exec {FILL}", "failed", 137, "oom", "OOMKilled", more={**SMALL, "container": PYTHON}
    ),
    "memory, a child; the job passes it on": Ending(
        f"{FILL}; exit $?", "failed", 137, "oom", "OOMKilled", more={**SMALL, "container": PYTHON}
    ),
    "memory, a child; the job exits 3": Ending(
        f"{FILL}; exit 3", "failed", 137, "oom", "OOMKilled", more={**SMALL, "container": PYTHON}
    ),
    "deadline of the pod": Ending(
        "sleep 100",
        "terminated",
        152,
        "timeout",
        "DeadlineExceeded",
        more={"executor_options": {"k8s": {"pod_template": "deadline.json"}}},
    ),
    "no shell in the image": Ending(
        "true", "failed", 1, "launch_failure", "StartError", "/bin/sh", more={"container": "localhost/bare:1"}
    ),
    "image name": Ending(
        "true",
        "failed",
        1,
        "launch_failure",
        None,
        "expected the name of an image",
        more={"container": "localhost/No Such:1"},
    ),
    "init container": Ending(
        "true",
        "failed",
        1,
        "launch_failure",
        None,
        "init container prepare ended with exit code 5",
        more={"executor_options": {"k8s": {"pod_template": "init.json"}}},
    ),
}


def test_the_cluster_ends_attempts(pod_torc: PodTorc) -> None:
    """What the cluster says of each ending is kept, and names the class."""
    bare_image()
    pod_torc.write("deadline.json", template(activeDeadlineSeconds=3))
    prepare = {"name": "prepare", "image": BUSYBOX, "command": ["sh", "-c", "exit 5"]}
    pod_torc.write("init.json", template(initContainers=[prepare]))
    requirements = [{"name": "small", "num_cpus": 1, "memory": "100m", "runtime": "PT5M"}]
    jobs = [{"name": name, "command": row.command, **row.more} for name, row in TABLE.items()]
    pod_torc.write("w.yaml", {"name": "w", "resource_requirements": requirements, "jobs": jobs})
    pod_torc("run", "w.yaml", *by_pods(BUSYBOX), code=1)
    ended = ended_jobs(pod_torc)
    assert {name: row.seen(ended[name]) for name, row in TABLE.items()} == TABLE
    assert pod_torc.namespace.left() == {}


def test_memory_of_a_child_of_a_job_that_succeeds(pod_torc: PodTorc) -> None:
    """The kernel killed a child, and the job says success: Kubernetes' word for the container decides."""
    requirements = [{"name": "small", "num_cpus": 1, "memory": "100m", "runtime": "PT5M"}]
    job = {"name": "a", "command": f"{FILL}; exit 0", "container": PYTHON, **SMALL}
    pod_torc.write("w.yaml", {"name": "w", "resource_requirements": requirements, "jobs": [job]})
    pod_torc.run("run", "w.yaml", *by_pods())
    seen = ended_jobs(pod_torc)["a"]
    assert (seen.code, seen.exit_class) == (137, "oom")
    assert (seen.observation["exit_code"], seen.observation["oom_kills"]) == (0, 1)
    assert seen.observation["scheduler_state"] == "OOMKilled"


def test_a_disk_that_is_full(pod_torc: PodTorc) -> None:
    """The kubelet evicts a pod whose empty volume is over its limit: that costs no retry, and the job runs again."""
    command = 'test "$TORC_ATTEMPT_ID" = 2 || { head -c 20000000 /dev/zero > /data/x; sleep 300; }'
    volumes = [{"mount": "/data", "empty": "5Mi"}]
    job = {"name": "a", "command": command, "executor_options": {"k8s": {"volumes": volumes}}}
    pod_torc.write("w.yaml", {"name": "w", "jobs": [job]})
    pod_torc("run", "w.yaml", *by_pods(BUSYBOX))
    ended = ended_jobs(pod_torc)["a"]
    assert (ended.status, ended.attempts) == ("completed", 2)
    first = pod_torc.json("results", "list", 1, "--all-runs")["results"][0]
    assert (first["exit_class"], first["observation"]["scheduler_state"]) == ("evicted", "Evicted")
    assert "volume" in first["observation"]["scheduler_reason"].lower()


@frozen
class Wait:
    """A job whose pod never starts.

    Attributes:
        exit_class: Class of its end after the limit.
        reason: What the pod waits for, in Kubernetes' words.
        more: Further fields of the job.
    """

    exit_class: str
    reason: str
    more: dict[str, Any]


def k8s(**options: Any) -> dict[str, Any]:
    """Return the field of a job with options of its pod."""
    return {"executor_options": {"k8s": options}}


WAITS = {
    "image": Wait("image_pull", "ImagePull", {"container": "localhost/no-such-image:1"}),
    "image_never": Wait("image_pull", "ErrImageNeverPull", k8s(image="localhost/no-such:1", pull_policy="Never")),
    "variable": Wait("launch_failure", "CreateContainerConfigError", k8s(env_from_secrets={"A": "no-such/key"})),
    "volume": Wait("launch_failure", "FailedMount", k8s(volumes=[{"mount": "/x", "config_map": "no-such"}])),
    "node": Wait("launch_failure", "Unschedulable", k8s(node_selector={"no-such": "label"})),
}


def test_pods_that_never_start(pod_torc: PodTorc) -> None:
    """They are ended after the limit, with Kubernetes' own words, which `torc explain` shows while they wait."""
    jobs = [{"name": name, "command": "true", **row.more} for name, row in WAITS.items()]
    pod_torc.write("w.yaml", {"name": "w", "jobs": jobs})
    limits = ("--start-limit-s", 40, "--unschedulable-limit-s", 40)
    running = pod_torc.start("run", "w.yaml", *by_pods(BUSYBOX), *limits)
    waiting: set[str] = set()

    def explained() -> bool:
        done = pod_torc.run("explain", 1)
        waiting.update(name for name, row in WAITS.items() if row.reason in done.stdout)
        return len(waiting) == len(WAITS) or running.poll() is not None

    eventually(explained, lambda: sorted(waiting))
    stdout, stderr = running.communicate(timeout=300)
    assert running.returncode == 1, stdout + stderr
    assert waiting == {*WAITS}
    for name, job in ended_jobs(pod_torc).items():
        assert job.exit_class == WAITS[name].exit_class, (name, job)
        assert WAITS[name].reason in f"{job.reason} {job.observation}", (name, job)
    assert pod_torc.namespace.left() == {}
    check_that_no_output_is_missed(pod_torc, len(WAITS))


def check_that_no_output_is_missed(torc: PodTorc, never_began: int) -> None:
    """Check that the reports on jobs that never began say so, and do not ask for their logs."""
    report = torc.json("why-failed", 1)
    assert (report["failed_jobs"], report["failed_jobs_that_never_began"]) == (never_began, never_began)
    assert "logs can be read" not in torc("why-failed", 1)
    said = "there is no output, because the job never began"
    assert said in torc("why-failed", "--job", 1)
    assert said in torc("jobs", "logs", 1, code=1)


def test_a_quota_is_waited_for(pod_torc: PodTorc) -> None:
    """Where the quota permits two pods, two run at a time, and no job fails."""
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}}
    pod_torc.namespace.create("resourcequotas", quota)
    job = {"name": "j{i}", "command": "sleep 1", "parameters": {"i": "1:6"}}
    pod_torc.write("w.yaml", {"name": "w", "jobs": [job]})
    pod_torc("run", "w.yaml", *by_pods(BUSYBOX))
    assert {job.status for job in ended_jobs(pod_torc).values()} == {"completed"}


def test_peak_memory_and_the_node_are_known(pod_torc: PodTorc) -> None:
    command = "python3 -c 'x = bytearray(120 * 2**20)'"
    pod_torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": command}]})
    pod_torc("run", "w.yaml", *by_pods(PYTHON))
    seen = ended_jobs(pod_torc)["a"].observation
    assert 120 * 2**20 <= seen["peak_memory_bytes"] < 180 * 2**20
    assert seen["raw"]["node"] == "127.0.0.1"
    assert seen["cpu_time_s"] > 0
    assert 0 <= seen["ended_at"] - seen["started_at"] < 60


def test_keep_pods(pod_torc: PodTorc) -> None:
    """Pods go once their end is stored; those of failed jobs stay if that is asked for, until they are cleaned."""
    namespace: Namespace = pod_torc.namespace
    jobs = [{"name": "good", "command": "true"}, {"name": "bad", "command": "exit 1"}]
    pod_torc.write("w.yaml", {"name": "w", "jobs": jobs})
    pod_torc("run", "w.yaml", *by_pods(BUSYBOX), "--keep-pods", "failed", code=1)
    (kept,) = namespace.pods().values()
    assert kept["status"]["phase"] == "Failed"
    assert not kept["metadata"].get("finalizers")
    pod_torc("k8s", "clean", 1, "--kept")
    eventually(lambda: namespace.left() == {}, namespace.left)
