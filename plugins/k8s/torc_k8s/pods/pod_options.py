"""What a job may say about its pod, and the values of the executor's options in the same form.

Sources: Kubernetes API reference, "Pod"; Kubernetes documentation, "Taints and Tolerations" and "Volumes".
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from attrs import evolve, fields, frozen

from torc_framework.api import ConfigError
from torc_k8s.groups.options import GroupOptions
from torc_k8s.pods.field_types import FieldError, check_fields
from torc_k8s.pods.names import ANNOTATION_PREFIX, LABELS, key_problem, label_problem, name_problem
from torc_k8s.pods.quantities import size_quantity

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
CPU_LIMITS: Final = ("request", "none")
_EFFECTS: Final = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SECRET_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")
RESERVED_FOLDER: Final = "/.torc"
"""Folder in the container that belongs to torc."""


@frozen(kw_only=True)
class Toleration:
    """One taint of nodes that the pod tolerates.

    Attributes:
        key: Key of the taint; empty tolerates all taints.
        value: Value of the taint; None tolerates every value.
        effect: NoSchedule, PreferNoSchedule or NoExecute; empty tolerates every effect.
        seconds: How long the pod stays on a node with a NoExecute taint; None is for ever.
    """

    key: str = ""
    value: str | None = None
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    seconds: int | None = None

    def __attrs_post_init__(self) -> None:
        """Raise `ConfigError` for values that Kubernetes would refuse."""
        if self.effect not in _EFFECTS:
            raise ConfigError(f"effect of a toleration is {self.effect!r}; it must be one of {', '.join(_EFFECTS[1:])}")
        if self.key:
            _require(label_problem(self.key, self.value or ""))
        elif self.value is not None:
            raise ConfigError("a toleration with a value needs a key")
        if self.seconds is not None and self.effect != "NoExecute":
            raise ConfigError("seconds of a toleration need the effect NoExecute")

    def as_dict(self) -> dict[str, Any]:
        """Return the toleration as Kubernetes writes it."""
        found: dict[str, Any] = {"operator": "Exists" if self.value is None else "Equal"}
        found |= {"key": self.key} if self.key else {}
        found |= {"value": self.value} if self.value is not None else {}
        found |= {"effect": self.effect} if self.effect else {}
        return found | ({"tolerationSeconds": self.seconds} if self.seconds is not None else {})


@frozen(kw_only=True)
class Volume:
    """One volume of the pod: where it comes from, and where the job sees it. Exactly one source is given.

    Attributes:
        mount: Absolute path of the folder in the container.
        claim: Name of a PersistentVolumeClaim.
        nfs: Server and exported folder, such as ``server:/export``.
        host: Absolute path of a folder or file of the node.
        empty: Size limit of an empty folder that ends with the pod, such as ``5Gi``; ``unlimited`` for none.
        secret: Name of a Secret, whose keys become files.
        config_map: Name of a ConfigMap, whose keys become files.
        sub_path: Folder within the volume that is mounted instead of the whole of it.
        read_only: The job cannot write there.
    """

    mount: str
    claim: str = ""
    nfs: str = ""
    host: str = ""
    empty: str = ""
    secret: str = ""
    config_map: str = ""
    sub_path: str = ""
    read_only: bool = False

    def __attrs_post_init__(self) -> None:
        """Raise `ConfigError` for values that Kubernetes would refuse."""
        given = [name for name in SOURCES if getattr(self, name)]
        if len(given) != 1:
            said = f"has {' and '.join(given)}" if given else "has no source"
            raise ConfigError(f"the volume at {self.mount!r} {said}; give exactly one of {', '.join(SOURCES)}")
        _require(_path_problem("mount", self.mount))
        if self.mount == "/" or ":" in self.mount:
            raise ConfigError(f"mount is {self.mount!r}; expected a folder below / without ':'")
        if f"{self.mount.rstrip('/')}/".startswith(RESERVED_FOLDER + "/"):
            raise ConfigError(f"mount is {self.mount!r}; {RESERVED_FOLDER} belongs to torc: choose another folder")
        if ".." in self.sub_path.split("/") or self.sub_path.startswith("/"):
            raise ConfigError(f"sub_path is {self.sub_path!r}; expected a relative path without '..'")
        SOURCES[given[0]](self)  # refuses an invalid one

    def source(self) -> dict[str, Any]:
        """Return the source of the volume as Kubernetes writes it."""
        return next(make(self) for name, make in SOURCES.items() if getattr(self, name))

    def mounted(self, name: str) -> dict[str, Any]:
        """Return the mount of the volume as Kubernetes writes it.

        Args:
            name: Name of the volume in the pod.
        """
        found = {"name": name, "mountPath": self.mount}
        return found | ({"subPath": self.sub_path} if self.sub_path else {}) | self._read_only()

    def _read_only(self) -> dict[str, Any]:
        return {"readOnly": True} if self.read_only else {}

    def _claim(self) -> dict[str, Any]:
        _require(name_problem(self.claim))
        return {"persistentVolumeClaim": {"claimName": self.claim, **self._read_only()}}

    def _nfs(self) -> dict[str, Any]:
        server, _, path = self.nfs.rpartition(":")
        if not server or not path.startswith("/"):
            raise ConfigError(f"nfs is {self.nfs!r}; expected server and folder, such as server:/export")
        return {"nfs": {"server": server, "path": path, **self._read_only()}}

    def _host(self) -> dict[str, Any]:
        _require(_path_problem("host", self.host))
        return {"hostPath": {"path": self.host}}

    def _empty(self) -> dict[str, Any]:
        return {"emptyDir": {} if self.empty == UNLIMITED else {"sizeLimit": _size("empty", self.empty)}}

    def _secret(self) -> dict[str, Any]:
        _require(name_problem(self.secret))
        return {"secret": {"secretName": self.secret}}

    def _config_map(self) -> dict[str, Any]:
        _require(name_problem(self.config_map))
        return {"configMap": {"name": self.config_map}}


UNLIMITED: Final = "unlimited"
SOURCES: Final[Mapping[str, Callable[[Volume], dict[str, Any]]]] = {
    "claim": Volume._claim,
    "nfs": Volume._nfs,
    "host": Volume._host,
    "empty": Volume._empty,
    "secret": Volume._secret,
    "config_map": Volume._config_map,
}
"""What a volume can come from; each entry is a field of `Volume` and makes Kubernetes' form of it."""


@frozen(kw_only=True)
class PodOptions:
    """What a job says about its pod, under ``executor_options: {k8s: ...}``. A key that is left out is the run's.

    Attributes:
        image: Container image, such as ``python:3.12``; ``container`` of the job is the short form.
        pull_policy: When the image is pulled: Always, IfNotPresent or Never.
        pull_secrets: Names of Secrets with which images are pulled.
        service_account: Service account of the pod; its token is mounted only if this is given.
        node_selector: Labels that the node must have.
        tolerations: Taints of nodes that the pod tolerates.
        affinity: Rules on nodes and other pods, as in the Pod of Kubernetes (``spec.affinity``).
        priority_class: Priority class of the pod.
        gpu_resource: Name of the resource that is a GPU, such as ``nvidia.com/gpu``.
        cpu_limit: ``request``: the job cannot use more CPUs than it requests; ``none``: it may use idle ones.
        ephemeral_storage: Disk for files in the container and in empty volumes, such as ``20Gi``.
        shm_size: Size of ``/dev/shm``, such as ``2Gi``; it counts as memory of the job.
        working_dir: Absolute path of the folder in the container in which the command begins.
        volumes: Volumes and where they are mounted.
        env: Variables of the job.
        env_from_secrets: Variables from Secrets: name of the variable, then ``SECRET/KEY``.
        labels: Further labels of the pod.
        annotations: Further annotations of the pod.
        grace_s: Seconds between SIGTERM and SIGKILL if the cluster or a person deletes the pod.
        pod_template: File with a Pod in YAML, on the machine of the runner, into which the pod is merged.
        group: Tasks of which each runs in a pod of its own, and that begin and end together.
    """

    image: str | None = None
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    pull_secrets: list[str] | None = None
    service_account: str | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None
    affinity: dict[str, Any] | None = None
    priority_class: str | None = None
    gpu_resource: str | None = None
    cpu_limit: Literal["request", "none"] | None = None
    ephemeral_storage: str | None = None
    shm_size: str | None = None
    working_dir: str | None = None
    volumes: list[Volume] | None = None
    env: dict[str, str] | None = None
    env_from_secrets: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    grace_s: int | None = None
    pod_template: str | None = None
    group: GroupOptions | None = None

    def __attrs_post_init__(self) -> None:
        """Raise `ConfigError` for values that Kubernetes would refuse; the message begins with the key."""
        for name, problem in _problems(self):
            if problem is not None:
                raise ConfigError(f"{name}: {problem}")

    def over(self, run: "PodOptions") -> "PodOptions":
        """Return these options, with the run's values for the keys that are left out here."""
        return evolve(run, **{name: value for name in _NAMES if (value := getattr(self, name)) is not None})


_NAMES: Final = tuple(attribute.name for attribute in fields(PodOptions))


def _problems(options: PodOptions) -> Iterator[tuple[str, str | None]]:
    """Yield what is wrong with each key; None where it is valid."""
    if options.image is not None:
        yield "image", image_problem(options.image)
    yield "pull_policy", _choice_problem(options.pull_policy, PULL_POLICIES)
    yield "cpu_limit", _choice_problem(options.cpu_limit, CPU_LIMITS)
    for name in ("service_account", "priority_class"):
        if value := getattr(options, name):
            yield name, name_problem(value)
    for each in options.pull_secrets or ():
        yield "pull_secrets", name_problem(each)
    for key, value in (options.node_selector or {}).items():
        yield "node_selector", label_problem(key, value)
    if options.gpu_resource:
        yield "gpu_resource", key_problem(options.gpu_resource)
    for name in ("ephemeral_storage", "shm_size"):
        if value := getattr(options, name):
            yield name, _size_problem(value)
    if options.working_dir:
        yield "working_dir", _path_problem("it", options.working_dir)
    if options.affinity:
        yield "affinity", _affinity_problem(options.affinity)
    yield "volumes", _repeated_mount(options.volumes or [])
    if options.grace_s is not None and not 0 <= options.grace_s <= MAX_GRACE_S:
        yield "grace_s", f"it is {options.grace_s}; expected 0 to {MAX_GRACE_S} seconds"
    yield from _environment_problems(options)
    yield from _metadata_problems(options)


def _environment_problems(options: PodOptions) -> Iterator[tuple[str, str | None]]:
    for field in ("env", "env_from_secrets"):
        for name, value in (getattr(options, field) or {}).items():
            if not _ENV_NAME.fullmatch(name):
                yield field, f"{name!r} is no name of a variable: expected letters, digits and '_'"
            if "\0" in value:
                yield field, f"the value of {name} contains a zero byte, which no variable can"
    for name, reference in (options.env_from_secrets or {}).items():
        secret, slash, key = reference.partition("/")
        if not slash or name_problem(secret) is not None or not _SECRET_KEY.fullmatch(key):
            yield (
                "env_from_secrets",
                f"{name} is {reference[:60]!r}; expected the secret and its key, as in db/password",
            )
        if name in (options.env or {}):
            yield "env_from_secrets", f"{name} is in env, too; keep one of them"


def _metadata_problems(options: PodOptions) -> Iterator[tuple[str, str | None]]:
    for key, value in (options.labels or {}).items():
        yield "labels", label_problem(key, value) or (f"{key} belongs to torc" if key in LABELS else None)
    for key in options.annotations or {}:
        yield (
            "annotations",
            key_problem(key) or (f"{key} belongs to torc" if key.startswith(ANNOTATION_PREFIX) else None),
        )


MAX_GRACE_S: Final = 7 * 24 * 3600


def _require(problem: str | None) -> None:
    if problem is not None:
        raise ConfigError(problem)


def _choice_problem(value: str | None, choices: tuple[str, ...]) -> str | None:
    return None if value in (None, *choices) else f"it is {value!r}; it must be one of {', '.join(choices)}"


def image_problem(image: str) -> str | None:
    """Return what is wrong with the name of an image; None if it may be one."""
    if image.split() == [image] and len(image) <= 1024 and image.isprintable():
        return None
    return f"it is {image[:80]!r}; expected the name of an image, such as python:3.12"


def _path_problem(what: str, path: str) -> str | None:
    if path.startswith("/") and ".." not in path.split("/") and path.isprintable() and len(path) < 4096:
        return None
    return f"{what} is {path[:80]!r}; expected an absolute path without '..'"


def _size_problem(text: str) -> str | None:
    try:
        size_quantity(text)
    except ValueError as error:
        return str(error)
    return None


def _size(name: str, text: str) -> str:
    try:
        return size_quantity(text)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None


def _affinity_problem(affinity: dict[str, Any]) -> str | None:
    try:
        check_fields(affinity, "V1Affinity")
    except FieldError as error:
        return str(error)
    return None


def _repeated_mount(volumes: list[Volume]) -> str | None:
    mounts = [volume.mount.rstrip("/") for volume in volumes]
    repeated = next((mount for mount in mounts if mounts.count(mount) > 1), None)
    return None if repeated is None else f"two volumes are mounted at {repeated}"
