"""The classifier of endings: scheduler states, stops, the kernel's count of OOM kills, exit codes."""

from typing import Any

import pytest

from torc_framework.exits.classifier import class_of_word, classify_exit, exit_return_code
from torc_framework.exits.slurm_states import STATES, normal_state
from torc_framework.models.exits import ExitObservation, StopReason


@pytest.mark.parametrize("name", STATES)
def test_states_are_known_by_code_and_cut(name: str) -> None:
    """Each state has a code of its own."""
    assert normal_state(STATES[name].code) == normal_state(f" {name.lower()} by 7") == name
    assert class_of_word(name) is STATES[name].exit_class


@pytest.mark.parametrize(
    ("word", "expected"),
    [("OOMKilled", "oom"), ("Evicted", "evicted"), ("TERM_RUNLIMIT", "timeout"), ("NodeDown", "node_failure")],
)
def test_words_of_clusters(word: str, expected: str) -> None:
    """The class of a word does not depend on the executor."""
    assert class_of_word(word) == expected
    seen = ExitObservation("x", exit_code=1, scheduler_reason=word)
    assert classify_exit(seen).exit_class == expected


@pytest.mark.parametrize(
    ("seen", "expected", "code"),
    [
        (ExitObservation("slurm", exit_code=0, scheduler_state="TIMEOUT"), "timeout", 152),
        (ExitObservation("slurm", signal=9, scheduler_state="OUT_OF_ME+"), "oom", 137),
        (ExitObservation("slurm", signal=15, scheduler_state="CANCELLED"), "canceled", 143),
        (ExitObservation("slurm", exit_code=5, scheduler_state="FAILED"), "user_error", 5),
        (ExitObservation("slurm", exit_code=0, scheduler_state="COMPLETED"), "success", 0),
        (ExitObservation("slurm", scheduler_state="COMPLETED"), "success", -128),
        (ExitObservation("slurm", exit_code=143, scheduler_state="NODE_FAIL"), "node_failure", 143),
        (ExitObservation("k8s", exit_code=137, scheduler_state="Failed", scheduler_reason="OOMKilled"), "oom", 137),
        (ExitObservation("slurm", scheduler_state="TIMEOUT", stop_reason=StopReason.CANCELED), "canceled", -128),
    ],
)
def test_the_scheduler_outweighs_the_exit(seen: ExitObservation, expected: str, code: int) -> None:
    """An explicit cancellation has precedence over it, and so has the exit where the state is less specific."""
    verdict = classify_exit(seen)
    assert (verdict.exit_class, exit_return_code(seen, verdict)) == (expected, code)


@pytest.mark.parametrize(
    ("state", "changes", "expected", "code"),
    [
        ("CANCELLED", {"signal": 11}, "signaled", 139),
        ("CANCELLED", {"exit_code": 6}, "user_error", 6),
        ("CANCELLED by 1001", {"signal": 9}, "canceled", 143),
        ("CANCELLED by 1001", {"signal": 9, "stop_reason": StopReason.SHUTDOWN}, "interrupted", 152),
        (
            "CANCELLED by 1001",
            {"signal": 9, "stop_reason": StopReason.SHUTDOWN, "raw": {"allocation_state": "CANCELLED by 1001"}},
            "canceled",
            143,
        ),
        ("CANCELLED by 1001", {"lost": True}, "canceled", 143),
        ("CANCELLED", {"scheduler_reason": "Node failure on n3"}, "node_failure", -128),
        ("CANCELLED", {}, "canceled", 143),
        (None, {"exit_code": 1, "scheduler_reason": "Out Of Memory"}, "oom", 137),
        ("TIMEOUT", {"signal": 15}, "timeout", 152),
        ("A_WORD_OF_TOMORROW", {"exit_code": 3}, "user_error", 3),
    ],
)
def test_steps_of_slurm(state: str | None, changes: dict[str, Any], expected: str, code: int) -> None:
    """Accounting has CANCELLED also for a step that ended by a signal of its own, and for one whose node was lost."""
    seen = ExitObservation("slurm", scheduler_state=state, **{"raw": {"step": "7.1"}, **changes})
    verdict = classify_exit(seen)
    assert (verdict.exit_class, exit_return_code(seen, verdict)) == (expected, code)


SHARED = {"shared_oom_kills": 1, "shared_attempts": 1}


@pytest.mark.parametrize(
    ("seen", "expected", "confidence", "code"),
    [
        ({"signal": 9, "oom_kills": 1}, "oom", 1.0, 99),
        ({"exit_code": 137, "oom_kills": 2}, "oom", 1.0, 99),
        ({"exit_code": 5, "oom_kills": 1}, "oom", 0.9, 99),
        ({"signal": 15, "oom_kills": 1}, "oom", 0.8, 99),
        ({"exit_code": 0, "oom_kills": 1}, "success", 1.0, 0),
        ({"exit_code": 0, "oom_kills": 1, "missing_outputs": ("a",)}, "output_missing", 1.0, 1),
        ({"signal": 9, "oom_kills": 0}, "signaled", 1.0, 137),
        ({"exit_code": 137, "oom_kills": 0}, "user_error", 1.0, 137),
        ({"signal": 9, "oom_kills": 1, "stop_reason": StopReason.RUNTIME_LIMIT}, "timeout", 1.0, 152),
        ({"signal": 9, "oom_kills": 1, "stop_reason": StopReason.CANCELED}, "canceled", 1.0, 143),
        ({"signal": 9, "raw": SHARED}, "oom", 0.8, 137),
        ({"exit_code": 137, "raw": SHARED | {"shared_attempts": 3}}, "oom", 0.6, 137),
        ({"exit_code": 5, "raw": SHARED}, "user_error", 1.0, 5),
        ({"signal": 11, "raw": SHARED}, "signaled", 1.0, 139),
        ({"signal": 9, "raw": {"shared_oom_kills": "many"}}, "signaled", 1.0, 137),
    ],
)
def test_the_kernels_count_of_kills(seen: dict[str, Any], expected: str, confidence: float, code: int) -> None:
    """It has precedence over the exit, but not over success or a stop by the runner."""
    observation = ExitObservation("local", **seen)
    verdict = classify_exit(observation)
    assert (verdict.exit_class, verdict.confidence) == (expected, confidence)
    assert exit_return_code(observation, verdict, oom_exit_code=99) == code


@pytest.mark.parametrize(
    ("limit", "peak", "expected"),
    [
        (None, None, "the kernel killed 2 processes of it for lack of memory"),
        (100 << 20, 100 << 20, "the kernel killed 2 processes of it at the 100 MiB of memory it asked for"),
        (
            100 << 20,
            20 << 20,
            "the kernel killed 2 processes of it for lack of memory, though its peak of 20 MiB was below the "
            "100 MiB it asked for: the machine had no more",
        ),
    ],
)
def test_whose_memory_was_short_is_told(limit: int | None, peak: int | None, expected: str) -> None:
    seen = ExitObservation("local", signal=9, oom_kills=2, memory_limit_bytes=limit, peak_memory_bytes=peak)
    assert classify_exit(seen).reason == expected


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (1, "exit code 1"),
        (126, "exit code 126: the shell found the command but could not execute it"),
        (127, "exit code 127: the shell did not find the command"),
        (128, "exit code 128"),
        (137, "exit code 137: a shell's code for a command that SIGKILL ended"),
        (139, "exit code 139: a shell's code for a command that SIGSEGV ended"),
        (255, "exit code 255"),
    ],
)
def test_the_meaning_of_a_code_is_named(code: int, reason: str) -> None:
    """It proves no signal: the class is that of the program's own codes."""
    verdict = classify_exit(ExitObservation("local", exit_code=code))
    assert (verdict.exit_class, verdict.reason) == ("user_error", reason)
