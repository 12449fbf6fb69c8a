"""The resources of a runner: what running attempts occupy, and what is free."""

from torc_framework.executors import AttemptKey
from torc_framework.models.resources import Resources

QUEUE_DEPTH_LANE = 0


class ResourcePool:
    """The resources of one runner.

    Args:
        total: What the runner offers.
        gpu_names: Names of its GPUs.
        depth: Number of attempts at once, independent of their requests; None counts resources instead.
    """

    def __init__(self, total: Resources, gpu_names: list[str], depth: int | None) -> None:
        self.total, self.depth = total, depth
        self._cpus = total.num_cpus * total.num_nodes
        self._memory = total.memory_bytes * total.num_nodes
        self._gpus = list(gpu_names)
        self._taken: dict[AttemptKey, tuple[Resources, tuple[str, ...]]] = {}
        self._lanes: dict[tuple[int, int, int], int] = {}

    def fits(self, wanted: Resources) -> bool:
        """Return whether an attempt with these requests may start now."""
        if self.depth is not None:
            return len(self._taken) < self.depth
        nodes = wanted.num_nodes
        return (
            wanted.num_cpus * nodes <= self._cpus
            and wanted.memory_bytes * nodes <= self._memory
            and wanted.num_gpus <= len(self._gpus)
        )

    def take(self, key: AttemptKey, wanted: Resources) -> tuple[str, ...]:
        """Occupy what an attempt requests, even if it does not fit; return the names of its GPUs."""
        self._cpus -= wanted.num_cpus * wanted.num_nodes
        self._memory -= wanted.memory_bytes * wanted.num_nodes
        gpus: tuple[str, ...] = ()
        if wanted.num_gpus and self.depth is None:
            gpus = tuple(self._gpus[: wanted.num_gpus])
            del self._gpus[: wanted.num_gpus]
        self._taken[key] = wanted, gpus
        return gpus

    def release(self, key: AttemptKey) -> None:
        """Free what an attempt occupied; an attempt that occupies nothing is ignored."""
        wanted, gpus = self._taken.pop(key, (None, ()))
        if wanted is not None:
            self._cpus += wanted.num_cpus * wanted.num_nodes
            self._memory += wanted.memory_bytes * wanted.num_nodes
            self._gpus += gpus

    def has(self, key: AttemptKey) -> bool:
        """Return whether an attempt occupies resources."""
        return key in self._taken

    def room(self) -> int:
        """Return how many attempts could start now, at most."""
        return max(0, self._cpus if self.depth is None else self.depth - len(self._taken))

    def free(self) -> Resources | None:
        """Return what is not in use, per node; None when only the number of attempts counts."""
        if self.depth is not None:
            return None
        nodes = self.total.num_nodes
        return Resources(max(0, self._cpus // nodes), max(0, self._memory // nodes), len(self._gpus) // nodes, nodes)

    def lane(self, wanted: Resources) -> int | None:
        """Return the lane of attempts with these requests; None if each has GPUs of its own, so that it has no lane."""
        if self.depth is not None:
            return QUEUE_DEPTH_LANE
        if wanted.num_gpus:
            return None  # each attempt has GPUs of its own, by name
        shape = (wanted.num_cpus, wanted.memory_bytes, wanted.num_nodes)
        return self._lanes.setdefault(shape, len(self._lanes) + 1)
