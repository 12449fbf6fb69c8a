"""Ends of pods: what a real cluster answered, what is observed, and the class that follows."""

import json
from typing import Any

import pytest
from attrs import evolve
from pod_statuses import LATER, NAMES, events, facts, pod, with_condition
from torc_k8s.pods.facts import PodEvent, PodFacts
from torc_k8s.pods.observation import (
    ended,
    observe,
    observe_lost,
    observe_not_started,
    silent_since,
    unheard_since,
    was_evicted_by_taint,
)
from torc_k8s.pods.waiting import waiting_reason

from torc_framework.api import ExitObservation, classify_exit, exit_return_code

ENDS: dict[str, tuple[str, int | None, int | None, int]] = {
    "exit_0": ("success", 0, None, 0),
    "exit_13": ("user_error", 13, None, 13),
    "plain_exit_13": ("user_error", 13, None, 13),
    "command_not_found": ("user_error", 127, None, 127),
    "child_killed": ("signaled", None, 9, 137),
    "job_killed": ("signaled", None, 9, 137),
    "segfault": ("signaled", None, 11, 139),
    "main_killed": ("signaled", None, 9, 137),
    "main_segfault": ("signaled", None, 11, 139),
    "oom_of_job": ("oom", None, 9, 137),
    "oom_of_main": ("oom", None, 9, 137),
    "oom_of_child_exit_3": ("oom", 3, None, 137),
    "oom_of_child_exit_0": ("oom", 0, None, 137),
    "oom_of_child_plain_exit_0": ("oom", 0, None, 137),
    "pod_deadline": ("timeout", None, None, 152),
    "empty_dir_full": ("evicted", None, None, -128),
    "start_error": ("launch_failure", None, None, 1),
    "init_fails": ("launch_failure", None, None, 1),
    "refused_by_kubelet": ("launch_failure", None, None, 1),
    "sidecar_runs_on": ("user_error", 5, None, 5),
    "sidecar_fails": ("success", 0, None, 0),
    "deleted_with_handler": ("evicted", 7, None, 7),
    "deleted_with_handler_exit_0": ("evicted", 0, None, 1),
    "deleted_without_handler": ("evicted", None, 9, 137),
    "deleted_plain_without_handler": ("evicted", None, 9, 137),
    "deleted_with_grace_0": ("evicted", 7, None, 7),
    "deleted_after_its_end": ("success", 0, None, 0),
    "deleted_without_node": ("evicted", None, None, -128),
    "deleted_before_its_image": ("evicted", None, None, -128),
    "evicted_by_api": ("evicted", 7, None, 7),
    "preempted": ("preempted", 7, None, 7),
}
"""Class, exit code, signal and return code by scenario."""
WAITS = {
    "claim_missing",
    "image_being_pulled",
    "image_missing",
    "image_name_invalid",
    "image_never_pulled",
    "secret_missing",
    "unschedulable",
    "volume_missing",
}
ON_SILENT_NODES = {"node_silent", "node_silent_and_pod_deleted", "node_removed"}


def seen(name: str, **how: Any) -> ExitObservation:
    return observe(facts(name), LATER, events=events(name), **how)


@pytest.mark.parametrize("name", sorted(ENDS))
def test_an_end_gets_its_class(name: str) -> None:
    observation = seen(name)
    verdict = classify_exit(observation)
    found = str(verdict.exit_class), observation.exit_code, observation.signal, exit_return_code(observation, verdict)
    assert found == ENDS[name], verdict.reason
    assert ended(facts(name)) is (name != "deleted_before_its_image")


def test_every_status_is_an_end_or_a_wait() -> None:
    assert set(NAMES) - set(ENDS) - WAITS == ON_SILENT_NODES


@pytest.mark.parametrize("name", sorted(WAITS | ON_SILENT_NODES))
def test_a_pod_that_waits_or_runs_has_not_ended(name: str) -> None:
    assert not ended(facts(name))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "empty_dir_full",
            'the scheduler reports Evicted: Usage of EmptyDir volume "torc-volume-0" exceeds the limit "8Mi".',
        ),
        ("pod_deadline", "Pod was active on the node longer than the specified deadline"),
        ("start_error", 'exec: "/no/such/program": stat /no/such/program: no such file or directory'),
        ("init_fails", "could not be started: init container prepare ended with exit code 1"),
        ("refused_by_kubelet", "Node didn't have enough resource: cpu"),
        ("deleted_with_handler", "the scheduler reports Deleted: its pod was deleted, and not by torc"),
    ],
)
def test_the_reason_has_the_words_of_kubernetes(name: str, words: str) -> None:
    assert words in classify_exit(seen(name)).reason


def test_an_observation_is_lossless() -> None:
    observation = seen("start_error")
    raw = observation.raw
    assert raw["containers"][0]["exit_code"] == 128
    assert raw["containers"][0]["reason"] == "StartError"
    assert raw["node"] == "127.0.0.1"
    assert raw["pod"].startswith("torc-5ca1ab1e-j")
    assert raw["phase"] == "Failed"
    assert observation.started_at is None
    deletion = seen("deleted_with_handler").raw["deletion"]
    assert deletion["by"] == "another"
    assert deletion["grace_s"] == 4


def test_the_report_of_the_container_is_kept() -> None:
    observation = seen("oom_of_child_exit_3")
    assert observation.oom_kills == 1
    assert observation.peak_memory_bytes == 32 * 1024**2
    assert observation.cpu_time_s is not None
    assert observation.duration_s is not None
    assert 0 < observation.duration_s < 60
    assert observation.raw["stdout_bytes"] == 0
    assert observation.raw["stderr_bytes"] > 0


def reported(name: str, **report: Any) -> ExitObservation:
    """Return the observation of a captured end with other values in the container's report."""
    changed = pod(name)
    ended_state = changed["status"]["containerStatuses"][0]["state"]["terminated"]
    ended_state["message"] = json.dumps({**json.loads(ended_state["message"]), **report})
    return observe(PodFacts.of(changed), LATER)


def test_the_jobs_own_limit_is_a_timeout() -> None:
    observation = reported("exit_13", exit_code=143, limit_reached=True, limit_forced=True)
    assert classify_exit(observation).exit_class == "timeout"
    assert observation.stop_forced


def test_outputs_that_the_container_missed() -> None:
    observation = reported("exit_0", missing_outputs=["a", "b"], missing_count=900)
    assert classify_exit(observation).exit_class == "output_missing"
    assert observation.raw["missing_outputs"] == 900


def test_a_job_that_did_not_hear_of_the_deletion_has_finished() -> None:
    name = "deleted_with_handler_exit_0"
    assert classify_exit(reported(name)).exit_class == "evicted"
    assert classify_exit(reported(name, was_terminated=False)).exit_class == "success"
    assert classify_exit(reported(name, outputs_written=True)).exit_class == "success"


def test_what_the_program_could_not_start_is_a_launch_failure() -> None:
    observation = reported("exit_13", error="folder")
    assert "no such working folder" in str(observation.launch_error)
    assert classify_exit(observation).exit_class == "launch_failure"


def test_times_are_those_of_the_container() -> None:
    observation = seen("sidecar_fails")
    assert observation.started_at is not None
    assert observation.ended_at is not None
    assert 1 <= observation.ended_at - observation.started_at <= 4


def test_a_deletion_by_torc_is_no_eviction() -> None:
    observation = seen("deleted_with_handler", stopped=True)
    assert classify_exit(observation).exit_class == "user_error"
    assert observation.raw["deletion"]["by"] == "torc"


def test_an_end_before_the_deletion_is_the_jobs_own() -> None:
    early = pod("deleted_with_handler")
    early["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = "2020-01-01T00:00:00Z"
    assert observe(PodFacts.of(early), LATER).scheduler_state is None


@pytest.mark.parametrize(
    ("reason", "exit_class"),
    [
        ("PreemptionByScheduler", "preempted"),
        ("EvictionByEvictionAPI", "evicted"),
        ("DeletionByTaintManager", "evicted"),
        ("DeletionByPodGC", "node_failure"),
        ("TerminationByKubelet", "evicted"),
        ("SomethingNew", "evicted"),
    ],
)
def test_a_disruption_of_newer_versions_determines_the_class(reason: str, exit_class: str) -> None:
    disturbed = with_condition(
        "deleted_with_handler",
        type="DisruptionTarget",
        reason=reason,
        message="the node needs room",
        lastTransitionTime="2020-01-01T00:00:00Z",
    )
    observation = observe(disturbed, LATER)
    verdict = classify_exit(observation)
    assert verdict.exit_class == exit_class
    assert "the node needs room" in verdict.reason
    assert observation.raw["disruption"]["reason"] == reason


def test_a_disruption_after_the_end_changes_nothing() -> None:
    disturbed = with_condition(
        "exit_13", type="DisruptionTarget", reason="DeletionByPodGC", lastTransitionTime="2099-01-01T00:00:00Z"
    )
    assert classify_exit(observe(disturbed, LATER)).exit_class == "user_error"


def test_a_signal_that_kubernetes_reports_is_one() -> None:
    killed = pod("main_killed")
    killed["status"]["containerStatuses"][0]["state"]["terminated"]["signal"] = 15
    assert observe(PodFacts.of(killed), LATER).signal == 15


def test_a_code_that_the_kubelet_made_up_is_none() -> None:
    lost = pod("main_killed")
    lost["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] = "ContainerStatusUnknown"
    observation = observe(PodFacts.of(lost), LATER)
    assert (observation.exit_code, observation.signal) == (None, None)
    assert classify_exit(observation).exit_class == "node_failure"


def test_a_sidecar_of_newer_versions_does_not_hide_the_end() -> None:
    with_sidecar = pod("sidecar_runs_on")
    status = with_sidecar["status"]
    side = next(each for each in status["containerStatuses"] if each["name"] == "side")
    status["containerStatuses"].remove(side)
    status["initContainerStatuses"] = [side]
    found = PodFacts.of(with_sidecar)
    assert ended(found)
    assert observe(found, LATER).exit_code == 5


def test_a_pod_that_is_gone_was_deleted() -> None:
    running = evolve(facts("node_silent"), deletion_at=None)
    observation = observe(running, LATER, gone=True)
    assert classify_exit(observation).exit_class == "evicted"
    assert observation.ended_at == LATER


# --- nodes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(ON_SILENT_NODES))
def test_a_node_that_does_not_report_is_noticed(name: str) -> None:
    found = facts(name)
    since = silent_since(found)
    assert since is not None
    assert found.created_at is not None
    assert 0 <= since - found.created_at < 120
    observation = observe_lost(found, LATER, 300.0)
    verdict = classify_exit(observation)
    assert verdict.exit_class == "node_failure"
    assert f"node {found.node} has not reported for 5 min" in verdict.reason
    assert observation.started_at is not None


@pytest.mark.parametrize("name", sorted(set(NAMES) - ON_SILENT_NODES - {"deleted_before_its_image"}))
def test_other_nodes_report(name: str) -> None:
    assert silent_since(facts(name)) is None


def bound_pod(**parts: Any) -> PodFacts:
    """Return a pod that the scheduler has given to a node at 12:00:00, with these parts of a status."""
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-02T12:00:00Z"}
    status = {"phase": "Pending", "conditions": [bound], **parts}
    return PodFacts.of({"metadata": {"name": "a"}, "spec": {"nodeName": "n"}, "status": status})


CREATING: dict[str, Any] = {
    "containerStatuses": [{"name": "main", "ready": False, "state": {"waiting": {"reason": "ContainerCreating"}}}]
}
BOUND_AT = 1767355200.0


def test_a_node_that_says_nothing_about_a_new_pod_is_noticed() -> None:
    assert unheard_since(bound_pod()) == BOUND_AT
    assert unheard_since(bound_pod(), [PodEvent("Scheduled", at=BOUND_AT)]) == BOUND_AT
    assert unheard_since(evolve(bound_pod(), node="")) is None


def test_what_a_node_did_last_for_a_pod_that_does_not_begin() -> None:
    """Without events torc cannot tell a silent node from one that pulls an image."""
    creating = bound_pod(**CREATING)
    scheduled, pulling, pulled = (
        PodEvent(reason, at=BOUND_AT + at) for at, reason in enumerate(("Scheduled", "Pulling", "Pulled"))
    )
    assert unheard_since(creating) is None
    assert unheard_since(creating, [scheduled]) == BOUND_AT
    assert unheard_since(creating, [pulling, scheduled]) is None
    assert unheard_since(creating, [pulling, pulled, scheduled]) == BOUND_AT + 2


@pytest.mark.parametrize("name", sorted({"exit_0", "node_silent", "image_being_pulled", "unschedulable"}))
def test_nodes_at_work_are_heard(name: str) -> None:
    assert unheard_since(facts(name), events(name)) is None


def test_evictions_by_taints_are_known() -> None:
    assert was_evicted_by_taint(bound_pod(), [PodEvent("Scheduled"), PodEvent("TaintManagerEviction")])
    assert was_evicted_by_taint(with_condition("exit_0", type="DisruptionTarget", reason="DeletionByTaintManager"), ())
    assert not was_evicted_by_taint(bound_pod(), [PodEvent("Scheduled"), PodEvent("Preempted")])


# --- pods that never started ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "exit_class", "words"),
    [
        ("image_missing", "image_pull", "ImagePullBackOff: Failed to pull image"),
        ("image_never_pulled", "image_pull", "is not present with pull policy of Never"),
        ("image_name_invalid", "image_pull", "couldn't parse image reference"),
        ("secret_missing", "launch_failure", 'within 10 min: CreateContainerConfigError: secret "missing" not found'),
        ("volume_missing", "launch_failure", 'configmap "missing" not found'),
        ("unschedulable", "launch_failure", "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu."),
    ],
)
def test_a_pod_that_did_not_start_ends_with_the_words_of_kubernetes(name: str, exit_class: str, words: str) -> None:
    why = waiting_reason(facts(name), events(name))
    assert why is not None
    observation = observe_not_started(facts(name), why, LATER, 600.0)
    verdict = classify_exit(observation)
    assert verdict.exit_class == exit_class
    assert words in verdict.reason
    assert observation.raw["waited_s"] == 600.0
