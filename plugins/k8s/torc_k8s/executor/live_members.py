"""What the pods of a job that has not ended say about its tasks."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from torc_k8s.cluster import Cluster
from torc_k8s.executor.group_adoption import is_group, restored
from torc_k8s.executor.group_pods import ended_at, waits_for_others
from torc_k8s.executor.leftovers import is_kept
from torc_k8s.executor.names import FENCE
from torc_k8s.groups import GroupState, status_of_end
from torc_k8s.groups.statuses import INITIALIZING, PROCESSING, RUNNING, is_finished
from torc_k8s.pods.facts import PodFacts
from torc_k8s.pods.names import selector
from torc_k8s.pods.observation import observe
from torc_k8s.pods.waiting import waiting_reason

SCHEDULING: Final = "SCHEDULING"
"""Status of a task whose pod has no node."""
Tasks = list[dict[str, Any]]
"""The tasks of one job, as `GroupState.as_json` has them, each with the name of its newest ``pod``."""


async def live_tasks(cluster: Cluster, scope: str, patience_s: float) -> dict[tuple[int, int], Tasks]:
    """Return the tasks of a runner's jobs by job and attempt.

    Raises:
        ClusterError: the cluster refuses, or does not answer.
    """
    listed, _ = await cluster.list("pods", labels=selector(scope), patience_s=patience_s)
    by_attempt: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for pod in listed:
        key = PodFacts.of(pod).key
        if key is not None and FENCE not in pod["metadata"]["labels"] and not is_kept(pod):
            by_attempt.setdefault((key.job_id, key.attempt_id), []).append(pod)
    return {attempt: tasks_of(pods) for attempt, pods in by_attempt.items()}


def tasks_of(pods: Sequence[dict[str, Any]]) -> Tasks:
    """Return the tasks of an attempt by its pods; a single pod is a task without a name.

    Statuses and codes are those that the rules of the group give, so that a task whose pod ended may go on with another
    one. A task that has not ended has the status of its pod.
    """
    facts = sorted(map(PodFacts.of, pods), key=lambda each: (each.member, each.retry))
    newest = {each.member: each for each in facts}
    if not is_group(pods[0]):
        return [_task({"name": "", "lead": True, "retries": 0, **_end_of(newest[0])}, newest.get(0))]
    by_name = {pod["metadata"]["name"]: pod for pod in pods}
    state = _state({rank: by_name[each.name] for rank, each in newest.items()})
    found = [] if state is None else state.as_json()["tasks"]
    return [_task(task, newest.get(rank)) for rank, task in enumerate(found)]


def _state(newest: Mapping[int, dict[str, Any]]) -> GroupState | None:
    """Return where a group stands; None if the pods do not tell its rules."""
    found = restored(newest)
    if found is None:
        return None
    state, _ = found
    ends = sorted((at, rank) for rank, pod in newest.items() if (at := ended_at(pod)) is not None)
    for _, rank in ends:
        facts = PodFacts.of(newest[rank])
        state.ended(rank, facts.retry, *status_of_end(observe(facts, time.time())))
    return state


def _end_of(facts: PodFacts) -> dict[str, Any]:
    if facts.main is None or facts.main.state != "terminated":
        return {"status": PROCESSING, "code": None}
    status, code = status_of_end(observe(facts, time.time()))
    return {"status": status, "code": code}


def _task(task: dict[str, Any], facts: PodFacts | None) -> dict[str, Any]:
    """Return a task with its pod, and with the status of that if it has not ended."""
    if facts is None or task.get("pods", 1) - 1 > facts.retry:  # it gets its first or next pod
        return {**task, "pod": None}
    if is_finished(task["status"]):
        return {**task, "pod": facts.name}
    waiting = waiting_reason(facts)
    message = {"message": waiting.text} if waiting is not None else {}
    return {**task, "status": _status_of_pod(facts), "pod": facts.name, **message}


def _status_of_pod(facts: PodFacts) -> str:
    if not facts.node:
        return SCHEDULING
    has_begun = facts.main is not None and facts.main.state == "running"
    return RUNNING if has_begun and not waits_for_others(facts) else INITIALIZING
