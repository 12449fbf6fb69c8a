"""Why pods do not start: real statuses, and the kinds that follow."""

import pytest
from attrs import evolve
from pod_statuses import NAMES, events, facts, pod
from torc_k8s.pods.facts import PodEvent, PodFacts
from torc_k8s.pods.waiting import WaitingKind, waiting_reason

WAITS = {
    "image_being_pulled": ("stuck", "ErrImagePull: ", "connection refused"),
    "image_missing": ("stuck", "ImagePullBackOff: Failed to pull image", "connection refused"),
    "image_never_pulled": ("stuck", "ErrImageNeverPull: ", "is not present"),
    "image_name_invalid": ("stuck", "InvalidImageName: ", "repository name must be lowercase"),
    "secret_missing": ("stuck", "CreateContainerConfigError: ", 'secret "missing" not found'),
    "volume_missing": ("stuck", "FailedMount: ", 'configmap "missing" not found'),
    "claim_missing": ("stuck", "Unschedulable: ", 'persistentvolumeclaim "missing" not found'),
    "unschedulable": ("for_room", "Unschedulable: ", "1 Insufficient cpu."),
}


@pytest.mark.parametrize("name", sorted(WAITS))
def test_a_wait_is_told_in_the_words_of_kubernetes(name: str) -> None:
    why = waiting_reason(facts(name), events(name))
    assert why is not None
    kind, begins, contains = WAITS[name]
    assert why.kind == kind
    assert why.text.startswith(begins)
    assert contains in why.text
    assert "\n" not in why.text
    assert why.since is not None


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(WAITS)))
def test_a_pod_that_has_started_or_ended_does_not_wait(name: str) -> None:
    assert waiting_reason(facts(name), events(name)) is None


def test_a_mount_needs_events() -> None:
    assert waiting_reason(facts("volume_missing")) is None


def test_the_newest_event_counts() -> None:
    found = facts("volume_missing")
    pulling = PodEvent("Pulling", 'Pulling image "x"', at=3e9)
    why = waiting_reason(found, [*events("volume_missing"), pulling])
    assert why is not None
    assert why.kind is WaitingKind.PREPARING


def test_a_node_that_never_answers_is_told() -> None:
    found = evolve(facts("volume_missing"), main=None)
    why = waiting_reason(found, [PodEvent("NodeNotReady", "Node is not ready", True, 1.0)])
    assert why is not None
    assert why.text == "NodeNotReady: Node is not ready"


def test_gates_and_nominations_of_newer_versions() -> None:
    gated = pod("unschedulable")
    gated["status"]["conditions"][0] |= {"reason": "SchedulingGated", "message": "Scheduling is blocked"}
    gated["status"]["nominatedNodeName"] = "n1"
    why = waiting_reason(PodFacts.of(gated))
    assert why is not None
    assert why.kind is WaitingKind.FOR_ROOM
    assert why.text == "SchedulingGated: Scheduling is blocked (others make room on node n1)"
