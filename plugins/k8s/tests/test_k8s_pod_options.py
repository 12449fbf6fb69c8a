"""Options of the executor and of jobs: values, errors, and the pods that follow."""

import json
import os
from typing import Any

import pytest
from torc_k8s.executor.member_pod import LogPaths
from torc_k8s.pods.options import K8sOptions
from torc_k8s.pods.pod_options import PodOptions, Toleration, Volume
from torc_k8s.pods.pod_spec import PodPlan, build_pod

from torc_framework.api import Attempt, AttemptKey, ConfigError, Executor, LaunchError, Resources

GIB = 1024**3


class PodsOnly(Executor):
    """An executor with the options of pods alone."""

    name = "k8s"
    JobOptions = PodOptions


def made(values: dict[str, Any]) -> PodOptions:
    found = PodsOnly.make_job_options(values)
    assert isinstance(found, PodOptions)
    return found


def built(
    job: dict[str, Any] | None = None, run: K8sOptions | None = None, resources: Resources | None = None, **attempt: Any
) -> dict[str, Any]:
    given: dict[str, Any] = {"environment": {}, "command": "true", "container": "image:1", **attempt}
    given = {"stdout_path": "/out/4.o", "stderr_path": "/out/4.e", **given}
    made_attempt = Attempt(
        AttemptKey(4, 2),
        "job four",
        working_dir="/work",
        options=made(job) if job is not None else None,
        resources=resources or Resources(),
        **given,
    )
    options = (run or K8sOptions()).pod_options()
    return build_pod(PodPlan(scope="5ca1", workflow_id=3, namespace="ns", attempt=made_attempt, options=options))


def spec(*args: Any, **named: Any) -> dict[str, Any]:
    found: dict[str, Any] = built(*args, **named)["spec"]
    return found


def main(*args: Any, **named: Any) -> dict[str, Any]:
    found: dict[str, Any] = spec(*args, **named)["containers"][0]
    return found


@pytest.mark.parametrize(
    ("stdout", "stderr", "files"),
    [
        ("/out/4.o", "/out/4.e", ["o", "e"]),
        ("/out/4.o", "/out/4.o", ["o", "o"]),
        ("/out/4.o", os.devnull, ["o", ""]),
        (os.devnull, "/out/4.e", ["", "e"]),
        (os.devnull, os.devnull, ["", ""]),
    ],
)
def test_a_pod_says_where_its_output_goes(stdout: str, stderr: str, files: list[str]) -> None:
    """To the program in its container, and to the runner that takes over."""
    pod = built(stdout_path=stdout, stderr_path=stderr)
    assert pod["spec"]["containers"][0]["command"][13:15] == files
    notes = pod["metadata"]["annotations"]
    assert LogPaths.of_notes(notes, "/out") == LogPaths(stdout, stderr)


# --- what a pod is ----------------------------------------------------------------------------------


def test_a_pod_is_bare_named_labelled_and_held() -> None:
    pod = built()
    metadata = pod["metadata"]
    assert metadata["name"] == "torc-5ca1-j4-a2"
    assert metadata["finalizers"] == ["torc-framework/end-stored"]
    assert metadata["labels"] == {
        "app.kubernetes.io/managed-by": "torc",
        "torc-scope": "5ca1",
        "torc-workflow": "3",
        "torc-job": "4",
        "torc-attempt": "2",
        "torc-member": "0",
        "torc-retry": "0",
    }
    assert metadata["annotations"] == {
        "torc-framework/job-name": "job four",
        "torc-framework/stdout": "/out/4.o",
        "torc-framework/stderr": "/out/4.e",
    }
    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["spec"]["enableServiceLinks"] is False
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert json.loads(json.dumps(pod)) == pod


def test_a_job_beats_the_run_key_by_key() -> None:
    run = K8sOptions(image="run:1", node_selector="disk=hdd,zone=a", priority_class="low")
    found = spec({"image": "job:1", "node_selector": {"disk": "ssd"}}, run)
    assert found["containers"][0]["image"] == "job:1"
    assert found["nodeSelector"] == {"disk": "ssd"}
    assert found["priorityClassName"] == "low"


@pytest.mark.parametrize(
    ("job", "container", "run", "image"),
    [
        ({"image": "a:1"}, "b:1", "c:1", "a:1"),
        (None, "b:1", "c:1", "b:1"),
        ({}, "", "c:1", "c:1"),
    ],
)
def test_the_image(job: dict[str, Any] | None, container: str, run: str, image: str) -> None:
    assert main(job, K8sOptions(image=run), container=container)["image"] == image


def test_no_image_is_an_error_that_says_where_to_name_it() -> None:
    with pytest.raises(LaunchError, match=r"names no container image: give 'container: IMAGE' of the job, --image"):
        built(container="")


def test_resources_become_requests_and_limits() -> None:
    asked = Resources(num_cpus=3, memory_bytes=3 * GIB // 2, num_gpus=2, runtime_s=60.0)
    assert main(resources=asked)["resources"] == {
        "requests": {"cpu": "3", "memory": "1536Mi"},
        "limits": {"cpu": "3", "memory": "1536Mi", "nvidia.com/gpu": "2"},
    }
    job = {"cpu_limit": "none", "gpu_resource": "amd.com/gpu", "ephemeral_storage": "20g"}
    assert main(job, resources=asked)["resources"] == {
        "requests": {"cpu": "3", "memory": "1536Mi", "ephemeral-storage": "20Gi"},
        "limits": {"memory": "1536Mi", "amd.com/gpu": "2", "ephemeral-storage": "20Gi"},
    }


def test_no_cpus_are_no_limit() -> None:
    assert main(resources=Resources(num_cpus=0, runtime_s=60.0))["resources"] == {"requests": {"cpu": "0"}}


def test_a_job_without_requirements_requests_nothing() -> None:
    assert "resources" not in main(resources=Resources())
    assert main(resources=Resources(runtime_s=60.0))["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}


def test_values_of_variables_arrive_as_they_are() -> None:
    environment = {"TORC_JOB_ID": "4", "A": "$(TORC_JOB_ID) $$ ${B}", "CUDA_VISIBLE_DEVICES": "3"}
    found = {each["name"]: each for each in main({"env": {"C": "$"}}, environment=environment)["env"]}
    assert found["A"]["value"] == "$$(TORC_JOB_ID) $$$$ $${B}"
    assert found["C"]["value"] == "$$"
    assert "CUDA_VISIBLE_DEVICES" not in found


def test_secrets_are_named_and_never_contained() -> None:
    attempt = Attempt(
        AttemptKey(1, 1), "a", "true", {"TORC_PASSWORD": "hunter2", "X": "y"}, "/o", "/e", "/w", container="i:1"
    )
    plan = PodPlan(
        scope="ab",
        workflow_id=1,
        namespace="n",
        attempt=attempt,
        options=made({"env_from_secrets": {"TOKEN": "login/token"}}),
        secret="torc-ab",
        secret_names=frozenset({"TORC_PASSWORD"}),
    )
    pod = build_pod(plan)
    container = pod["spec"]["containers"][0]
    assert "hunter2" not in json.dumps(pod)
    assert container["envFrom"] == [{"secretRef": {"name": "torc-ab"}}]
    reference = {"secretKeyRef": {"name": "login", "key": "token"}}
    assert container["env"] == [{"name": "X", "value": "y"}, {"name": "TOKEN", "valueFrom": reference}]


def test_volumes_of_every_kind() -> None:
    text = (
        "claim:scratch:/data, nfs:fs.example.com:/export/a:/nfs:ro, host:/opt:/opt, empty:5g:/tmp/x, "
        "empty:unlimited:/y, secret:keys:/keys, config_map:app:/etc/app"
    )
    found = spec(None, K8sOptions(volumes=text))
    sources = {each["name"]: {k: v for k, v in each.items() if k != "name"} for each in found["volumes"]}
    mounts = {each["mountPath"]: each for each in found["containers"][0]["volumeMounts"]}
    assert sources[mounts["/data"]["name"]] == {"persistentVolumeClaim": {"claimName": "scratch"}}
    nfs = {"server": "fs.example.com", "path": "/export/a", "readOnly": True}
    assert sources[mounts["/nfs"]["name"]] == {"nfs": nfs}
    assert mounts["/nfs"]["readOnly"] is True
    assert sources[mounts["/opt"]["name"]] == {"hostPath": {"path": "/opt"}}
    assert sources[mounts["/tmp/x"]["name"]] == {"emptyDir": {"sizeLimit": "5Gi"}}
    assert sources[mounts["/y"]["name"]] == {"emptyDir": {}}
    assert sources[mounts["/keys"]["name"]] == {"secret": {"secretName": "keys"}}
    assert sources[mounts["/etc/app"]["name"]] == {"configMap": {"name": "app"}}
    job = {"volumes": [{"mount": "/z", "claim": "c", "sub_path": "a/b"}]}
    assert spec(job)["containers"][0]["volumeMounts"][-1]["subPath"] == "a/b"


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ([], ["not-ready", "unreachable"]),
        ([{"key": "gpu"}], ["not-ready", "unreachable"]),
        ([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], ["not-ready", "unreachable"]),
        ([{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "seconds": 5}], ["unreachable"]),
        ([{}], []),
    ],
)
def test_the_cluster_deletes_pods_of_lost_nodes_in_time(given: list[dict[str, Any]], added: list[str]) -> None:
    """The tolerations of the user stay as they are."""
    attempt = Attempt(AttemptKey(1, 1), "a", "true", {}, "/o", "/e", "/", options=made({"tolerations": given}))
    options = PodOptions(image="i")
    plan = PodPlan(scope="5ca1", workflow_id=3, namespace="ns", attempt=attempt, options=options, lost_after_s=20.5)
    found = build_pod(plan)["spec"]["tolerations"][len(given) :]
    taint: dict[str, Any] = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 21}
    assert found == [{"key": f"node.kubernetes.io/{name}", **taint} for name in added]


def test_everything_else_of_a_pod() -> None:
    affinity: dict[str, Any] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    job = {
        "pull_policy": "Never",
        "pull_secrets": ["registry"],
        "service_account": "runner",
        "tolerations": [{"key": "gpu", "value": "true", "effect": "NoExecute", "seconds": 5}, {}],
        "affinity": affinity,
        "priority_class": "high",
        "shm_size": "2g",
        "grace_s": 5,
        "labels": {"team": "blue"},
        "annotations": {"example.com/a": "b"},
    }
    pod = built(job)
    found = pod["spec"]
    assert found["containers"][0]["imagePullPolicy"] == "Never"
    assert found["imagePullSecrets"] == [{"name": "registry"}]
    assert found["serviceAccountName"] == "runner"
    assert found["automountServiceAccountToken"] is True
    assert found["tolerations"] == [
        {"operator": "Equal", "key": "gpu", "value": "true", "effect": "NoExecute", "tolerationSeconds": 5},
        {"operator": "Exists"},
    ]
    assert found["affinity"] == affinity
    assert found["terminationGracePeriodSeconds"] == 5
    shared = next(each for each in found["volumes"] if each["name"] == "torc-shm")
    assert shared["emptyDir"] == {"medium": "Memory", "sizeLimit": "2Gi"}
    assert found["containers"][0]["volumeMounts"][-1] == {"name": "torc-shm", "mountPath": "/dev/shm"}
    assert pod["metadata"]["labels"]["team"] == "blue"
    assert pod["metadata"]["annotations"]["example.com/a"] == "b"


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        ({"container": "\t"}, "container: image: it is"),
        ({"environment": {"BIG": "x" * 131_072}}, "the variable BIG has 128 KiB"),
        ({"environment": {f"V{number}": "$" * 60_000 for number in range(20)}}, "the pod has"),
    ],
)
def test_what_cannot_be_a_pod_is_an_error(attempt: dict[str, Any], words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        built(**attempt)


# --- errors -----------------------------------------------------------------------------------------

OF_JOBS: list[tuple[dict[str, Any], str]] = [
    ({"image": " "}, "image: it is ' '; expected the name of an image"),
    ({"image": "a\nb"}, "image: it is 'a\\nb'"),
    ({"imge": "a"}, "imge: unknown key 'imge'; did you mean 'image'?"),
    ({"pull_policy": "always"}, "did you mean 'Always'?"),
    ({"node_selector": {"a b": "c"}}, "node_selector: 'a b' is no key of a label"),
    ({"node_selector": {"a": "b c"}}, "node_selector: the value of 'a' is 'b c'"),
    ({"service_account": "A"}, "service_account: 'A' is no name of a Kubernetes object"),
    ({"pull_secrets": ["a_b"]}, "pull_secrets: 'a_b' is no name"),
    ({"gpu_resource": "nvidia.com/"}, "gpu_resource: 'nvidia.com/' is no key"),
    ({"shm_size": "2 GB"}, "shm_size: '2 GB' is not a quantity"),
    ({"working_dir": "data"}, "working_dir: it is 'data'; expected an absolute path"),
    ({"env": {"A=B": "c"}}, "env: 'A=B' is no name of a variable"),
    ({"env": {"A": "\0"}}, "contains a zero byte"),
    ({"env_from_secrets": {"A": "db"}}, "A is 'db'; expected the secret and its key, as in db/password"),
    ({"env_from_secrets": {"A": "db/x"}, "env": {"A": "x"}}, "A is in env, too"),
    ({"labels": {"torc-job": "1"}}, "labels: torc-job belongs to torc"),
    ({"annotations": {"torc-framework/go": "1"}}, "annotations: torc-framework/go belongs to torc"),
    ({"affinity": {"nodeAffinty": {}}}, "affinity: nodeAffinty: unknown field; did you mean 'nodeAffinity'?"),
    ({"grace_s": -1}, "grace_s: it is -1"),
    ({"tolerations": [{"value": "x"}]}, "tolerations[0]: a toleration with a value needs a key"),
    ({"tolerations": [{"key": "a", "seconds": 3}]}, "seconds of a toleration need the effect NoExecute"),
    ({"volumes": [{"mount": "/a"}]}, "volumes[0]: the volume at '/a' has no source"),
    ({"volumes": [{"mount": "/a", "claim": "a", "host": "/b"}]}, "has claim and host; give exactly one"),
    ({"volumes": [{"claim": "a"}]}, "'mount' is missing"),
    ({"volumes": [{"mount": "a", "claim": "a"}]}, "expected an absolute path"),
    ({"volumes": [{"mount": "/", "claim": "a"}]}, "expected a folder below /"),
    ({"volumes": [{"mount": "/.torc/x", "claim": "a"}]}, "/.torc belongs to torc"),
    ({"volumes": [{"mount": "/a/../b", "claim": "a"}]}, "without '..'"),
    ({"volumes": [{"mount": "/a", "claim": "a", "sub_path": "../b"}]}, "expected a relative path without '..'"),
    ({"volumes": [{"mount": "/a", "nfs": "server"}]}, "expected server and folder, such as server:/export"),
    ({"volumes": [{"mount": "/a", "empty": "5x"}]}, "empty: '5x' is not a quantity"),
    ({"volumes": [{"mount": "/a", "claim": "a"}, {"mount": "/a/", "claim": "b"}]}, "two volumes are mounted at /a"),
]


@pytest.mark.parametrize(("values", "words"), OF_JOBS)
def test_an_error_in_a_job_names_the_key(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(values)
    assert words in str(caught.value)


OF_RUNS: list[tuple[dict[str, Any], str]] = [
    ({"node_selector": "disk"}, "node_selector of executor k8s: 'disk' has no '='"),
    ({"env": "A=1,A=2"}, "env of executor k8s: 'A' is given twice"),
    ({"volumes": "clam:a:/b"}, "unknown kind 'clam'; did you mean 'claim'?"),
    ({"volumes": "claim:a"}, "expected KIND:SOURCE:FOLDER[:ro], such as claim:scratch:/data"),
    ({"volumes": "claim:a:b"}, "volumes of executor k8s: mount is 'b'"),
    ({"tolerations": "a:NoExecute:soon"}, "expected KEY[=VALUE][:EFFECT[:SECONDS]], or *"),
    ({"tolerations": "a:Never"}, "effect of a toleration is 'Never'"),
    ({"affinity": "[1]"}, "affinity of executor k8s: '[1]' is no JSON object"),
    ({"affinity": '{"podAffinity": 1}'}, "affinity: podAffinity is 1; expected a mapping"),
    ({"labels": "a"}, "labels of executor k8s: 'a' has no '='"),
    ({"keep_pods": "some"}, "keep_pods of executor k8s is 'some'; it must be one of none, failed, all"),
    ({"pull_policy": "never"}, "pull_policy of executor k8s is 'never'"),
    ({"cpu_limit": "2"}, "cpu_limit of executor k8s is '2'"),
    ({"start_limit_s": 0.0}, "start_limit_s of executor k8s is 0; it must be greater than 0"),
    ({"lost_after_s": float("nan")}, "lost_after_s of executor k8s is nan"),
    ({"max_pods": -1}, "max_pods of executor k8s is -1; it must not be below 0"),
    ({"namespace": "My_jobs"}, "namespace of executor k8s: 'My_jobs' is no name of a Kubernetes object"),
    ({"image": " "}, "option of executor k8s: image: it is ' '"),
]


@pytest.mark.parametrize(("values", "words"), OF_RUNS)
def test_an_error_in_an_option_names_it(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        K8sOptions(**values)
    assert words in str(caught.value)


def test_texts_of_options_are_the_values_of_jobs() -> None:
    found = K8sOptions(
        tolerations="*, gpu=true:NoSchedule,spot:NoExecute:300", env_from_secrets="A=db/password"
    ).pod_options()
    assert found.tolerations == [
        Toleration(),
        Toleration(key="gpu", value="true", effect="NoSchedule"),
        Toleration(key="spot", effect="NoExecute", seconds=300),
    ]
    assert found.env_from_secrets == {"A": "db/password"}
    rules = K8sOptions(affinity='{"nodeAffinity": {}}', labels="a=b", annotations="c=d").pod_options()
    assert (rules.affinity, rules.labels, rules.annotations) == ({"nodeAffinity": {}}, {"a": "b"}, {"c": "d"})
    assert K8sOptions(volumes="host:/a:/b:ro").pod_options().volumes == [Volume(mount="/b", host="/a", read_only=True)]
