"""The pods that the cluster makes at present, of which a node makes only a few at once without loss."""

from typing import Final

from attrs import define, field

PER_NODE: Final = 24
"""Pods that a node makes at once. A node that starts many more containers at once takes longer for all of them."""
LONGEST_S: Final = 20.0
"""A pod that takes longer waits for something that nothing states yet, such as the download of its image."""
WITHOUT_NODE_S: Final = 2.0
"""A pod that has no node after this time waits for the scheduler, and burdens no node."""


@define(eq=False)
class PodsInMaking:
    """The pods of one scope that are requested or created, have not begun, and state no reason for that.

    Times are those of the clock of the event loop.
    """

    _since: dict[str, float] = field(factory=dict, init=False)
    """When a pod was requested, by its name; the oldest first."""
    _placed: set[str] = field(factory=set, init=False)
    """Names of those that have a node."""
    _nodes: set[str] = field(factory=set, init=False)
    """Nodes that pods of this scope were given."""

    def add(self, name: str, now: float) -> None:
        """Count a pod whose creation is requested."""
        self._since.setdefault(name, now)

    def place(self, name: str, node: str) -> bool:
        """Note the node that a pod was given; return whether it is a new one."""
        is_new = node not in self._nodes
        self._nodes.add(node)
        if name in self._since:
            self._placed.add(name)
        return is_new

    def remove(self, name: str) -> bool:
        """Count a pod no more; return whether it was counted."""
        self._placed.discard(name)
        return self._since.pop(name, None) is not None

    @property
    def limit(self) -> int:
        """Most pods that are made at once."""
        return PER_NODE * max(1, len(self._nodes))

    def wait_s(self, now: float) -> float:
        """Return after how many seconds at the latest another pod may be requested; 0 means now."""
        if len(self._since) < self.limit:
            return 0.0
        ends = {name: self._end(name, since) for name, since in self._since.items()}
        for name, end in ends.items():
            if end <= now:
                self.remove(name)
        return 0.0 if len(self._since) < self.limit else min(ends[name] for name in self._since) - now

    def _end(self, name: str, since: float) -> float:
        return since + (LONGEST_S if name in self._placed else WITHOUT_NODE_S)
