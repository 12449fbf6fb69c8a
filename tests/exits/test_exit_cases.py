"""Questions on endings, answered: our own table, and the file that TORC_EXIT_CASES names, if it does."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.exit_cases.cases import EXECUTORS, OTHER_NAMES, answer_case
from torc_framework.models.exits import ExitClass

SAMPLES = os.environ.get("TORC_EXIT_CASES")
GIB = 2**30


def ended(name: str, code: int, reason: str = "Error", **more: Any) -> dict[str, Any]:
    """Return a container that ended."""
    return {"name": name, "terminated": {"reason": reason, "exit_code": code, **more}}


def waits(name: str, reason: str, *, init: bool = False) -> dict[str, Any]:
    """Return a container that waits."""
    return {"name": name, "init": init, "waiting": {"reason": reason}}


def pod(*containers: dict[str, Any], phase: str = "Failed", **more: Any) -> dict[str, Any]:
    """Return a pod with these containers."""
    return {"pod_phase": phase, "containers": list(containers), **more}


def condition(type_: str, reason: str) -> dict[str, str]:
    """Return a condition that holds."""
    return {"type": type_, "status": "True", "reason": reason}


def node(code: int, signal: int = 0, **more: Any) -> dict[str, Any]:
    """Return the end of a batch process on one node."""
    return {"code": code, "signal": signal, **more}


def one(*exit_: Any, **more: Any) -> dict[str, Any]:
    """Return a job on one node."""
    return {"nodes": {"a": node(*exit_)}, "primary": "a", **more}


def failed(code: int, peak: int | None, minutes: float, runtime: str = "PT60M") -> dict[str, Any]:
    """Return a failed job that asked for 4 GiB."""
    limits = {"memory_limit": "4g", "runtime_limit": runtime}
    return {
        "status": "failed",
        "return_code": code,
        "peak_memory_bytes": peak,
        "exec_time_minutes": minutes,
        **limits,
    }


TEN, ALL = {"exit_codes": [10, 11], "max_retries": 3}, {"match_all_exit_codes": True, "max_retries": 2}
AGAIN = {"exit_actions": {"RESCHEDULE": "11-20"}, "max_retry_per_task": 2}

# executor, kind, observation, policy, values of the answer
CASES: list[tuple[str, str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    # programs and shells
    ("local", "classify", {"exit_code": 0}, {}, {"outcome": "success", "status": "completed", "exit": 0}),
    ("local", "classify", {"exit_code": 137}, {}, {"outcome": "user_error", "exit": 137}),
    ("local", "classify", {"signal": 9}, {}, {"outcome": "signaled", "exit": 137, "signal": 9}),
    ("local", "classify", {"exit_code": -11}, {}, {"outcome": "signaled", "exit": 139}),
    ("shell", "classify", {"exit_code": 127}, {}, {"outcome": "user_error", "exit": 127}),
    ("local", "classify", {}, {}, {"outcome": "unknown", "confidence": 0.0}),
    ("local", "classify", {"launch_error": "no shell"}, {}, {"outcome": "launch_failure", "exit": 1}),
    # Torc's own jobs
    ("torc-local", "classify", {"signal": 7}, {}, {"outcome": "signaled", "status": "failed", "exit": 135}),
    ("torc-local", "classify", {"signal": 9, "killed_by": "memory_monitor"}, {}, {"outcome": "oom", "exit": 137}),
    ("torc-local", "classify", {"signal": 9, "oom_kill": True}, {"oom_exit_code": 99}, {"outcome": "oom", "exit": 99}),
    ("torc-local", "classify", {"exit_code": 0, "sigterm_sent": True}, {}, {"outcome": "success", "exit": 0}),
    ("torc-local", "classify", {"exit_code": 3, "sigterm_sent": True}, {}, {"status": "terminated", "exit": 3}),
    ("torc-local", "classify", {"signal": 15, "sigterm_sent": True}, {}, {"status": "terminated", "exit": 143}),
    ("torc-local", "classify", {"signal": 9, "sigterm_sent": True}, {}, {"status": "terminated", "exit": 152}),
    ("torc-local", "classify", {"canceled": True}, {}, {"outcome": "canceled", "status": "canceled", "exit": None}),
    ("torc-local", "classify", {"runner_gone": True}, {}, {"outcome": "orphaned", "status": "failed", "exit": -128}),
    ("torc-slurm", "classify", {"scheduler_state": "TIMEOUT"}, {}, {"status": "terminated", "exit": 152}),
    ("torc-slurm", "classify", {"scheduler_state": "TIMEOUT"}, {"timeout_exit_code": 9}, {"exit": 9}),
    ("torc-slurm", "classify", {"exit_code": 1, "scheduler_state": "OUT_OF_MEMORY"}, {}, {"exit": 137}),
    ("torc-slurm", "classify", {"exit_code": 152, "scheduler_state": "CANCELLED by 7"}, {}, {"exit": 143}),
    (
        "torc-slurm",
        "classify",
        {"scheduler_state": "ODD"},
        {},
        {"outcome": "unknown", "reason": "the scheduler reports ODD"},
    ),
    # failure handlers
    (
        "torc",
        "match",
        {"return_code": 10, "attempt_id": 2},
        {"rules": [ALL, TEN]},
        {"rule_index": 1, "action": "retry"},
    ),
    (
        "torc",
        "match",
        {"return_code": 10, "attempt_id": 3},
        {"rules": [TEN, ALL]},
        {"status": "failed", "action": "fail"},
    ),
    (
        "torc",
        "match",
        {"return_code": 5, "attempt_id": 1},
        {"rules": [TEN, ALL]},
        {"status": "ready", "next_attempt_id": 2},
    ),
    ("torc", "match", {"return_code": 5}, {"rules": [TEN]}, {"status": "failed", "action": "fail", "rule_index": None}),
    ("torc", "match", {"return_code": 5}, {"use_pending_failed": True}, {"status": "pending_failed", "action": "pend"}),
    ("torc", "match", {"return_code": 0, "status": "completed"}, {"rules": [ALL]}, {"action": "none"}),
    ("torc", "match", {"return_code": 9, "status": "canceled"}, {"rules": [ALL]}, {"action": "none"}),
    ("torc", "match", {"return_code": 9, "reservation": "refused"}, {"rules": [ALL]}, {"action": "fail"}),
    ("torc", "match", {"return_code": 9, "recovery_script_exit": 1}, {"rules": [ALL]}, {"action": "retry"}),
    ("torc", "validate", {"rule": {"exit_codes": [1], "max_retries": 2}}, {}, {"valid": True}),
    ("torc", "validate", {"rule": {"exit_codes": [True]}}, {}, {"valid": False}),
    ("torc", "validate", {"rule": {"retries": 3}}, {}, {"valid": False}),
    ("torc", "validate", {"rules": [{"match_all_exit_codes": "yes"}]}, {}, {"valid": False}),
    # diagnosis and the next try
    ("torc", "diagnose", failed(137, None, 20), {}, {"oom_reason": "sigkill_137", "likely_timeout": False}),
    ("torc", "diagnose", failed(137, 3 * GIB, 51), {}, {"likely_oom": False, "likely_timeout": False}),
    ("torc", "diagnose", failed(137, None, 51, "?"), {}, {"likely_oom": True}),
    ("torc", "diagnose", failed(1, 5 * GIB, 10), {}, {"memory_over_utilization": "+25.0%", "outcome": "oom"}),
    ("torc", "diagnose", failed(152, None, 30), {}, {"timeout_reason": "sigxcpu_152", "runtime_utilization": "50.0%"}),
    ("torc", "diagnose", failed(152, None, 30, "?"), {}, {"likely_timeout": True, "runtime_utilization": None}),
    ("torc", "diagnose", failed(1, None, 54), {}, {"likely_timeout": False}),
    ("torc", "diagnose", failed(1, 5 * GIB, 55), {}, {"likely_oom": True, "likely_timeout": True}),
    ("torc", "diagnose", {"status": "completed", "return_code": 0}, {}, {"analysed": False, "outcome": "success"}),
    (
        "torc",
        "recover",
        {"likely_oom": True, "peak_memory_bytes": 8 * GIB},
        {},
        {"new_memory": "12g", "action": "retry"},
    ),
    ("torc", "recover", {"likely_oom": True, "memory_limit": "1000m"}, {}, {"new_memory": "2g"}),
    (
        "torc",
        "recover",
        {"likely_oom": True, "memory_limit": "10k"},
        {"memory_multiplier": 1.25},
        {"new_memory": "13k"},
    ),
    ("torc", "recover", {"likely_oom": True, "peak_memory_bytes": [GIB, 2 * GIB]}, {}, {"new_memory": "3g"}),
    ("torc", "recover", {"likely_timeout": True, "runtime_limit": "PT2H"}, {}, {"new_runtime": "PT2H48M"}),
    ("torc", "recover", {"likely_timeout": True, "runtime_limit": "PT30S"}, {}, {"new_runtime": "PT1M"}),
    ("torc", "recover", {"num_cpus": 2, "peak_cpu_percent": 350}, {}, {"new_num_cpus": 4, "action": "none"}),
    ("torc", "recover", {}, {"retry_unknown": True}, {"action": "retry", "new_memory": None}),
    # log lines
    ("torc", "log_pattern", {"line": "Room 7 was skilled"}, {}, {"pattern": None, "severity": None}),
    ("torc", "log_pattern", {"line": "oom-kill of 7"}, {}, {"pattern": "OOM Killed", "severity": "ERROR"}),
    ("torc", "log_pattern", {"line": "slurmstepd: error: odd"}, {}, {"pattern": "Slurm Error"}),
    ("torc", "log_pattern", {"line": "one Error here"}, {}, {"pattern": "Generic Error", "severity": "WARN"}),
    (
        "torc",
        "log_pattern",
        {"tool": "slurm parse-logs", "line": "RuntimeError: CUDA out of memory"},
        {},
        {"pattern": "CUDA out of memory", "severity": "error"},
    ),
    (
        "torc",
        "log_pattern",
        {"tool": "slurm parse-logs", "line": "slurmstepd: error: JOB 5 CANCELLED DUE TO PREEMPTION"},
        {},
        {"pattern": "Job terminated due to preemption", "severity": "warning"},
    ),
    # Slurm's accounting
    ("slurm", "classify", {"scheduler_state": "FAILED", "exit": "0:9"}, {}, {"reason": "RaisedSignal:9(Killed)"}),
    ("slurm", "classify", {"scheduler_state": "CANCELLED by 7", "exit": "0:0"}, {}, {"status": "CANCELLED"}),
    ("slurm", "classify", {"scheduler_state": "CANC+", "exit": "0:15"}, {}, {"outcome": "canceled"}),
    ("slurm", "classify", {"scheduler_state": "RE+", "exit": "0:0"}, {}, {"outcome": "unknown", "status": "RE+"}),
    ("slurm", "classify", {"scheduler_state": "RUNNING"}, {}, {"outcome": None}),
    ("slurm", "classify", {"scheduler_state": "TO"}, {}, {"outcome": "timeout", "status": "TIMEOUT"}),
    (
        "slurm",
        "classify",
        {"rows": [{"JobID": "1.batch", "State": "CANCELLED"}, {"JobID": "1", "State": "TIMEOUT", "ExitCode": "0:0"}]},
        {},
        {"outcome": "timeout", "exit": "0:0"},
    ),
    ("slurm", "parse_time", {"text": "90:00", "unit": "minutes"}, {}, {"value": 90}),
    ("slurm", "parse_time", {"text": "UNLIMITED", "unit": "minutes"}, {}, {"value": "unlimited"}),
    # a controller in Slurm's manner
    ("spur", "classify", one(0), {}, {"status": "COMPLETED", "reason": "None", "derived_exit": "0:0"}),
    ("spur", "classify", one(0, 2), {}, {"exit": "0:2", "reason": "RaisedSignal:2(Interrupt)"}),
    ("spur", "classify", one(7, time_limit_signalled=True), {}, {"status": "TIMEOUT", "exit": "7:0"}),
    ("spur", "classify", one(7, limit_mark_after_end=True), {}, {"status": "FAILED"}),
    ("spur", "classify", one(1, oom=True), {}, {"status": "OUT_OF_MEMORY", "exit": "1:0"}),
    ("spur", "classify", one(1, 0x1009), {}, {"status": "OUT_OF_MEMORY", "exit": "1:9"}),
    ("spur", "classify", one(2, steps=[7, {"signal": 9}, 2]), {}, {"exit": "2:0", "derived_exit": "137:0"}),
    ("spur", "classify", one(2, steps=[{"id": 2**32 - 2, "code": 9}]), {}, {"derived_exit": "0:0"}),
    ("spur", "classify", {"nodes": {"b": node(9), "c": node(0, 11)}, "primary": "a"}, {}, {"exit": "0:11"}),
    ("spur", "classify", {"nodes": {"b": node(0)}, "primary": "a"}, {}, {"exit": "0:0", "status": "COMPLETED"}),
    ("spur", "classify", {"event": "node_down"}, {}, {"exit": "-1:0", "status": "NODE_FAIL", "reason": "NodeDown"}),
    ("spur", "match", {"event": "node_down", "requeue_count": 5}, {"requeue": True}, {"action": "hold"}),
    ("spur", "match", {"event": "timeout", "requeue_count": 0}, {"requeue": True}, {"action": "retry"}),
    ("spur", "match", {"state": "FAILED", "exit": "1:0"}, {"requeue": True}, {"action": "none"}),
    ("spur", "match", {"event": "preempt_requeue", "requeue_count": 5}, {}, {"action": "retry", "requeue_count": 5}),
    ("spur", "match", {"event": "preempt_cancel"}, {}, {"status": "PREEMPTED", "exit": "-1:0"}),
    ("spur", "match", {"event": "launch_failure", "requeue_count": 2}, {"interval": 1}, {"delay_s": 20}),
    ("spur", "validate", {"reported_state": "FAILED", "exit_code": 0, "signal": 9}, {}, {"valid": False}),
    ("spur", "validate", {"reported_state": "RUNNING", "exit_code": 0}, {}, {"valid": False}),
    ("spur", "parse_time", {"text": "1-00:00:01", "unit": "minutes"}, {}, {"value": 1441}),
    ("spur", "parse_time", {"text": "2D12h"}, {}, {"value": 3600}),
    ("spur", "parse_time", {"text": "1-12"}, {}, {"value": "error"}),
    ("spur", "parse_time", {"text": "4294967296", "unit": "minutes"}, {}, {"value": "error"}),
    # OSMO
    ("osmo", "match", {"exit_code": 16, "status": "FAILED"}, AGAIN, {"status": "RESCHEDULED", "next_retry_id": 1}),
    (
        "osmo",
        "match",
        {"exit_code": 16, "status": "FAILED", "retry_id": 2},
        AGAIN,
        {"status": "FAILED", "action": "none"},
    ),
    ("osmo", "match", {"exit_code": 0, "status": "COMPLETED"}, {"exit_actions": {"FAIL": 0}}, {"status": "FAILED"}),
    (
        "osmo",
        "match",
        {"exit_code": 3000, "status": "FAILED_UPSTREAM"},
        {"exit_actions": {"FAIL": "3000"}},
        {"action": "none"},
    ),
    (
        "osmo",
        "match",
        {"exit_code": 5, "status": "FAILED"},
        {"exit_actions": {"FAIL": "9-1", "complete": "5"}},
        {"action": "complete"},
    ),
    ("osmo", "classify", pod(ended("user", 7)), {}, {"status": "FAILED", "exit": 7, "outcome": "user_error"}),
    ("osmo", "classify", pod(ended("osmo-ctrl", 1, message='{"code": 10}'), ended("user", 1)), {}, {"exit": 2010}),
    ("osmo", "classify", pod(ended("osmo-ctrl", 5, message="{")), {}, {"exit": 2005, "outcome": "service_error"}),
    ("osmo", "classify", pod(ended("preflight-test", 4)), {}, {"exit": 1004, "outcome": "preflight"}),
    ("osmo", "classify", pod(ended("user", 137, "OOMKilled")), {}, {"status": "FAILED_EVICTED", "outcome": "oom"}),
    (
        "osmo",
        "classify",
        pod(ended("user", 9, "OOMKilled"), phase="Running"),
        {},
        {"status": "RUNNING", "outcome": None},
    ),
    ("osmo", "classify", pod(ended("user", 125, "StartError"), phase="Running"), {}, {"status": "FAILED", "exit": 125}),
    ("osmo", "classify", pod(), {}, {"exit": 4000, "outcome": "unknown"}),
    ("osmo", "classify", pod(pod_reason="Evicted"), {}, {"exit": 3004, "outcome": "evicted"}),
    (
        "osmo",
        "classify",
        pod(waits("osmo-ctrl", "ErrImagePull"), phase="Pending"),
        {},
        {"exit": 2302, "outcome": "image_pull"},
    ),
    (
        "osmo",
        "classify",
        pod(waits("user", "CrashLoopBackOff"), phase="Pending"),
        {},
        {"status": "FAILED", "exit": 304},
    ),
    (
        "osmo",
        "classify",
        pod(waits("i", "PodInitializing", init=True), phase="Pending"),
        {},
        {"status": "INITIALIZING"},
    ),
    (
        "osmo",
        "classify",
        pod(waits("user", "CreateContainerConfigError"), phase="Pending", not_ready_minutes=11),
        {},
        {"status": "FAILED_BACKEND_ERROR", "exit": 3001},
    ),
    (
        "osmo",
        "classify",
        pod(phase="Succeeded", conditions=[condition("DisruptionTarget", "EvictionByEvictionAPI")]),
        {},
        {"status": "FAILED_BACKEND_ERROR", "outcome": "node_failure"},
    ),
    ("osmo", "classify", {"exit_code": 3006}, {}, {"status": "FAILED_PREEMPTED", "outcome": "preempted"}),
    ("osmo", "group", {"tasks": [{"status": "RESCHEDULED", "lead": True}]}, {}, {"status": "INITIALIZING"}),
    ("osmo", "group", {"groups": ["FAILED_UPSTREAM", "FAILED_EVICTED"]}, {}, {"status": "FAILED_EVICTED"}),
    ("osmo", "group", {"groups": ["FAILED_EVICTED", "FAILED_CANCELED"]}, {}, {"status": "FAILED_CANCELED"}),
    ("osmo", "validate", {"exit_actions": {"FAIL": "1-23-4"}}, {}, {"valid": False}),
    ("osmo", "validate", {"exit_actions": {"FAIL": True}}, {}, {"valid": False}),
    ("osmo", "validate", {"exit_actions": {"RESTART": "1"}}, {}, {"valid": False}),
    ("osmo", "validate", {"tasks": [{"lead": True}, {"lead": True}]}, {}, {"valid": False}),
    # Kubernetes
    ("k8s", "classify", pod(ended("main", 137, "OOMKilled"), ended("side", 1)), {}, {"outcome": "oom", "exit": 137}),
    ("k8s", "classify", pod(ended("main", 137)), {}, {"outcome": "user_error", "exit": 137}),
    ("k8s", "classify", pod(ended("main", 127, "ContainerCannotRun")), {}, {"outcome": "launch_failure"}),
    ("k8s", "classify", pod(waits("main", "ImagePullBackOff"), phase="Pending"), {}, {"outcome": "image_pull"}),
    (
        "k8s",
        "classify",
        pod(conditions=[condition("DisruptionTarget", "DeletionByPodGC")]),
        {},
        {"outcome": "node_failure"},
    ),
    ("k8s", "classify", pod(phase="Running"), {}, {"outcome": None, "status": "Running"}),
    ("k8s", "match", pod(ended("main", 1), retries=6), {}, {"action": "fail"}),
    ("k8s", "match", pod(ended("main", 1), retries=5), {}, {"action": "retry"}),
    # other batch systems
    ("lsf", "classify", {"term_reason": "TERM_FORCE_OWNER", "exit_code": 130}, {}, {"outcome": "canceled"}),
    ("lsf", "classify", {"term_reason": 16}, {}, {"outcome": "oom", "reason": "TERM_MEMLIMIT"}),
    ("lsf", "classify", {"term_reason": "TERM_NEW"}, {}, {"outcome": "unknown", "reason": "TERM_NEW"}),
    ("pbs", "classify", {"exit_status": 137, "base": 128}, {}, {"outcome": "signaled", "signal": 9}),
    ("torque", "classify", {"exit_status": 271}, {}, {"outcome": "signaled", "signal": 15}),
    ("pbs", "classify", {"exit_status": -29}, {}, {"outcome": "timeout"}),
    ("htcondor", "classify", {"hold_reason_code": 12}, {}, {"outcome": "service_error"}),
    ("htcondor", "classify", {"ExitBySignal": True, "ExitSignal": 9}, {}, {"outcome": "signaled", "exit": "0:9"}),
    ("aws-batch", "classify", {"exit_code": 137, "reason": "OutOfMemoryError: killed"}, {}, {"outcome": "oom"}),
    ("aws-batch", "match", {"exit_code": 1, "attempt": 1}, {"attempts": 2}, {"action": "retry"}),
    (
        "aws-batch",
        "match",
        {"exit_code": 1, "attempt": 1},
        {"attempts": 2, "evaluate_on_exit": [{"onExitCode": "1*", "action": "EXIT"}]},
        {"action": "fail", "rule_index": 0},
    ),
    ("sge", "match", {"exit_code": 99}, {}, {"action": "retry"}),
    ("nextflow", "match", {"exit_code": 137, "attempt": 1}, {}, {"action": "retry"}),
    ("nextflow", "match", {"exit_code": 137, "attempt": 2}, {}, {"action": "fail"}),
    ("nextflow", "match", {"exit_code": 1}, {"error_strategy": "ignore"}, {"action": "complete"}),
]


@pytest.mark.parametrize(("executor", "kind", "observation", "policy", "expected"), CASES)
def test_answers(
    executor: str, kind: str, observation: dict[str, Any], policy: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Each answer has at least these values, and the question's id."""
    case = {"id": "a", "executor": executor, "kind": kind, "observation": observation, "policy": policy}
    answer = answer_case(case)
    assert {key: answer.get(key, "absent") for key in expected} == expected
    assert answer["id"] == "a"
    assert answer == answer_case(json.loads(json.dumps(case)))  # nothing but the question decides


AS_WRITTEN = {"text", "line", "tool", "rules", "rule", "exit_actions", "pool_default_exit_actions", "message", "name"}
"""Keys whose values are read as they are written."""
STATES = {"state", "scheduler_state", "status", "pod_phase", "event", "allocation_state"}


def respelled(value: Any, key: str = "") -> Any:
    """Return a value of JSON as another program might write it: numbers and flags as texts, no nulls, other case."""
    if key in AS_WRITTEN:
        return value
    if isinstance(value, dict):
        return {name: respelled(inner, name) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [respelled(inner, key) for inner in value]
    if isinstance(value, (bool, int)):
        return str(value).lower()
    return value.lower() if isinstance(value, str) and key in STATES else value


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without the sentences for people, in which words stand as they were spelled."""
    return {
        key: value.upper() if key == "status" and isinstance(value, str) else value
        for key, value in answer.items()
        if key not in ("reason", "message")
    }


@pytest.mark.parametrize(
    ("executor", "kind", "observation", "policy"),
    [case[:4] for case in CASES if case[1] not in ("validate", "parse_time")],
)
def test_other_spellings(executor: str, kind: str, observation: dict[str, Any], policy: dict[str, Any]) -> None:
    """Nothing of an answer depends on how the question is written."""
    case = {"id": 1, "executor": executor, "kind": kind, "observation": observation, "policy": policy}
    other = {**case, "executor": executor.upper(), "observation": respelled(observation), "policy": respelled(policy)}
    assert comparable(answer_case(other)) == comparable(answer_case(case))


def samples() -> Iterator[Any]:
    """Yield the samples."""
    if SAMPLES:
        cases = json.loads(Path(SAMPLES).read_text(encoding="utf-8"))["cases"]
        yield from (pytest.param(case, id=str(case["id"])) for case in cases)


@pytest.mark.skipif(not SAMPLES, reason="TORC_EXIT_CASES names no file of samples")
@pytest.mark.parametrize("case", list(samples()))
def test_samples(case: dict[str, Any]) -> None:
    """Samples get exactly the answers that they expect."""
    answer = answer_case(case)
    assert {key: answer.get(key) for key in case["expected"]} == case["expected"]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (7, "a case is 7; expected an object"),
        ({}, "executor is None; known: torc, "),
        ({"executor": "osmo", "kind": "guess"}, "kind is 'guess'; known of osmo: classify"),
        ({"executor": "local", "observation": 3}, "case.observation is 3; expected an object"),
        ({"executor": "local", "observation": {"exit_code": "a"}}, "exit_code is 'a'; expected a whole number"),
        (
            {
                "executor": "osmo",
                "kind": "match",
                "observation": {"exit_code": 1},
                "policy": {"exit_actions": {"SKIP": "1"}},
            },
            "exit action 'SKIP'",
        ),
        ({"executor": "slurm", "observation": {"exit": "a:b", "scheduler_state": "FAILED"}}, "'a:b' is no exit code"),
    ],
)
def test_wrong_questions(case: Any, message: str) -> None:
    """A question that makes no sense is told so, by the name of what is wrong."""
    answer = answer_case(case)
    assert message in answer["error"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
known_keys = sorted({key for *_, seen, policy, _ in CASES for key in (*seen, *policy)})
known_values = st.sampled_from([value for *_, seen, policy, _ in CASES for value in (*seen.values(), *policy.values())])
facts = st.dictionaries(st.sampled_from(known_keys) | st.text(max_size=8), known_values | json_values, max_size=6)


@given(
    st.sampled_from([*EXECUTORS, *OTHER_NAMES]),
    st.sampled_from(["classify", "match", "group", "validate", "diagnose", "recover", "parse_time", "log_pattern"]),
    facts,
    facts,
)
def test_every_question_gets_an_answer(
    executor: str, kind: str, observation: dict[str, Any], policy: dict[str, Any]
) -> None:
    """Whatever is asked: an answer or an error, the same each time, of words that are known."""
    case = {"id": 1, "executor": executor, "kind": kind, "observation": observation, "policy": policy}
    before = json.dumps(case)
    answer = answer_case(case)
    assert json.dumps(answer) == json.dumps(answer_case(case))
    assert json.dumps(case) == before
    assert answer.get("outcome") in {None, *ExitClass}
    assert 0.0 <= answer.get("confidence", 0.0) <= 1.0


@given(json_values)
def test_no_document_breaks_it(case: Any) -> None:
    """Any value of JSON is answered."""
    assert "id" in answer_case(case)
