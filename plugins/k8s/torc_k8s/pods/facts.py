"""What the status of a pod says, with bounded sizes and without trust in its types.

Source: Kubernetes API reference, "Pod" (PodStatus, ContainerStatus, PodCondition) and "Event".
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

from attrs import field, frozen

from torc_framework.api import AttemptKey
from torc_k8s.container import ContainerEnd, parse_message
from torc_k8s.pods.names import FINALIZER, MAIN, MEMBER, RETRY, SCOPE, key_of, number_of

MAX_MESSAGE: Final = 1000
"""Characters of a message that are kept; an image's name or the runtime's error may make it long."""
MAX_WORD: Final = 100
MAX_CONTAINERS: Final = 30
MAX_CONDITIONS: Final = 30
_MAX_END_MESSAGE: Final = 16384

State = Literal["waiting", "running", "terminated", ""]


@frozen
class ContainerFacts:
    """What the status says about one container.

    Attributes:
        name: Name of the container.
        is_init: It is an init container.
        state: Its state; empty if the status has none.
        reason: Reason of the state, such as ``OOMKilled``.
        message: Message of the state: of a running or ended container the termination message, else Kubernetes' words.
        exit_code: Exit code, if it ended.
        signal: Signal that ended it, if the status says so. Kubernetes up to 1.36 leaves it out.
        started_at: Start, seconds since the epoch; None if it never started.
        finished_at: End, seconds since the epoch.
        image: The image as the node resolved it.
        image_id: Digest of the image.
        restarts: How often it was started again.
        is_ready: It runs and is ready.
    """

    name: str
    is_init: bool = False
    state: State = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    started_at: float | None = None
    finished_at: float | None = None
    image: str = ""
    image_id: str = ""
    restarts: int = 0
    is_ready: bool = False

    @property
    def first_line(self) -> str:
        """The first line of the message that is not empty."""
        return next((line.strip() for line in self.message.splitlines() if line.strip()), "")


@frozen
class PodCondition:
    """One condition of a pod.

    Attributes:
        type: Such as ``PodScheduled``.
        is_true: Its status is True.
        reason: Such as ``Unschedulable``.
        message: Kubernetes' words.
        at: When it changed, seconds since the epoch; None if unknown.
    """

    type: str
    is_true: bool
    reason: str = ""
    message: str = ""
    at: float | None = None


@frozen
class PodEvent:
    """One event about a pod.

    Attributes:
        reason: Such as ``FailedMount``.
        message: Kubernetes' words.
        is_warning: Its type is Warning.
        at: When it was last seen, seconds since the epoch; None if unknown.
    """

    reason: str
    message: str = ""
    is_warning: bool = False
    at: float | None = None

    @classmethod
    def of(cls, event: Any) -> "PodEvent":
        """Return the facts of an event as the API returns it."""
        given = _map(event)
        at = _time(given.get("lastTimestamp")) or _time(given.get("eventTime")) or _time(given.get("firstTimestamp"))
        return cls(
            _text(given.get("reason"), MAX_WORD), _text(given.get("message")), given.get("type") == "Warning", at
        )


@frozen
class PodFacts:
    """What a pod's metadata and status say; a value of another type in the API's answer counts as absent.

    Attributes:
        name: Name of the pod.
        namespace: Its namespace.
        uid: Its uid.
        resource_version: Version of the object.
        key: The attempt that its labels name; None if they name none.
        scope: The runner that its labels name.
        member: Rank within its group.
        retry: How often this member was started again.
        annotations: Its annotations.
        is_held: Torc's finalizer is there.
        created_at: When it was created, seconds since the epoch.
        deletion_at: When its grace period ends, after which it is killed; None if its deletion was not asked for.
        deletion_grace_s: Its grace period, if its deletion was asked for.
        phase: Pending, Running, Succeeded, Failed or Unknown.
        reason: Reason of the pod, such as ``Evicted``.
        message: Message of the pod.
        node: Name of its node; empty before it has one.
        address: IP address of the pod.
        nominated_node: Node on which others are preempted for it.
        main: The container that runs the job; None if the status does not mention it.
        others: All other containers of the status, init containers first.
        conditions: Its conditions by type.
        end: What the program in the container reported at its end; None if there is no such report.
    """

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    key: AttemptKey | None = None
    scope: str = ""
    member: int = 0
    retry: int = 0
    annotations: Mapping[str, str] = field(factory=dict)
    is_held: bool = False
    created_at: float | None = None
    deletion_at: float | None = None
    deletion_grace_s: int | None = None
    phase: str = ""
    reason: str = ""
    message: str = ""
    node: str = ""
    address: str = ""
    nominated_node: str = ""
    main: ContainerFacts | None = None
    others: tuple[ContainerFacts, ...] = ()
    conditions: Mapping[str, PodCondition] = field(factory=dict)
    end: ContainerEnd | None = None

    @classmethod
    def of(cls, pod: Any) -> "PodFacts":
        """Return the facts of a pod as the API returns it; a malformed part counts as missing."""
        given = _map(pod)
        metadata, spec, status = (_map(given.get(part)) for part in ("metadata", "spec", "status"))
        labels = _texts(metadata.get("labels"))
        containers, main, end = _containers(status)
        return cls(
            name=_text(metadata.get("name"), 253),
            namespace=_text(metadata.get("namespace"), 253),
            uid=_text(metadata.get("uid"), MAX_WORD),
            resource_version=_text(metadata.get("resourceVersion"), MAX_WORD),
            key=key_of(labels),
            scope=labels.get(SCOPE, ""),
            member=number_of(labels, MEMBER) or 0,
            retry=number_of(labels, RETRY) or 0,
            annotations=_texts(metadata.get("annotations")),
            is_held=FINALIZER in _list(metadata.get("finalizers")),
            created_at=_time(metadata.get("creationTimestamp")),
            deletion_at=_time(metadata.get("deletionTimestamp")),
            deletion_grace_s=_number(metadata.get("deletionGracePeriodSeconds")),
            phase=_text(status.get("phase"), MAX_WORD),
            reason=_text(status.get("reason"), MAX_WORD),
            message=_text(status.get("message")),
            node=_text(spec.get("nodeName"), 253),
            address=_text(status.get("podIP"), MAX_WORD),
            nominated_node=_text(status.get("nominatedNodeName"), 253),
            main=main,
            others=containers,
            conditions=_conditions(status.get("conditions")),
            end=end,
        )

    @property
    def was_asked_to_end(self) -> bool:
        """The deletion of the pod was asked for, by torc or by another."""
        return self.deletion_at is not None

    @property
    def deletion_asked_at(self) -> float | None:
        """When its deletion was asked for, seconds since the epoch with the resolution of a second."""
        return None if self.deletion_at is None else self.deletion_at - (self.deletion_grace_s or 0)

    @property
    def is_over(self) -> bool:
        """Its phase is final."""
        return self.phase in ("Succeeded", "Failed")

    def true_condition(self, type_: str) -> PodCondition | None:
        """Return a condition whose status is True; None if there is none."""
        found = self.conditions.get(type_)
        return found if found is not None and found.is_true else None


# --- parts of a status ------------------------------------------------------------------------------


def _containers(status: Mapping[str, Any]) -> tuple[tuple[ContainerFacts, ...], ContainerFacts | None, Any]:
    """Return all containers but the main one, the main one, and the report of the program in it."""
    others: list[ContainerFacts] = []
    main, end = None, None
    for part, is_init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for each in _list(status.get(part))[: MAX_CONTAINERS * 2]:
            found = _container(_map(each), is_init)
            if found.name == MAIN and not is_init:
                main, end = found, _end(_map(each))
            elif len(others) < MAX_CONTAINERS:
                others.append(found)
    return tuple(others), main, end


def _container(given: Mapping[str, Any], is_init: bool) -> ContainerFacts:
    states = _map(given.get("state"))
    found: tuple[State, ...] = ("terminated", "running", "waiting")
    state: State = next((each for each in found if isinstance(states.get(each), dict)), "")
    detail = _map(states.get(state))
    return ContainerFacts(
        name=_text(given.get("name"), 253),
        is_init=is_init,
        state=state,
        reason=_text(detail.get("reason"), MAX_WORD),
        message=_text(detail.get("message")),
        exit_code=_number(detail.get("exitCode")) if state == "terminated" else None,
        signal=_number(detail.get("signal")) or None,
        started_at=_time(detail.get("startedAt")) or None,
        finished_at=_time(detail.get("finishedAt")) or None,
        image=_text(given.get("image")),
        image_id=_text(given.get("imageID")),
        restarts=_number(given.get("restartCount")) or 0,
        is_ready=given.get("ready") is True,
    )


def _end(given: Mapping[str, Any]) -> ContainerEnd | None:
    message = _map(_map(given.get("state")).get("terminated")).get("message")
    return parse_message(message) if isinstance(message, str) and len(message) <= _MAX_END_MESSAGE else None


def _conditions(given: Any) -> dict[str, PodCondition]:
    found: dict[str, PodCondition] = {}
    for each in map(_map, _list(given)[:MAX_CONDITIONS]):
        condition = PodCondition(
            _text(each.get("type"), MAX_WORD),
            each.get("status") == "True",
            _text(each.get("reason"), MAX_WORD),
            _text(each.get("message")),
            _time(each.get("lastTransitionTime")),
        )
        found[condition.type] = condition
    return found


# --- values of any type -----------------------------------------------------------------------------


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any, limit: int = MAX_MESSAGE) -> str:
    """Return a text without control characters but line ends, cut to a limit."""
    if not isinstance(value, str):
        return ""
    kept = value[:limit]
    if not kept.isprintable():
        kept = "".join(each if each.isprintable() or each == "\n" else " " for each in kept)
    return kept if len(value) <= limit else kept[: limit - 3] + "..."


def _texts(value: Any) -> dict[str, str]:
    return {key: text for key, text in _map(value).items() if isinstance(text, str)}


def _number(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return value if is_number else None


def _time(value: Any) -> float | None:
    """Return a time of the API, such as ``2026-01-02T03:04:05Z``, as seconds since the epoch; None if it is none."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
