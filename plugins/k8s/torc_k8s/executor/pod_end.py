"""Whether the processes of a pod have ended, by what its status says."""

from enum import Enum, auto

from torc_k8s.pods.facts import PodFacts
from torc_k8s.pods.observation import ended


class PodEnd(Enum):
    """How it is known that a pod has ended."""

    SEEN = auto()
    """Its status says how its main container ended, or why it never starts."""
    REMOVED = auto()
    """It was deleted before its main container began."""
    GONE = auto()
    """It was removed from the cluster, and no status told how its main container ended."""
    LOST = auto()
    """Its node has not answered for so long that it counts as lost."""


def end_of(facts: PodFacts) -> PodEnd | None:
    """Return how a pod has ended; None if its processes may still run, or may still begin."""
    if ended(facts):
        return PodEnd.SEEN
    if facts.deletion_at is None or has_begun(facts):
        return None
    # Without a node no kubelet starts it; a kubelet ends the grace period when it has cleaned up.
    return PodEnd.REMOVED if not facts.node or facts.deletion_grace_s == 0 else None


def has_begun(facts: PodFacts) -> bool:
    """Return whether the main container has begun."""
    return facts.main is not None and facts.main.started_at is not None
