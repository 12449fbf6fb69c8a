"""Adoption of the pods of a group whose runner is dead."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from torc_k8s.container.program import GO, LOG
from torc_k8s.executor.attempt_pods import AttemptPods
from torc_k8s.executor.group_pods import GROUP, GROUP_NOTE, ended_at
from torc_k8s.executor.member_pod import LogPaths
from torc_k8s.groups import FoundPod, GroupAction, GroupPlan, GroupState
from torc_k8s.pods.facts import PodFacts
from torc_k8s.pods.names import FINALIZER, MEMBER, RETRY, key_of, number_of, pod_name

_ADDED_SPEC: Final = frozenset({"nodeName", "priority", "preemptionPolicy"})
"""What the cluster adds to the specification of a pod, and what a copy of the pod must not have."""


def is_group(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is a member of a group."""
    return GROUP in (pod["metadata"].get("annotations") or {})


def adopt_group(attempt: AttemptPods, found: Iterable[dict[str, Any]]) -> bool:
    """Make an attempt the group that these pods are.

    Returns:
        Whether that is possible: a pod of each member was found, and the first one of the lead.
    """
    by_place = {_place(pod): pod for pod in found}
    newest = {rank: by_place[rank, number] for rank, number in sorted(by_place)}
    restored = restore_state(newest)
    if restored is None or (0, 0) not in by_place:
        return False
    state, actions = restored
    notes = by_place[0, 0]["metadata"]["annotations"]
    attempt.logs = LogPaths.of_notes(notes, attempt.services.output_dir)
    scope = attempt.services.scope
    group = attempt.make_group(state, lambda rank, number: renewed(newest[rank], scope, rank, number))
    group.expect(actions)
    for (rank, number), pod in sorted(by_place.items()):
        group.adopt(rank, number, pod, is_newest=newest[rank] is pod)
    return True


def _place(pod: Mapping[str, Any]) -> tuple[int, int]:
    """Return the rank of a pod, and its number among the pods of its member."""
    labels = pod["metadata"]["labels"]
    return number_of(labels, MEMBER) or 0, number_of(labels, RETRY) or 0


def restore_state(newest: Mapping[int, Mapping[str, Any]]) -> tuple[GroupState, list[GroupAction]] | None:
    """Return the state of a dead runner's group and what is left to do; None if pods are missing, or say nothing.

    Args:
        newest: The newest pod of each member.
    """
    found = restored(newest)
    return found if found is not None and newest.keys() == set(range(len(found[0].members))) else None


def restored(newest: Mapping[int, Mapping[str, Any]]) -> tuple[GroupState, list[GroupAction]] | None:
    """As `restore_state`, also where members have no pod yet."""
    notes = [pod["metadata"]["annotations"] for pod in newest.values()]
    try:
        plan = GroupPlan.from_json(json.loads(notes[0][GROUP]))
        found = [_found(rank, pod) for rank, pod in newest.items()]
    except (ValueError, KeyError, TypeError):
        return None
    if not newest.keys() <= set(range(len(plan.members))):
        return None
    return GroupState.restore(plan, found)


def _found(rank: int, pod: Mapping[str, Any]) -> FoundPod:
    notes = pod["metadata"]["annotations"]
    note = json.loads(notes[GROUP_NOTE])
    return FoundPod(
        rank=rank,
        number=_place(pod)[1],
        note=note,
        has_begun=GO in notes,
        ended_by_itself=ended_at(pod) is not None and PodFacts.of(pod).deletion_at is None,
    )


def renewed(pod: Mapping[str, Any], scope: str, rank: int, number: int) -> dict[str, Any]:
    """Return another pod like that of a dead runner's member."""
    metadata, labels = pod["metadata"], pod["metadata"]["labels"]
    key = key_of(labels)
    assert key is not None, "the pod was found by its attempt"
    notes = {name: text for name, text in metadata["annotations"].items() if name not in (GO, LOG)}
    owners = {"ownerReferences": metadata["ownerReferences"]} if "ownerReferences" in metadata else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(scope, key, rank, number),
            "namespace": metadata["namespace"],
            "labels": {**labels, RETRY: str(number)},
            "annotations": notes,
            "finalizers": [FINALIZER],
            **owners,
        },
        "spec": {name: value for name, value in pod["spec"].items() if name not in _ADDED_SPEC},
    }
