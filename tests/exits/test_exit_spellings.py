"""What other programs write of endings: codes, signals, states and pods in spellings of their own."""

from typing import Any

import pytest

from torc_framework.exit_cases.cases import answer_case

POD = {"name": "main", "reason": "OOMKilled", "exit_code": 137}


@pytest.mark.parametrize(
    ("executor", "observation", "expected"),
    [
        # pairs of code and signal, wherever a code can stand
        ("slurm", {"scheduler_state": "OUT_OF_MEMORY", "exit_code": "0:125"}, ("oom", "0:125")),
        ("slurm", {"state": "out_of_memory", "ExitCode": "0:125"}, ("oom", "0:125")),
        ("slurm", {"scheduler_state": "FAILED", "exit": 5}, ("user_error", "5:0")),
        ("slurm", {"scheduler_state": "FAILED", "exit": ""}, ("unknown", None)),
        ("slurm", {"exit_code": "0:125"}, ("oom", "0:125")),
        ("slurm", {"exit_code": "0:9"}, ("signaled", "0:9")),
        ("slurm", {"state": ["FAILED"], "exit": {"return_code": 3, "signal": {"id": 0}}}, ("user_error", "3:0")),
        ("slurm", {"state": {"current": ["NODE_FAIL"], "reason": "x"}, "exit": [1, 0]}, ("node_failure", "1:0")),
        ("slurm", {"allocation": "TIMEOUT 0:0", "batch": "CANCELLED 0:15"}, ("timeout", "0:0")),
        ("torc-slurm", {"scheduler_state": "OUT_OF_MEMORY", "exit_code": "0:125"}, ("oom", 137)),
        ("torc-slurm", {"scheduler_state": "timeout", "exit": "0:0"}, ("timeout", 152)),
        ("torc", {"exit_code": "0:125"}, ("oom", 137)),
        ("torc-slurm", {"scheduler_state": "FAILED", "exit_code": "0:125"}, ("oom", 137)),
        ("local", {"exit_code": "0:9"}, ("signaled", 137)),
        ("local", {"signal": "SIGBUS"}, ("signaled", 135)),
        ("local", {"signal": "Segmentation_fault"}, ("signaled", 139)),
        ("local", {"wait_status": 0x0500}, ("user_error", 5)),
        ("local", {"exit_code": 5, "oom_kills": 1}, ("oom", 137)),
        ("local", {"exit_code": 137, "peak_memory_bytes": "5g", "memory_limit": "4 GiB"}, ("oom", 137)),
        ("local", {"exit_code": 0, "outputs_missing": "a.csv"}, ("output_missing", 1)),
        ("spur", {"nodes": ["7:0", {"exit": "2:0"}], "primary": 0}, ("user_error", "7:0")),
        ("spur", {"nodes": {"a": "0:11"}}, ("signaled", "0:11")),
        ("spur", {"exit": 0, "oom_flag": "true"}, ("oom", "0:0")),
        # pods as the cluster itself writes them
        ("k8s", POD, ("oom", 137)),
        ("k8s", {"containers": [POD]}, ("oom", 137)),
        ("k8s", {"containers": {"main": {"terminated": {"reason": "oomkilled", "exitCode": "137"}}}}, ("oom", 137)),
        ("k8s", {"status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": POD}}]}}, ("oom", 137)),
        ("k8s", {"phase": "Failed", "podReason": "Evicted"}, ("evicted", None)),
        ("osmo", {"pod_phase": "FAILED", "containers": [{"name": "u", "terminated": 7}]}, ("user_error", 7)),
        ("osmo", {"pod_phase": "Pending", "containers": [{"waiting": "ErrImagePull"}]}, ("image_pull", 302)),
        ("osmo", {"status": "failed_evicted"}, ("evicted", 3004)),
        # other systems
        ("lsf", {"signal": "SIGKILL"}, ("signaled", None)),
        ("pbs", {"exit": "271"}, ("signaled", 271)),
        ("htcondor", {"ExitBySignal": "true", "ExitSignal": "SIGTERM"}, ("signaled", "0:15")),
        ("aws-batch", {"container": {"reason": "OutOfMemoryError: x", "exitCode": 137}}, ("oom", 137)),
        ("sge", {"exit_code": "0:9"}, ("signaled", 137)),
    ],
)
def test_what_other_programs_write(executor: str, observation: dict[str, Any], expected: tuple[str, Any]) -> None:
    """Each is read as what it says, without a guess."""
    answer = answer_case({"executor": executor, "observation": observation})
    assert (answer.get("outcome"), answer.get("exit")) == expected, answer


@pytest.mark.parametrize(
    ("executor", "kind", "observation", "policy", "message"),
    [
        ("slurm", "classify", {"state": "FAILED", "exit": "1.5"}, {}, "observation.exit is '1.5'"),
        ("slurm", "classify", {"state": "FAILED", "exit": "1:x"}, {}, "'1:x' is no exit code"),
        ("local", "classify", {"signal": "SIGNOTHING"}, {}, "observation.signal: 'SIGNOTHING' is no signal"),
        ("local", "classify", {"exit_code": 2.5}, {}, "observation.exit_code is 2.5"),
        ("spur", "match", {"event": "node_down"}, {"requeue": "perhaps"}, "policy.requeue is 'perhaps'"),
        ("torc", "match", {"return_code": 11}, {"rules": [{"exit_codes": ["11"]}]}, "exit_codes is ['11']"),
        ("osmo", "match", {"exit_code": 6}, {"exit_actions": {"COMPLETE": [6]}}, "COMPLETE"),
    ],
)
def test_what_could_mean_several_things_is_refused(
    executor: str, kind: str, observation: dict[str, Any], policy: dict[str, Any], message: str
) -> None:
    """Nothing is made up, and what a specification wants in one form is not taken in another."""
    answer = answer_case({"executor": executor, "kind": kind, "observation": observation, "policy": policy})
    assert message in answer.get("error", ""), answer
