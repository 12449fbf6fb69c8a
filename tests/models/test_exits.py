"""Exit codes are a rendering of what was seen."""

from typing import Any

import pytest

from torc_framework.models.exits import ExitObservation, StopReason, render_return_code, signal_name

CASES: dict[str, tuple[dict[str, Any], int]] = {
    "success": ({"exit_code": 0}, 0),
    "own code": ({"exit_code": 64}, 64),
    "own code above 128 stays as it is": ({"exit_code": 137}, 137),
    "bus error": ({"signal": 7}, 135),
    "clean exit, output missing": ({"exit_code": 0, "missing_outputs": ("a",)}, 1),
    "own code, output missing": ({"exit_code": 3, "missing_outputs": ("a",)}, 3),
    "killed at the run-time limit": ({"signal": 9, "stop_reason": StopReason.RUNTIME_LIMIT}, 152),
    "clean exit after the run-time limit": ({"exit_code": 0, "stop_reason": StopReason.RUNTIME_LIMIT}, 152),
    "own code after the run-time limit": ({"exit_code": 7, "stop_reason": StopReason.RUNTIME_LIMIT}, 7),
    "clean exit at shutdown": ({"exit_code": 0, "stop_reason": StopReason.SHUTDOWN}, 0),
    "own code at shutdown": ({"exit_code": 5, "stop_reason": StopReason.SHUTDOWN}, 5),
    "killed at shutdown": ({"signal": 9, "stop_reason": StopReason.SHUTDOWN}, 152),
    "our memory monitor": ({"signal": 9, "stop_reason": StopReason.MEMORY_LIMIT}, 137),
    "the kernel killed it for lack of memory": ({"signal": 9, "oom_kills": 1}, 137),
    "the kernel killed a child, the shell failed": ({"exit_code": 5, "oom_kills": 1}, 137),
    "the kernel killed a child, the shell went on": ({"exit_code": 0, "oom_kills": 1}, 0),
    "the kernel killed no process": ({"exit_code": 5, "oom_kills": 0}, 5),
    "a child killed, then the run-time limit": (
        {"exit_code": 5, "oom_kills": 1, "stop_reason": StopReason.RUNTIME_LIMIT},
        5,
    ),
    "canceled": ({"signal": 9, "stop_reason": StopReason.CANCELED}, 143),
    "lost": ({"lost": True}, -128),
    "never launched": ({"launch_error": "no such shell"}, 1),
    "nothing seen": ({}, -128),
}


@pytest.mark.parametrize("name", CASES)
def test_rendering(name: str) -> None:
    seen, code = CASES[name]
    assert render_return_code(ExitObservation(executor="local", **seen)) == code


def test_only_an_undisturbed_exit_is_the_programs_own_word() -> None:
    assert ExitObservation("local", exit_code=66).is_own_exit
    assert not ExitObservation("local", exit_code=66, signal=9).is_own_exit
    assert not ExitObservation("local", exit_code=66, stop_reason=StopReason.SHUTDOWN).is_own_exit
    assert not ExitObservation("slurm", exit_code=66, scheduler_state="TIMEOUT").is_own_exit
    assert ExitObservation("slurm", exit_code=66, scheduler_state="FAILED").is_own_exit


def test_signals_have_names() -> None:
    assert signal_name(9) == "SIGKILL"
    assert signal_name(99) == "signal 99"
