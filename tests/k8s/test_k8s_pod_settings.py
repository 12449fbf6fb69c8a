"""Options of pods on a real cluster: each has its effect inside the container of a job."""

import base64
import json
from typing import Any

import pytest
from k8s_cluster import BUSYBOX, PodTorc, by_pods
from run_results import ended_jobs

pytestmark = pytest.mark.e2e


def job(name: str, command: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "command": command, "executor_options": {"k8s": options}}


TEMPLATE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"labels": {"team": "blue"}},
    "spec": {
        "volumes": [{"name": "cache", "emptyDir": {}}],
        "initContainers": [
            {
                "name": "prepare",
                "image": BUSYBOX,
                "command": ["sh", "-c", "echo prepared > /cache/x"],
                "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
            }
        ],
        "containers": [
            {"name": "side", "image": BUSYBOX, "command": ["sh", "-c", "sleep 600"]},
            {"name": "main", "volumeMounts": [{"name": "cache", "mountPath": "/cache"}]},
        ],
    },
}
VARIABLE = "$(HOME) $$ `x` 'y' \"z\""
LIMITS = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/cpu/cpu.cfs_quota_us"
JOBS = [
    (job("variable", 'printf "%s" "$A"', env={"A": VARIABLE}), VARIABLE),
    (job("secret", 'printf "%s" "$PASSWORD"', env_from_secrets={"PASSWORD": "db/password"}), "geheim $x"),
    (job("run_variable", 'printf "%s" "$OF_RUN"'), "yes"),
    (job("config_map", "cat /etc/app/a", volumes=[{"mount": "/etc/app", "config_map": "app"}]), "hello"),
    (job("secret_files", "cat /keys/password", volumes=[{"mount": "/keys", "secret": "db"}]), "geheim $x"),
    (
        job(
            "read_only",
            "touch /h/x 2>/dev/null || ls -d /h/bin",
            volumes=[{"mount": "/h", "host": "/usr", "read_only": True}],
        ),
        "/h/bin\n",
    ),
    (job("folder", "pwd", working_dir="/y", volumes=[{"mount": "/y", "empty": "8Mi"}]), "/y\n"),
    (job("shared_memory", "grep -c ' /dev/shm tmpfs' /proc/mounts", shm_size="64Mi"), "1\n"),
    (job("template", "cat /cache/x", pod_template="pod.json"), "prepared\n"),
    ({**job("resources", LIMITS), "resource_requirements": "one"}, f"{100 * 1024**2}\n100000\n"),
    ({**job("no_cpu_limit", LIMITS, cpu_limit="none"), "resource_requirements": "one"}, f"{100 * 1024**2}\n-1\n"),
    (
        job(
            "placed",
            "echo here",
            node_selector={"kubernetes.io/os": "linux"},
            tolerations=[{}],
            service_account="default",
            labels={"team": "red"},
            grace_s=3,
            ephemeral_storage="100Mi",
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "Exists"}]}]
                    }
                }
            },
        ),
        "here\n",
    ),
]
"""Jobs, and what they write."""


def test_each_option_has_its_effect(pod_torc: PodTorc) -> None:
    namespace = pod_torc.namespace
    encoded = base64.b64encode(b"geheim $x").decode()
    namespace.create("secrets", {"metadata": {"name": "db"}, "data": {"password": encoded}})
    namespace.create("configmaps", {"metadata": {"name": "app"}, "data": {"a": "hello"}})
    pod_torc.write("pod.json", TEMPLATE)
    requirements = [{"name": "one", "num_cpus": 1, "memory": "100m", "runtime": "PT5M"}]
    pod_torc.write("w.yaml", {"name": "w", "resource_requirements": requirements, "jobs": [each for each, _ in JOBS]})
    pod_torc("run", "w.yaml", *by_pods(BUSYBOX, "--env", "OF_RUN=yes"))
    assert {name: ended.reason for name, ended in ended_jobs(pod_torc).items() if ended.exit_class != "success"} == {}
    report = pod_torc.json("reports", "results", 1)["results"]
    written = {each["job_name"]: (pod_torc.folder / each["job_stdout"]).read_text(encoding="utf-8") for each in report}
    assert written == {each["name"]: expected for each, expected in JOBS}
    namespace.delete("secrets", "db")
    namespace.delete("configmaps", "app")
    assert namespace.left() == {}


def test_a_wrong_template_ends_the_run_at_once(pod_torc: PodTorc) -> None:
    pod_torc.write(
        "pod.json", json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": {"restartPolicy": "Always"}}, indent=1)
    )
    pod_torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": "true"}]})
    done = pod_torc.run("run", "w.yaml", *by_pods(BUSYBOX, "--pod-template", "pod.json"))
    assert done.returncode == 2, done.stderr
    assert "pod.json:5: spec.restartPolicy: it is 'Always'; a job runs once: write Never, or remove it" in done.stderr
