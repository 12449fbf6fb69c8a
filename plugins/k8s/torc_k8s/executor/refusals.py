"""What an answer of the cluster to the creation of a pod means for its attempt."""

from enum import Enum, auto
from typing import Final

from torc_k8s.cluster.errors import ClusterError, ClusterUnreachable


class Refusal(Enum):
    """What follows from a refused creation."""

    EXISTS = auto()
    """A pod of this name exists: an earlier request was accepted, or another program uses the name."""
    REPEAT = auto()
    """The cluster does not answer, or two requests collided: the same request is sent again."""
    NO_ROOM = auto()
    """A quota is used up: the same request may be accepted later."""
    NOT_READY = auto()
    """A service of the cluster that has to admit pods fails: the same request may be accepted later."""
    FINAL = auto()
    """The pod is never accepted as it is."""


_COLLISIONS: Final = ("the object has been modified", "Operation cannot be fulfilled")


def refusal_of(error: ClusterError) -> Refusal:
    """Return what the error of a creation means."""
    if isinstance(error, ClusterUnreachable):
        return Refusal.NOT_READY if "webhook" in error.message else Refusal.REPEAT
    if error.is_quota:
        return Refusal.NO_ROOM
    if error.status == 409:
        collided = any(text in error.message for text in _COLLISIONS)
        return Refusal.REPEAT if collided and error.reason != "AlreadyExists" else Refusal.EXISTS
    return Refusal.FINAL
