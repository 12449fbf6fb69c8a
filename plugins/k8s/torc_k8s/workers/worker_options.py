"""What a worker pod is, from the executor's options."""

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from attrs import frozen

from torc_framework.api import AllocationError, Resources, RunnerStart, format_duration, parse_duration, parse_memory
from torc_k8s.pods.options import K8sOptions

FOLDER: Final = "/torc"
"""Folder of a worker for logs and for jobs whose options name no other; it ends with the pod."""
RUNNER_BYTES: Final = 256 * 1024**2
"""Memory of a worker that its runner keeps for itself."""
LEAST_BYTES: Final = 2 * RUNNER_BYTES
STOP_S: Final = 60
"""Seconds from SIGTERM to SIGKILL for a worker: its jobs have 30 of them, and the rest is for their reports."""
_LATER_S: Final = 60
"""A worker ends at its walltime by itself; Kubernetes ends it so many seconds later."""


@frozen
class WorkerShape:
    """The size of a worker pod, its image, and its longest life.

    Attributes:
        image: Image with torc.
        resources: What the pod requests, with the runner's own memory.
        walltime_s: Seconds after which the runner ends; None is never.
        output_dir: Folder for logs in the pod.
        server_url: Base URL at which pods reach the server; empty if that is the URL of this process.
    """

    image: str
    resources: Resources
    walltime_s: int | None
    output_dir: str
    server_url: str

    @classmethod
    def of(cls, options: K8sOptions) -> "WorkerShape":
        """Return the shape that the options describe.

        Raises:
            AllocationError: an option is missing or wrong.
        """
        if not options.worker_image:
            raise AllocationError(
                "no image is named for worker pods: give --worker-image, or worker_image in section [executor.k8s] of "
                "the configuration; 'torc k8s manifests image' prints a Containerfile for one"
            )
        memory = _memory(options.worker_memory)
        if options.worker_cpus < 1 or options.worker_gpus < 0:
            raise AllocationError("a worker pod has at least 1 CPU (worker_cpus), and no fewer than 0 GPUs")
        resources = Resources(options.worker_cpus, memory, options.worker_gpus, runtime_s=0.0)
        output_dir = options.worker_output_dir or f"{FOLDER}/output"
        if not output_dir.startswith("/"):
            raise AllocationError(f"worker_output_dir is {output_dir!r}; expected an absolute path in the pod")
        return cls(
            options.worker_image, resources, _walltime(options.worker_walltime), output_dir, options.worker_server_url
        )

    @property
    def deadline_s(self) -> int | None:
        """Seconds after its start at which Kubernetes ends the pod; None is never."""
        return None if self.walltime_s is None else self.walltime_s + STOP_S + _LATER_S

    def runner_start(self) -> RunnerStart:
        """Return how the runner is started: jobs are processes of the pod, as on any machine."""
        offered_gb = (self.resources.memory_bytes - RUNNER_BYTES) / 1024**3
        options = ["--num-cpus", str(self.resources.num_cpus), "--memory-gb", f"{offered_gb:.3f}"]
        options += ["--num-gpus", str(self.resources.num_gpus)]
        if self.walltime_s is not None:
            options += ["--time-limit", format_duration(self.walltime_s)]
        return RunnerStart("local", self.output_dir, options=tuple(options))


def _memory(text: str) -> int:
    try:
        found = parse_memory(text)
    except ValueError as error:
        raise AllocationError(f"worker_memory: {error}") from None
    if found < LEAST_BYTES:
        raise AllocationError(f"worker_memory is {text!r}; a worker needs 512m or more, of which its runner uses half")
    return found


def _walltime(text: str) -> int | None:
    if not text:
        return None
    try:
        found = parse_duration(text)
    except ValueError as error:
        raise AllocationError(f"worker_walltime: {error}") from None
    if found < STOP_S:
        raise AllocationError(f"worker_walltime is {text!r}; a worker needs a minute or more")
    return found


def refuse_loopback(url: str) -> None:
    """Refuse a server that pods cannot reach, because its address is that of each machine for itself.

    Raises:
        AllocationError: it is such an address.
    """
    host = urlsplit(url).hostname or ""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost" or host.endswith(".localhost")
    if is_loopback:
        raise AllocationError(
            f"the server is at {host}, which in a pod is the pod itself: run torc-server in the cluster ('torc k8s "
            "manifests server'), or give --worker-server-url with an address at which pods reach it"
        )
