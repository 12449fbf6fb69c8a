"""The pods that the cluster makes at present, of which a node makes only a few at once without loss."""

from typing import Final

from attrs import define, field

PER_NODE: Final = 24
"""Pods that a node makes at once. A node that starts many more containers at once takes longer for all of them."""
LONGEST_S: Final = 20.0
"""A pod that takes longer waits for something that nothing states yet, such as the download of its image."""
WITHOUT_NODE_S: Final = 0.5
"""A pod that has no node after this time waits for the scheduler, and burdens no node until it has one."""


@define(eq=False)
class PodsInMaking:
    """The pods of one scope that were just requested or have a node, have not begun, and state no reason for that.

    Times are those of the clock of the event loop.
    """

    _until: dict[str, float] = field(factory=dict, init=False)
    """Until when a pod counts at the longest, by its name."""
    _placed: set[str] = field(factory=set, init=False)
    """Names of the pods that were given a node, and have not ended."""
    _nodes: set[str] = field(factory=set, init=False)
    """Nodes that pods of this scope were given."""

    def add(self, name: str, now: float) -> None:
        """Count a pod whose creation is requested."""
        if name not in self._placed:
            self._until[name] = now + WITHOUT_NODE_S

    def place(self, name: str, node: str, now: float) -> bool:
        """Count a pod that was given a node; return whether pods of this scope had none there before."""
        if name not in self._placed:
            self._placed.add(name)
            self._until[name] = now + LONGEST_S
        is_new = node not in self._nodes
        self._nodes.add(node)
        return is_new

    def remove(self, name: str) -> bool:
        """Count a pod no more; return whether it was counted."""
        return self._until.pop(name, None) is not None

    def forget(self, name: str) -> None:
        """Note that a pod has ended."""
        self.remove(name)
        self._placed.discard(name)

    @property
    def limit(self) -> int:
        """Most pods that are made at once."""
        return PER_NODE * max(1, len(self._nodes))

    def wait_s(self, now: float) -> float:
        """Return after how many seconds at the latest another pod may be requested; 0 means now."""
        if len(self._until) < self.limit:
            return 0.0
        self._until = {name: end for name, end in self._until.items() if end > now}
        return 0.0 if len(self._until) < self.limit else min(self._until.values()) - now
