"""What the status of a worker pod says about the allocation: whether it is there, why it waits, how it ended."""

import time
from collections.abc import Iterable

from torc_framework.api import AllocationEnding, PendingReason
from torc_k8s.pods.facts import PodEvent, PodFacts
from torc_k8s.pods.observation import ended, observe, observe_lost
from torc_k8s.pods.options import K8sOptions
from torc_k8s.pods.waiting import WaitingKind, waiting_reason


def silent_s(facts: PodFacts) -> float:
    """Return for how many seconds the node of a running pod has not reported; 0 if it reports.

    Kubernetes then says that the pod is not ready, while its container is.
    """
    ready = facts.conditions.get("Ready")
    if ready is None or ready.is_true or ready.at is None or facts.main is None:
        return 0.0
    is_silent = facts.main.state == "running" and facts.main.is_ready
    return max(0.0, time.time() - ready.at) if is_silent else 0.0


def is_alive(facts: PodFacts, options: K8sOptions) -> bool:
    """Return whether the runner of a worker pod runs, or will run."""
    return not ended(facts) and silent_s(facts) < options.lost_after_s


def is_kept(facts: PodFacts, keep_pods: str) -> bool:
    """Return whether an ended worker pod stays, by the option ``keep_pods``."""
    return keep_pods == "all" or (keep_pods == "failed" and facts.phase != "Succeeded")


def never_starts(facts: PodFacts, options: K8sOptions) -> PendingReason | None:
    """Return why a worker pod has waited longer than is permitted for what does not pass by itself; None if not."""
    waiting = waiting_reason(facts)
    if waiting is None or waiting.kind is not WaitingKind.STUCK or waiting.since is None:
        return None
    if time.time() - waiting.since < options.start_limit_s:
        return None
    return PendingReason(waiting.reason, waiting.message, never_passes=True)


def pending_reason(facts: PodFacts, events: Iterable[PodEvent]) -> PendingReason | None:
    """Return why a worker pod waits; None if it does not, or its reason is not known."""
    waiting = waiting_reason(facts, events)
    if waiting is None:
        return None
    return PendingReason(waiting.reason, waiting.message, never_passes=waiting.kind is WaitingKind.STUCK)


def ending_of(facts: PodFacts) -> AllocationEnding:
    """Return how a worker pod ended, in Kubernetes' words."""
    now, silent = time.time(), silent_s(facts)
    seen = observe(facts, now) if ended(facts) else observe_lost(facts, now, silent)
    state = seen.scheduler_state or facts.phase or "Unknown"
    reason = seen.scheduler_reason or seen.launch_error
    return AllocationEnding(state, reason, (facts.node,) if facts.node else (), dict(seen.raw))
