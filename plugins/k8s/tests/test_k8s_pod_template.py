"""Files of --pod-template: what is kept, and errors that name file, line, field and what to write."""

from pathlib import Path

import pytest
from torc_k8s.pods.pod_options import PodOptions
from torc_k8s.pods.pod_spec import PodPlan, build_pod
from torc_k8s.pods.template import load_template

from torc_framework.api import Attempt, AttemptKey, ConfigError

HEAD = "apiVersion: v1\nkind: Pod\n"


def template(folder: Path, text: str, head: str = HEAD) -> str:
    path = folder / "pod.yaml"
    path.write_text(head + text, encoding="utf-8")
    return str(path)


RICH = """\
metadata:
  labels: {team: blue}
  annotations: {example.com/note: "1"}
spec:
  nodeSelector: {disk: ssd}
  hostAliases: [{ip: 10.0.0.1, hostnames: [db]}]
  tolerations: [{key: gpu, operator: Exists}]
  securityContext: {runAsUser: 1000}
  volumes:
  - name: cache
    emptyDir: {sizeLimit: 1Gi}
  initContainers:
  - {name: prepare, image: "busybox:1", command: [sh, -c, "true"]}
  containers:
  - name: side
    image: proxy:1
  - name: main
    image: from-template:1
    env: [{name: A, value: template}, {name: B, value: template}]
    volumeMounts: [{name: cache, mountPath: /cache}]
    resources: {limits: {memory: 1Gi}}
"""


def build(path: str, **options: object) -> dict[str, object]:
    attempt = Attempt(AttemptKey(1, 1), "a", "true", {}, "/o", "/e", "/w")
    plan = PodPlan(
        scope="ab",
        workflow_id=1,
        namespace="n",
        attempt=attempt,
        options=PodOptions(**options),  # type: ignore[arg-type]  # the options of the test
        template=load_template(path),
    )
    return build_pod(plan)


def test_ours_is_merged_into_the_template(tmp_path: Path) -> None:
    pod = build(template(tmp_path, RICH), env={"A": "job"}, node_selector={"zone": "a"})
    metadata, spec = pod["metadata"], pod["spec"]
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    assert metadata["labels"]["team"] == "blue"
    assert metadata["labels"]["torc-job"] == "1"
    assert metadata["annotations"]["example.com/note"] == "1"
    assert spec["nodeSelector"] == {"disk": "ssd", "zone": "a"}
    assert spec["hostAliases"] == [{"ip": "10.0.0.1", "hostnames": ["db"]}]
    assert spec["restartPolicy"] == "Never"
    main, side = spec["containers"]
    assert (main["name"], side["name"]) == ("main", "side")
    assert main["image"] == "from-template:1"
    assert main["command"][0] == "/bin/sh"
    assert {each["name"]: each["value"] for each in main["env"]} == {"A": "job", "B": "template"}
    assert {each["mountPath"] for each in main["volumeMounts"]} >= {"/cache", "/.torc"}
    assert main["resources"] == {"limits": {"memory": "1Gi"}}
    assert {each["name"] for each in spec["volumes"]} >= {"cache", "torc-work"}
    assert spec["initContainers"][0]["name"] == "prepare"


def test_an_option_beats_the_template(tmp_path: Path) -> None:
    spec = build(template(tmp_path, RICH), image="from-job:1")["spec"]
    assert isinstance(spec, dict)
    assert spec["containers"][0]["image"] == "from-job:1"


def test_the_first_container_is_the_jobs_if_none_is_called_main(tmp_path: Path) -> None:
    text = "spec: {containers: [{name: app, image: 'a:1', workingDir: /w}, {name: side, image: 'b:1'}]}\n"
    spec = build(template(tmp_path, text))["spec"]
    assert isinstance(spec, dict)
    assert [(each["name"], each["image"]) for each in spec["containers"]] == [("main", "a:1"), ("side", "b:1")]


def test_a_template_without_containers_is_enough_with_an_image(tmp_path: Path) -> None:
    spec = build(template(tmp_path, "spec: {hostNetwork: true}\n"), image="a:1")["spec"]
    assert isinstance(spec, dict)
    assert spec["hostNetwork"] is True


ERRORS = {
    "spec: {contaners: []}": (3, "spec.contaners: unknown field; did you mean 'containers'?"),
    "spec:\n  restartPolicy: Always": (
        4,
        "spec.restartPolicy: it is 'Always'; a job runs once: write Never, or remove it",
    ),
    "metadata:\n  name: x": (4, "metadata.name: torc sets it for each pod; remove it"),
    "metadata:\n  namespace: x": (4, "metadata.namespace: the option --namespace determines it; remove it"),
    "metadata:\n  labels:\n    torc-job: '1'": (4, "the label torc-job belongs to torc"),
    "metadata:\n  annotations: {torc-framework/go: x}": (4, "the annotation torc-framework/go belongs to torc"),
    "spec:\n  volumes:\n  - name: torc-work": (5, "spec.volumes[0].name: 'torc-work' begins with torc-"),
    "spec:\n  containers:\n  - name: main\n    command: [x]": (
        6,
        "spec.containers[0].command: the job's command runs there",
    ),
    "spec:\n  containers:\n  - name: main\n    tty: true": (6, "which a terminal would change; remove it"),
    "spec:\n  containers:\n  - image: x": (5, "spec.containers[0].name is missing"),
    "spec:\n  containers:\n  - name: main\n    env:\n    - value: x": (7, "spec.containers[0].env[0].name is missing"),
    "spec:\n  containers:\n  - name: main\n    volumeMounts: [{name: a, mountPath: /.torc/x}]": (
        6,
        "/.torc belongs to torc",
    ),
    "spec:\n  containers:\n  - name: main\n    resources: {limits: {memory: 1GB}}": (6, "'1GB' is not a quantity"),
    "spec:\n  containers:\n  -": (5, "spec.containers[0] is empty; remove it"),
    "spec:\n  hostNetwork: yes": (4, "spec.hostNetwork is 'yes'; expected true or false"),
    "spec:\n  priority: high": (4, "spec.priority is 'high'; expected a whole number"),
    "spec:\n  nodeSelector: {a: 1}": (4, "spec.nodeSelector.a is 1; expected text; put it in quotes"),
    "spec:\n  volumes: {}": (4, "spec.volumes is a mapping; expected a list"),
    "status: {phase: Running}": (3, "status: Kubernetes sets it; remove it"),
    "spec:\n  a: [": (5, "not valid YAML"),
    "spec: {}\n---\nspec: {}": (4, "the file has a second document"),
    "spec: &a [*a]": (3, "not valid YAML"),
}


@pytest.mark.parametrize("text", sorted(ERRORS))
def test_an_error_names_file_line_field_and_what_to_write(tmp_path: Path, text: str) -> None:
    line, words = ERRORS[text]
    path = template(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_template(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: "), message
    assert words in message


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("kind: Pod\n", "apiVersion is missing; expected v1"),
        ("apiVersion: v1\n", "kind is missing; expected Pod"),
        (
            "apiVersion: batch/v1\nkind: Job\nspec: {template: {}}\n",
            "kind is 'Job'; expected Pod; its spec.template is one",
        ),
        ("- a\n", "expected a Pod"),
        ("", "cannot be read"),
    ],
)
def test_what_is_no_pod_is_refused(tmp_path: Path, head: str, words: str) -> None:
    path = template(tmp_path, "", head) if head else str(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match=words):
        load_template(path)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a: " + b"x" * 2**21, b"[" * 100_000, b"spec: " + b"{a: " * 5000])
def test_a_hostile_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pod.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"pod\.yaml"):
        load_template(str(path))
