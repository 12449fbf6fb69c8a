"""The file of ``--pod-template``: a Pod in YAML, checked against the fields that Kubernetes has.

Source: Kubernetes API reference, "Pod".
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import frozen

from torc_framework.api import YamlFile, read_yaml_file
from torc_k8s.pods.field_types import FieldError, Path, check_fields, described, shown
from torc_k8s.pods.names import ANNOTATION_PREFIX, LABELS, MAIN
from torc_k8s.pods.pod_options import RESERVED_FOLDER

OWN_VOLUMES: Final = "torc-"
"""Names of volumes that begin so belong to torc."""


@frozen
class PodTemplate:
    """A Pod into which torc's is merged; `load_template` has checked it.

    Attributes:
        path: Its file.
        pod: The Pod. Its container `MAIN`, if it has containers, is the first of the list.
    """

    path: str
    pod: Mapping[str, Any]


def load_template(path: str) -> PodTemplate:
    """Return the template in a file.

    Raises:
        ConfigError: the file cannot be read, or has something that a pod of torc cannot have; the message names file,
            line and field, and what to write instead.
    """
    file = read_yaml_file(path)
    pod = file.value
    if not isinstance(pod, dict):
        raise file.error((), "expected a Pod: apiVersion, kind, metadata and spec")
    _check_kind(file, pod)
    try:
        check_fields(pod, "V1Pod")
    except FieldError as error:
        raise file.error(error.path, str(error), at_key=error.at_key) from None
    for fields, check in _RULES.items():
        _check_rule(file, pod, fields, check)
    return PodTemplate(path, {"metadata": _metadata(pod), "spec": _with_main_first(file, pod.get("spec") or {})})


def _metadata(pod: Mapping[str, Any]) -> dict[str, Any]:
    given = pod.get("metadata") or {}
    return {part: given[part] for part in ("labels", "annotations") if given.get(part)}


def _with_main_first(file: YamlFile, spec: dict[str, Any]) -> dict[str, Any]:
    """Return a spec whose job's container, the one named main or else the first, is first and has that name."""
    containers: list[dict[str, Any]] = spec.get("containers") or []
    found = next((place for place, each in enumerate(containers) if each.get("name") == MAIN), 0)
    if not containers:
        return spec
    main = containers[found]
    for name in _NOT_IN_MAIN:
        if main.get(name):
            what = _NOT_IN_MAIN[name]
            raise file.error(
                ("spec", "containers", found, name), f"spec.containers[{found}].{name}: {what}", at_key=True
            )
    others = [each for place, each in enumerate(containers) if place != found]
    return {**spec, "containers": [{**main, "name": MAIN}, *others]}


_BY_COMMAND: Final = "the job's command runs there; remove it"
_NOT_IN_MAIN: Final[Mapping[str, str]] = {
    "command": _BY_COMMAND,
    "args": _BY_COMMAND,
    "tty": "torc reads what the job writes, which a terminal would change; remove it",
    "stdin": "a job has no standard input; remove it",
    "terminationMessagePath": "torc reports the end of the job there; remove it",
    "terminationMessagePolicy": "torc reports the end of the job there; remove it",
    "livenessProbe": "it would start the job again; end a job that hangs by the runtime of its resource_requirements",
    "restartPolicy": "a job runs once; remove it",
}
"""What the template's container for the job cannot have, and why."""


# --- what torc decides ------------------------------------------------------------------------------


def _refused(what: str) -> Callable[[Any], str | None]:
    return lambda value: None if value in (None, "", [], {}) else what


def _restart_policy(value: Any) -> str | None:
    return None if value in (None, "Never") else f"it is {value!r}; a job runs once: write Never, or remove it"


def _labels(value: Any) -> str | None:
    taken = next((key for key in value or () if key in LABELS), None)
    return taken and f"the label {taken} belongs to torc; remove it"


def _annotations(value: Any) -> str | None:
    taken = next((key for key in value or () if key.startswith(ANNOTATION_PREFIX)), None)
    return taken and f"the annotation {taken} belongs to torc; remove it"


def _volume_name(value: Any) -> str | None:
    taken = isinstance(value, str) and value.startswith(OWN_VOLUMES)
    return f"{value!r} begins with {OWN_VOLUMES}, as torc's own volumes do; choose another name" if taken else None


def _mount_path(value: Any) -> str | None:
    taken = isinstance(value, str) and f"{value.rstrip('/')}/".startswith(RESERVED_FOLDER + "/")
    return f"{RESERVED_FOLDER} belongs to torc; choose another folder" if taken else None


_BY_TORC: Final = "torc sets it for each pod; remove it"
_RULES: Final[Mapping[str, Callable[[Any], str | None]]] = {
    "metadata.name": _refused(_BY_TORC),
    "metadata.generateName": _refused(_BY_TORC),
    "metadata.namespace": _refused("the option --namespace determines it; remove it"),
    "metadata.uid": _refused(_BY_TORC),
    "metadata.resourceVersion": _refused(_BY_TORC),
    "metadata.ownerReferences": _refused(_BY_TORC),
    "metadata.finalizers": _refused(_BY_TORC),
    "metadata.labels": _labels,
    "metadata.annotations": _annotations,
    "status": _refused("Kubernetes sets it; remove it"),
    "spec.restartPolicy": _restart_policy,
    "spec.ephemeralContainers": _refused("Kubernetes adds them to running pods only; remove it"),
    "spec.volumes.*.name": _volume_name,
    "spec.containers.*.volumeMounts.*.mountPath": _mount_path,
    "spec.initContainers.*.volumeMounts.*.mountPath": _mount_path,
}
"""What torc decides, by field; ``*`` is every item of a list."""


def _check_rule(file: YamlFile, pod: Any, fields: str, check: Callable[[Any], str | None]) -> None:
    places: list[tuple[Path, Any]] = [((), pod)]
    for step in fields.split("."):
        places = [
            ((*path, key), value)
            for path, holder in places
            for key, value in (enumerate(holder or ()) if step == "*" else [(step, (holder or {}).get(step))])
        ]
    for path, value in places:
        if problem := check(value):
            raise file.error(path, f"{shown(path)}: {problem}", at_key=True)


def _check_kind(file: YamlFile, pod: Mapping[str, Any]) -> None:
    if pod.get("kind") != "Pod":
        hint = (
            "; its spec.template is one, without apiVersion and kind" if "template" in (pod.get("spec") or {}) else ""
        )
        raise file.error(("kind",), f"kind is {described(pod.get('kind'))}; expected Pod{hint}")
    if pod.get("apiVersion") != "v1":
        raise file.error(("apiVersion",), f"apiVersion is {described(pod.get('apiVersion'))}; expected v1")
