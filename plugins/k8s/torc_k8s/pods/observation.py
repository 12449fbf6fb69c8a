"""What a pod's status proves about the end of its attempt.

Sources: Kubernetes documentation, "Pod Lifecycle", "Disruptions", "Node-pressure Eviction" and "Determine the Reason
for Pod Failure"; the statuses in ``plugins/k8s/tests/statuses``, which a real cluster gave.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import evolve, frozen

from torc_framework.api import ExitClass, ExitObservation, StopReason, class_of_word, duration_text
from torc_k8s.container import ContainerEnd
from torc_k8s.pods.facts import ContainerFacts, PodEvent, PodFacts
from torc_k8s.pods.waiting import WaitingReason

EXECUTOR: Final = "k8s"
DELETED: Final = "Deleted"
"""State of an attempt whose pod was deleted by another than torc, where Kubernetes gives no reason."""
NODE_LOST: Final = "NodeLost"
"""State of an attempt whose node no longer reports; Kubernetes' own word for it."""
SAYS_NO_MORE: Final = frozenset({"Completed", "Error"})
"""Reasons of an ended container that add nothing to its exit code."""
_NOT_STARTED: Final = frozenset({"StartError", "ContainerCannotRun"})
"""Reasons of an ended container whose program never ran; its exit code is the runtime's."""
_NOT_SEEN: Final = frozenset({"ContainerStatusUnknown"})
"""Reasons of an ended container whose exit code the kubelet made up: it did not see the end."""
_OF_DELETIONS: Final = frozenset({"Preempted", "TaintManagerEviction"})
"""Events that tell why a pod was deleted; Kubernetes before 1.26 has no condition that does."""
_SOON_BEGUN: Final = frozenset({"Scheduled", "Pulled", "Created", "Started"})
"""Events after which a node that works begins the container, or reports another event, within seconds."""
_SIGNAL_BASE: Final = 128
_MAX_LISTED: Final = 20
_SHORT: Final = 200


@frozen
class _State:
    """What the cluster says about an end: its word, and its words."""

    word: str | None = None
    words: str = ""


def ended(facts: PodFacts) -> bool:
    """Return whether the job of a pod is over, which the container of the job determines, not the phase.

    A sidecar may still run then. A pod that was deleted before it had a node never starts.
    """
    if facts.is_over or (facts.main is not None and facts.main.state == "terminated"):
        return True
    return facts.deletion_at is not None and not facts.node


def silent_since(facts: PodFacts) -> float | None:
    """Return since when the node of a running pod has not reported; None if it reports as far as is known.

    A node that does not report has its pods marked as not ready, without a reason. A running pod whose grace period is
    over is on a node that does not report either, or that was removed from the cluster. (Measured with release 1.20.)

    Returns:
        Seconds since the epoch, by the clock of the cluster.
    """
    if facts.main is None or facts.main.state != "running" or facts.is_over:
        return None
    ready = facts.conditions.get("Ready")
    since = [facts.deletion_at]
    if ready is not None and not ready.is_true and not ready.reason and facts.main.is_ready:
        since.append(ready.at)
    return min((at for at in since if at is not None), default=None)


def unheard_since(facts: PodFacts, events: Iterable[PodEvent] = ()) -> float | None:
    """Return since when the node has reported nothing about a pod that has not begun; None if it may be at work.

    The cluster marks only those pods of a lost node as not ready that ran, and it deletes none while all its nodes are
    lost. A kubelet reports the containers of a new pod within seconds, and what hinders them in
    events. A pull of an image may take long.

    Args:
        facts: The pod.
        events: Events about it, in any order; without events only a pod counts of which the node has told nothing.

    Returns:
        Seconds since the epoch, by the clock of the cluster.
    """
    main = facts.main
    if not facts.node or facts.is_over or (main is not None and main.state != "waiting"):
        return None
    scheduled = facts.true_condition("PodScheduled")
    begin = (scheduled.at if scheduled is not None else None) or facts.created_at
    if main is None and not facts.others:
        return begin
    known = [(event.at, event.reason) for event in events if event.at is not None]
    newest = max((at for at, _ in known), default=None)
    if newest is None or any(at == newest and reason not in _SOON_BEGUN for at, reason in known):
        return None
    return max(newest, begin or 0.0)


def was_evicted_by_taint(facts: PodFacts, events: Iterable[PodEvent]) -> bool:
    """Return whether the cluster deleted the pod for a taint of its node, such as that of a node that is not ready."""
    disruption = facts.true_condition("DisruptionTarget")
    by_condition = disruption is not None and disruption.reason == "DeletionByTaintManager"
    return by_condition or any(event.reason == "TaintManagerEviction" for event in events)


def observe(
    facts: PodFacts, now: float, *, stopped: bool = False, events: Iterable[PodEvent] = (), gone: bool = False
) -> ExitObservation:
    """Return the observation of the end of a pod.

    Args:
        facts: The pod at its end, or as it was last seen.
        now: The present time, seconds since the epoch; the end, if the pod does not tell it.
        stopped: Torc asked for the pod's deletion.
        events: Events about the pod. They are needed only if another than torc has asked for its deletion.
        gone: The pod no longer exists, and its end was not seen.
    """
    state = _state(facts, tuple(events), stopped=stopped, gone=gone)
    main, end = facts.main, facts.end
    code, number = _code_and_signal(facts)
    started = end.started_at if end is not None else _started(main)
    finished = end.ended_at if end is not None else (main.finished_at if main is not None else None)
    seen = ExitObservation(
        EXECUTOR,
        exit_code=code,
        signal=number,
        started_at=started,
        ended_at=finished or now,
        launch_error=_launch_error(facts, state),
        scheduler_state=state.word,
        scheduler_reason=state.words or None,
        raw=_raw(facts, stopped=stopped, gone=gone),
    )
    if end is None:
        return seen
    return evolve(
        seen,
        core_dumped=end.core_dumped,
        duration_s=end.duration_s,
        stop_reason=StopReason.RUNTIME_LIMIT if end.limit_reached else None,
        stop_forced=end.limit_forced,
        outputs_written=end.outputs_written,
        missing_outputs=end.missing_outputs,
        peak_memory_bytes=end.peak_memory_bytes,
        cpu_time_s=end.cpu_time_s,
        oom_kills=end.oom_kills,
    )


def observe_lost(facts: PodFacts, now: float, silent_s: float) -> ExitObservation:
    """Return the observation of an attempt whose node does not report any more.

    Args:
        facts: The pod as it was last seen.
        now: The present time, seconds since the epoch.
        silent_s: How long the node has not reported.
    """
    words = f"node {facts.node or '?'} has not reported for {duration_text(silent_s)}"
    return ExitObservation(
        EXECUTOR,
        started_at=_started(facts.main),
        ended_at=now,
        scheduler_state=NODE_LOST,
        scheduler_reason=words,
        raw=_raw(facts, stopped=False, gone=False),
    )


def observe_not_started(facts: PodFacts, why: WaitingReason, now: float, waited_s: float) -> ExitObservation:
    """Return the observation of an attempt that torc ended because its pod did not start.

    Args:
        facts: The pod as it was last seen.
        why: What it waits for.
        now: The present time, seconds since the epoch.
        waited_s: How long it has waited.
    """
    is_named = class_of_word(why.reason) in _BY_WORD
    return ExitObservation(
        EXECUTOR,
        ended_at=now,
        launch_error=None if is_named else f"its pod did not start within {duration_text(waited_s)}: {why.text}",
        scheduler_state=why.reason,
        scheduler_reason=why.message or None,
        raw={**_raw(facts, stopped=True, gone=False), "waited_s": round(waited_s, 1)},
    )


_DISRUPTED: Final = (ExitClass.EVICTED, ExitClass.PREEMPTED, ExitClass.NODE_FAILURE)
"""Classes of a pod's reason that do not concern a job that has finished."""
_BY_WORD: Final = (ExitClass.IMAGE_PULL, ExitClass.NODE_FAILURE)
"""Classes that the reason of a waiting pod determines; all others are failures to start."""


# --- the cluster's words ----------------------------------------------------------------------------


def _state(facts: PodFacts, events: tuple[PodEvent, ...], *, stopped: bool, gone: bool) -> _State:
    """Return the strongest evidence of the cluster: a disruption, the pod's reason, the container's, a deletion."""
    main = facts.main
    disruption = facts.true_condition("DisruptionTarget")
    is_finished = _finished_by_itself(facts)
    is_disturbed = (disruption is not None or facts.was_asked_to_end or gone) and not is_finished
    if disruption is not None and is_disturbed:
        if class_of_word(disruption.reason) is not None:
            return _State(disruption.reason, _line(disruption.message))
        return _State(disruption.type, _line(f"{disruption.reason} {disruption.message}"))
    if facts.reason and not (is_finished and class_of_word(facts.reason) in _DISRUPTED):
        return _State(facts.reason, _line(facts.message))
    if main is not None and main.state == "terminated" and main.reason and main.reason not in SAYS_NO_MORE:
        return _State(main.reason, "" if facts.end is not None else main.first_line)
    if is_disturbed and not stopped:
        told = next((event for event in events if event.reason in _OF_DELETIONS), None)
        return (
            _State(told.reason, _line(told.message))
            if told
            else _State(DELETED, "its pod was deleted, and not by torc")
        )
    return _State()


def _finished_by_itself(facts: PodFacts) -> bool:
    """Return whether the job ended before the cluster or a person asked its pod to end, or did all its work.

    Both times have the resolution of a second, by the clocks of the node and of the API server.
    """
    main, end = facts.main, facts.end
    if main is None or main.state != "terminated" or main.finished_at is None:
        return False
    disruption = facts.true_condition("DisruptionTarget")
    asked = [
        at for at in (facts.deletion_asked_at, disruption.at if disruption is not None else None) if at is not None
    ]
    if asked and main.finished_at < min(asked):
        return True
    return end is not None and end.exit_code == 0 and (not end.was_terminated or end.outputs_written)


def _launch_error(facts: PodFacts, state: _State) -> str | None:
    """Return why the job never began; None if it began, or if the cluster's word already tells why it did not."""
    main = facts.main
    if facts.end is not None or (main is not None and main.state == "running"):
        return (facts.end and facts.end.launch_error) or None
    if main is not None and main.state == "terminated":
        if main.reason not in _NOT_STARTED:
            return None
        hint = " (the image needs a /bin/sh)" if "/bin/sh" in main.message else ""
        return f"{main.reason}: {main.first_line}{hint}"
    if state.word is not None:
        is_refusal = facts.is_over and class_of_word(state.word) in (None, ExitClass.LAUNCH_FAILURE)
        return f"{state.word}: {state.words}" if is_refusal else None
    failed = next((each for each in facts.others if each.is_init and (each.exit_code or each.signal)), None)
    if failed is not None:
        said = failed.first_line or (failed.reason if failed.reason not in SAYS_NO_MORE else "")
        return f"init container {failed.name} ended with exit code {failed.exit_code}" + (f": {said}" if said else "")
    return "its container never started" if facts.is_over else None


def _code_and_signal(facts: PodFacts) -> tuple[int | None, int | None]:
    """Return the exit code or the signal that ended the job; None for both if they are unknown.

    The program in the container reports them exactly. Where it left no report at all, it was itself ended by a signal,
    which Kubernetes shows as 128 + n.
    """
    end, main = facts.end, facts.main
    if end is not None:
        return end.exit_code, end.signal
    if main is None or main.state != "terminated" or main.reason in _NOT_STARTED | _NOT_SEEN:
        return None, None
    if main.signal:
        return None, main.signal
    code = main.exit_code
    if code is not None and not main.message and _SIGNAL_BASE < code <= _SIGNAL_BASE + 64:
        return None, code - _SIGNAL_BASE
    return code, None


def _started(main: ContainerFacts | None) -> float | None:
    return main.started_at if main is not None and main.reason not in _NOT_STARTED else None


def _line(text: str) -> str:
    return " ".join(text.split())


# --- everything else that was seen ------------------------------------------------------------------


def _raw(facts: PodFacts, *, stopped: bool, gone: bool) -> dict[str, Any]:
    """Return everything else that was seen, with bounded sizes."""
    main = facts.main
    found: dict[str, Any] = {
        "pod": facts.name,
        "namespace": facts.namespace,
        "uid": facts.uid,
        "node": facts.node,
        "image": main.image if main is not None else "",
        "image_id": main.image_id if main is not None else "",
        "phase": facts.phase,
        "pod_reason": facts.reason,
        "containers": [_container_raw(each) for each in ((main,) if main is not None else ()) + facts.others][
            :_MAX_LISTED
        ],
        "disruption": _disruption_raw(facts),
        "deletion": _deletion_raw(facts, stopped=stopped),
        "gone": gone,
        **_output_raw(facts.end),
    }
    return _known(found)


def _output_raw(end: ContainerEnd | None) -> dict[str, Any]:
    if end is None:
        return {}
    is_cut = end.missing_count > len(end.missing_outputs)
    sizes = {"stdout_bytes": end.stdout_bytes, "stderr_bytes": end.stderr_bytes}
    return sizes | ({"missing_outputs": end.missing_count} if is_cut else {})


def _container_raw(container: ContainerFacts) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": container.name,
        "init": container.is_init,
        "state": container.state,
        "reason": container.reason,
        "exit_code": container.exit_code,
        "signal": container.signal,
        "started_at": container.started_at,
        "finished_at": container.finished_at,
        "restarts": container.restarts,
        "message": container.message[:_SHORT],
    }
    return _known(found)


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that say something; 0 does."""
    return {name: value for name, value in values.items() if value is not False and value not in ("", None, [])}


def _disruption_raw(facts: PodFacts) -> Mapping[str, Any] | None:
    found = facts.true_condition("DisruptionTarget")
    return None if found is None else {"reason": found.reason, "message": found.message[:_SHORT], "at": found.at}


def _deletion_raw(facts: PodFacts, *, stopped: bool) -> Mapping[str, Any] | None:
    if not facts.was_asked_to_end:
        return None
    by = "torc" if stopped else "another"
    return {"by": by, "asked_at": facts.deletion_asked_at, "grace_s": facts.deletion_grace_s}
