"""Cases of job life cycles: requeues and pauses, accounting rows, Jobs of Kubernetes, PBS, shared requirements."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.exit_cases.cases import answer_case
from torc_framework.exit_cases.spur_events import CONTROLLER_EVENTS


def ask(executor: str, kind: str, observation: dict[str, Any], policy: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the answer to a case."""
    return answer_case({"executor": executor, "kind": kind, "observation": observation, "policy": policy or {}})


ASKED = {"requeue": True, "max_batch_requeue": 5}
UNASKED = {"requeue": False, "max_batch_requeue": 5}


@pytest.mark.parametrize(
    ("seen", "policy", "expected"),
    [
        ({"event": "node_down", "requeue_count": 4}, ASKED, ("PENDING", "retry", 5, "NodeDown")),
        ({"event": "node_down", "requeue_count": 5}, ASKED, ("PENDING", "hold", 5, "JobHoldMaxRequeue")),
        ({"event": "node_down", "requeue_count": 0}, UNASKED, ("NODE_FAIL", "none", 0, "NodeDown")),
        ({"state": "NODE_FAIL", "requeue_count": 1}, ASKED, ("PENDING", "retry", 2, "NodeDown")),
        ({"event": "timeout", "requeue_count": 0}, ASKED, ("PENDING", "retry", 1, "TimeLimit")),
        ({"event": "timeout", "requeue_count": 0}, UNASKED, ("TIMEOUT", "none", 0, "TimeLimit")),
        ({"event": "TIMEOUT", "requeue_count": 0}, ASKED, ("PENDING", "retry", 1, "TimeLimit")),
        ({"event": "oom"}, ASKED, ("OUT_OF_MEMORY", "none", 0, "OutOfMemory")),
        ({"event": "admin_requeue", "requeue_count": 9}, ASKED, ("PENDING", "retry", 9, "None")),
        ({"event": "requeue", "requeue_count": 9}, ASKED, ("PENDING", "retry", 9, "None")),
        ({"event": "preempted", "mode": "requeue", "requeue_count": 5}, UNASKED, ("PENDING", "retry", 5, "Preempted")),
        ({"event": "preempted", "mode": "cancel", "by": 4}, ASKED, ("PREEMPTED", "none", 0, "preempted by job 4")),
        (
            {"event": "preempted", "mode": "requeue", "by": 42, "qos": "high"},
            UNASKED,
            ("PENDING", "retry", 0, "preempted by job 42 (QOS: high)"),
        ),
        ({"event": "preempted", "mode": "suspend"}, ASKED, ("SUSPENDED", "none", 0, "Preempted")),
        ({"event": "cancel"}, ASKED, ("CANCELLED", "none", 0, "None")),
        ({"event": "user_hold"}, ASKED, ("PENDING", "hold", 0, "JobHeldUser")),
        ({"event": "held_by_admin"}, ASKED, ("PENDING", "hold", 0, "JobHeldAdmin")),
        ({"event": "launch_failure", "requeue_count": 4}, ASKED, ("PENDING", "retry", 5, "JobLaunchFailure")),
        ({"event": "launch_failure", "requeue_count": 5}, ASKED, ("PENDING", "hold", 5, "JobHoldMaxRequeue")),
    ],
)
def test_whether_a_job_is_queued_again(seen: dict[str, Any], policy: dict[str, Any], expected: tuple[Any, ...]) -> None:
    answer = ask("spur", "match", seen, policy)
    assert tuple(answer[key] for key in ("status", "action", "requeue_count", "reason")) == expected


@pytest.mark.parametrize("state", ["FAILED", "OUT_OF_MEMORY", "COMPLETED", "DEADLINE", "BOOT_FAIL"])
def test_other_ends_are_never_queued_again(state: str) -> None:
    answer = ask("spur", "match", {"state": state, "exit": "1:0", "requeue_count": 0}, ASKED)
    assert (answer["status"], answer["action"], answer["exit"]) == (state, "none", "1:0")


def test_an_event_after_the_end_has_no_effect() -> None:
    answer = ask("spur", "match", {"event": "time limit after the end"}, ASKED)
    assert (answer["action"], answer["outcome"]) == ("none", None)


@given(st.integers(1, 600), st.integers(0, 100), st.integers(5, 3600))
def test_the_pause_before_a_launch_doubles_up_to_its_cap(interval: int, count: int, cap: int) -> None:
    def pause(requeues: int) -> int:
        seen = {"requeue_count": requeues, "scheduler_interval_s": interval}
        answer = ask("spur", "match", seen, {"max_launch_backoff_secs": cap})
        assert (answer["outcome"], answer["action"]) == ("launch_failure", "retry")
        return int(answer["backoff_seconds"])

    assert pause(0) == min(max(2 * interval + 3, 5), cap)
    assert pause(count + 1) in {min(2 * pause(count), cap), pause(count)}
    assert pause(count) <= cap


@pytest.mark.parametrize("name", CONTROLLER_EVENTS)
def test_each_event_is_also_an_end_without_exit(name: str) -> None:
    """An unseen end has the exit -1:0."""
    answer = ask("spur", "classify", {"event": name})
    assert (answer["status"], answer["exit"]) == (CONTROLLER_EVENTS[name].state, "-1:0")
    assert ask("spur", "classify", {"event": name, "exit": "1:0"})["exit"] == "1:0"


@pytest.mark.parametrize(
    ("kind", "seen", "message"),
    [
        ("match", {"event": "frobnicated"}, "observation.event is 'frobnicated'; known: held_by_user"),
        ("match", {"state": "BROKEN"}, "observation.state is 'BROKEN'; expected a state of a job"),
        ("match", {}, "observation has no event; known: "),
        ("classify", {"event": "frobnicated"}, "observation.event is 'frobnicated'; known: "),
        ("classify", {}, "observation is empty; expected nodes, exit, event or state"),
    ],
)
def test_unknown_events_are_refused(kind: str, seen: dict[str, Any], message: str) -> None:
    assert message in ask("spur", kind, seen)["error"]


# --- rows of accounting ----------------------------------------------------------------------------


def row(id_: str, state: str, exit_: str = "0:0", **more: Any) -> dict[str, Any]:
    """Return a row of sacct."""
    return {"id": id_, "state": state, "exit": exit_, **more}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("78", "REQUEUED"), row("78", "COMPLETED")], ("success", "COMPLETED", "0:0")),
        ([row("78", "NODE_FAIL"), row("78", "FAILED", "3:0")], ("user_error", "FAILED", "3:0")),
        (
            [row("78", "PREEMPTED"), row("78.batch", "CANCELLED", "0:15"), row("78", "RUNNING")],
            (None, "RUNNING", "0:0"),
        ),
        ([row("78", "TIMEOUT"), row("78.batch", "CANCELLED", "0:15")], ("timeout", "TIMEOUT", "0:0")),
        ([row("78.batch", "CANCELLED", "0:15"), row("78", "TIMEOUT")], ("timeout", "TIMEOUT", "0:0")),
        (
            [row("7", "COMPLETED", start="2026-01-02T00:00:00"), row("7", "NODE_FAIL", start="2026-01-01T00:00:00")],
            ("success", "COMPLETED", "0:0"),
        ),
        ([row("78.0", "FAILED", "9:0")], ("user_error", "FAILED", "9:0")),
    ],
)
def test_the_newest_row_of_the_allocation_decides(rows: list[dict[str, Any]], expected: tuple[Any, ...]) -> None:
    answer = ask("slurm", "classify", {"rows": rows})
    assert (answer["outcome"], answer["status"], answer["exit"]) == expected


@pytest.mark.parametrize(("written", "shown"), [("7:0", "7:0"), ("0:0", "0:0"), (9, "9:0")])
def test_a_derived_code_is_passed_on(written: Any, shown: str) -> None:
    """It changes neither the class nor the state."""
    seen = {"scheduler_state": "COMPLETED", "exit": "0:0", "derived_exit": written}
    answer = ask("slurm", "classify", seen)
    assert (answer["outcome"], answer["derived_exit"]) == ("success", shown)
    assert "derived_exit" not in ask("slurm", "classify", {"scheduler_state": "COMPLETED", "exit": "0:0"})


# --- Kubernetes, PBS, limits, requirements ---------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "outcome", "status"),
    [
        ({"job_condition": "Failed", "job_reason": "DeadlineExceeded", "pod_phase": None}, "timeout", "Failed"),
        ({"job_condition": {"type": "FailureTarget", "reason": "DeadlineExceeded"}}, "timeout", "Failed"),
        ({"job_condition": "Failed", "job_reason": "BackoffLimitExceeded"}, "unknown", "Failed"),
        ({"job_condition": "Complete"}, "success", "Complete"),
        ({"job_conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}, "success", "Complete"),
        ({"job_condition": "Suspended"}, None, "Suspended"),
        ({"job_conditions": [{"type": "Failed", "status": "False"}], "pod_phase": "Running"}, None, "Running"),
    ],
)
def test_a_job_whose_pods_are_gone(seen: dict[str, Any], outcome: str | None, status: str) -> None:
    answer = ask("k8s", "classify", seen)
    assert (answer["outcome"], answer["status"], answer["exit"]) == (outcome, status, None)


@pytest.mark.parametrize(
    ("status", "outcome", "signal"),
    [
        (0, "success", None),
        (1, "user_error", None),
        (128, "user_error", None),
        (137, "signaled", 9),
        (192, "signaled", 64),
        (193, "user_error", None),
        (255, "user_error", None),
        (256, "user_error", None),
        (265, "signaled", 9),
        (271, "signaled", 15),
        (-1, "launch_failure", None),
        (-2, "launch_failure", None),
        (-3, "launch_failure", None),
        (-4, "node_failure", None),
        (-26, "oom", None),
        (-27, "oom", None),
        (-28, "timeout", None),
        (-29, "timeout", None),
        (-99, "unknown", None),
    ],
)
def test_exit_statuses_of_pbs(status: int, outcome: str, signal: int | None) -> None:
    """PBS shows an ended job as F, TORQUE as C; no signal is above 64."""
    for executor, letter in (("pbs", "F"), ("torque", "C")):
        answer = ask(executor, "classify", {"exit_status": status})
        assert (answer["outcome"], answer["status"], answer["exit"]) == (outcome, letter, status)
        assert answer.get("signal") == signal
        assert answer["action"] == ("retry" if status == -3 else "none")


def test_the_base_of_signals_may_be_a_setting() -> None:
    assert ask("pbs", "classify", {"exit_status": 137}, {"base": 256})["outcome"] == "user_error"
    assert ask("pbs", "classify", {"exit_status": 137, "base": 128})["signal"] == 9


@pytest.mark.parametrize("executor", ["slurm", "spur", "torc-slurm"])
@pytest.mark.parametrize("text", ["unlimited", "UNLIMITED", "Infinite"])
def test_no_limit_is_no_error(executor: str, text: str) -> None:
    for unit in ("minutes", "seconds"):
        assert ask(executor, "parse_time", {"text": text, "unit": unit}) == {"id": None, "value": "unlimited"}
    assert ask(executor, "parse_time", {"text": text + "x"})["value"] == "error"


GIB = 2**30
LIMITS = {"memory_limit": "10g", "runtime_limit": "PT1H"}


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        (
            [{"likely_oom": True, "peak_memory_bytes": 11 * GIB}, {"likely_oom": True, "peak_memory_bytes": 14 * GIB}],
            21,
        ),
        ([{"likely_oom": True}, {"likely_oom": True, "peak_memory_bytes": 12 * GIB}], 18),
        ([{"likely_oom": True}], 15),
    ],
)
def test_jobs_that_share_a_requirement_get_the_largest_peak(jobs: list[dict[str, Any]], expected: int) -> None:
    answer = ask("torc", "recover", {"jobs": jobs, **LIMITS}, {"memory_multiplier": 1.5, "runtime_multiplier": 1.5})
    assert (answer["outcome"], answer["action"], answer["new_memory"]) == ("oom", "retry", f"{expected}g")
    assert answer["new_runtime"] is None


def test_one_job_out_of_time_is_enough() -> None:
    jobs = [{"likely_timeout": True}, {"likely_oom": False}]
    answer = ask("torc", "recover", {"jobs": jobs, **LIMITS}, {"runtime_multiplier": 1.5})
    assert (answer["outcome"], answer["new_memory"], answer["new_runtime"]) == ("timeout", None, "PT1H30M")
    assert ask("torc", "recover", {"jobs": [{}], **LIMITS})["action"] == "none"
