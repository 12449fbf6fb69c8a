"""Why a pod does not start, in Kubernetes' own words.

Sources: Kubernetes documentation, "Debug Pods" and "Images" (ImagePullBackOff); the reasons in the source of its
kubelet (``images/types.go``, ``container/sync_result.go``, ``events/event.go``), release 1.20 and 1.34.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from attrs import frozen

from torc_k8s.pods.facts import ContainerFacts, PodCondition, PodEvent, PodFacts


class WaitingKind(StrEnum):
    """What can end the wait of a pod."""

    PREPARING = "preparing"
    """The cluster is at work for the pod, for example it pulls an image."""
    FOR_ROOM = "for_room"
    """The pod starts when a node has room, or when an administrator permits it."""
    STUCK = "stuck"
    """The pod does not start by itself: a person has to correct something."""


@frozen
class WaitingReason:
    """Why a pod does not start.

    Attributes:
        kind: What can end the wait.
        reason: Kubernetes' word, such as ``ImagePullBackOff``.
        message: Kubernetes' words, one line; may be empty.
        since: Since when at the latest, seconds since the epoch by the cluster's clock; None if unknown.
        container: The container that waits; empty if it is the pod.
    """

    kind: WaitingKind
    reason: str
    message: str = ""
    since: float | None = None
    container: str = ""

    @property
    def text(self) -> str:
        """The reason and its message, for people."""
        return f"{self.reason}: {self.message}" if self.message else self.reason


_K = WaitingKind
_OF_CONTAINERS: Final[Mapping[str, WaitingKind]] = {
    "ErrImagePull": _K.STUCK,
    "ImagePullBackOff": _K.STUCK,
    "ErrImageNeverPull": _K.STUCK,
    "InvalidImageName": _K.STUCK,
    "ImageInspectError": _K.STUCK,
    "RegistryUnavailable": _K.STUCK,
    "SignatureValidationFailed": _K.STUCK,
    "CreateContainerConfigError": _K.STUCK,
    "CreateContainerError": _K.STUCK,
    "PreCreateHookError": _K.STUCK,
    "PreStartHookError": _K.STUCK,
    "PostStartHookError": _K.STUCK,
    "RunContainerError": _K.STUCK,
    "StartError": _K.STUCK,
    "CrashLoopBackOff": _K.STUCK,
}
"""Kind by reason of a waiting container; a container that waits for any other reason is being prepared."""
_OF_CONDITIONS: Final[Mapping[str, WaitingKind]] = {
    "Unschedulable": _K.FOR_ROOM,
    "SchedulingGated": _K.FOR_ROOM,
    "SchedulerError": _K.FOR_ROOM,
}
"""Kind by reason of the condition PodScheduled that is False."""
_OF_EVENTS: Final[Mapping[str, WaitingKind]] = {
    "FailedMount": _K.STUCK,
    "FailedAttachVolume": _K.STUCK,
    "FailedMapVolume": _K.STUCK,
    "FailedCreatePodSandBox": _K.STUCK,
    "FailedCreatePodContainer": _K.STUCK,
    "NetworkNotReady": _K.STUCK,
    "FailedValidation": _K.STUCK,
    "NodeNotReady": _K.STUCK,
    "Pulling": _K.PREPARING,
}
"""Kind by reason of an event about a pod that has a node and whose containers do not say why they wait."""


def waiting_reason(facts: PodFacts, events: Iterable[PodEvent] = ()) -> WaitingReason | None:
    """Return why a pod does not start; None if it has started or ended, or nothing hinders it as far as is known.

    Args:
        facts: The pod.
        events: Events about it, in any order. They alone tell of volumes that cannot be mounted.
    """
    has_started = facts.main is not None and facts.main.state in ("running", "terminated")
    if has_started or facts.is_over or facts.was_asked_to_end:
        return None
    known = tuple(events)
    for container in (*facts.others, *((facts.main,) if facts.main is not None else ())):
        if found := _of_container(container, facts, known):
            return found
    scheduled = facts.conditions.get("PodScheduled")
    if scheduled is not None and not scheduled.is_true and not facts.node:
        return _of_condition(scheduled, facts)
    return _of_events(known) if facts.node else None


def _of_container(container: ContainerFacts, facts: PodFacts, events: tuple[PodEvent, ...]) -> WaitingReason | None:
    kind = _OF_CONTAINERS.get(container.reason) if container.state == "waiting" else None
    if kind is None:
        return None
    scheduled = facts.true_condition("PodScheduled")
    since = scheduled.at if scheduled is not None and scheduled.at is not None else facts.created_at
    message = container.first_line
    if container.reason == "ImagePullBackOff":
        message = next((_line(each.message) for each in events if each.message.startswith(_PULL_FAILED)), message)
    return WaitingReason(kind, container.reason, message, since, container.name)


_PULL_FAILED: Final = "Failed to pull image"
"""How the event begins that tells why an image could not be pulled; the status only says that it is tried again."""
_NEVER_ROOM: Final = re.compile(r'persistentvolumeclaim "[^"]*" (not found|is being deleted)')
"""Messages of the scheduler about something that more room does not change."""


def _of_condition(scheduled: PodCondition, facts: PodFacts) -> WaitingReason | None:
    kind = _OF_CONDITIONS.get(scheduled.reason)
    if kind is None:
        return None
    message = _line(scheduled.message)
    if _NEVER_ROOM.search(message):
        kind = WaitingKind.STUCK
    if facts.nominated_node:
        message += f" (others make room on node {facts.nominated_node})"
    return WaitingReason(kind, scheduled.reason, message.strip(), scheduled.at or facts.created_at)


def _of_events(events: tuple[PodEvent, ...]) -> WaitingReason | None:
    """Return what the newest of these events says; a warning has precedence over a normal event of the same second."""
    named = [event for event in events if event.reason in _OF_EVENTS]
    if not named:
        return None
    newest = max(named, key=lambda event: (event.at or 0.0, event.is_warning))
    return WaitingReason(_OF_EVENTS[newest.reason], newest.reason, _line(newest.message), newest.at)


def _line(text: str) -> str:
    return " ".join(text.split())
