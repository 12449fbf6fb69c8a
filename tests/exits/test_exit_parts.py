"""The parts that answers are made of: pairs, reasons, time limits, exit actions, rules and their waits."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework import api
from torc_framework.exits import code_signal, failure_rules, osmo_exit_actions
from torc_framework.exits.classifier import class_of_word, classify_exit, exit_return_code
from torc_framework.exits.slurm_states import STATES, normal_state
from torc_framework.models import time_limits
from torc_framework.models.exits import ExitClass, ExitObservation, StopReason
from torc_framework.models.failures import CORE_RULE_KEYS, MATCHER_RULE_KEYS


@given(st.integers(-1, 255), st.integers(0, 64))
def test_pairs_come_back(code: int, signal: int) -> None:
    """What is rendered is parsed again; both halves are kept."""
    assert code_signal.parse_exit(code_signal.render_exit(code, signal)) == (code, signal)


@given(st.integers(1, 64))
def test_reasons_come_back(signal: int) -> None:
    """The signal of a reason is named, and read from it."""
    shown = code_signal.render_end_reason("RaisedSignal", signal)
    assert " " not in shown
    assert code_signal.parse_end_reason(shown) == ("RaisedSignal", signal)


def test_names_of_signals() -> None:
    """Real-time signals count from the first; what is no signal has no name of one."""
    assert code_signal.slurm_signal_name(34) == "Real-time_signal_0"
    assert code_signal.slurm_signal_name(code_signal.OOM_MARK) == "Unknown_signal_125"
    assert code_signal.render_end_reason("RaisedSignal") == "RaisedSignal"
    assert code_signal.decode_wait_status(0x0D00) == (13, 0)
    assert code_signal.decode_wait_status(0x8B) == (0, 11)


@given(st.integers(0, 10**6), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_time_limits_are_exact(days: int, hours: int, minutes: int, seconds: int) -> None:
    """Both dialects agree where all fields are written; part of a minute is a minute."""
    text = f"{days}-{hours:02}:{minutes:02}:{seconds:02}"
    expected = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    for dialect in time_limits.DIALECTS:
        assert time_limits.parse_time_limit(text, "seconds", dialect) == expected
        assert time_limits.parse_time_limit(text, "minutes", dialect) == -(-expected // 60)
    assert time_limits.parse_time_limit(f"{days}d{hours}H{minutes}m{seconds}s", "seconds", "spur") == expected


@given(st.text(max_size=20))
def test_time_limits_are_refused_or_in_range(text: str) -> None:
    """Any text is a number in range, no limit, or an error."""
    for dialect in time_limits.DIALECTS:
        for unit, most in time_limits.MOST.items():
            try:
                value = time_limits.parse_time_limit(text, unit, dialect)
            except ValueError:
                continue
            assert value is None or 0 <= value <= most


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 60)), min_size=1, max_size=5), st.integers(0, 4100))
def test_ranges_include_their_ends(ranges: list[tuple[int, int]], code: int) -> None:
    """A list of codes covers what its ranges do."""
    text = ",".join(f"{low}-{low + more}" if more else f"{low}" for low, more in ranges)
    assert not osmo_exit_actions.exit_action_problems({"FAIL": text})
    assert osmo_exit_actions.covers(text, code) == any(low <= code <= low + more for low, more in ranges)
    assert osmo_exit_actions.match_exit_actions({"fail": text}, code) in (None, "FAIL")


def test_the_first_action_wins_and_overlaps_are_told() -> None:
    """Order of the map decides."""
    actions = {"FAIL": "1-5", "RESCHEDULE": "5,9"}
    assert osmo_exit_actions.match_exit_actions(actions, 5) == "FAIL"
    assert osmo_exit_actions.overlaps(actions) == ["FAIL and RESCHEDULE both list 5: FAIL gets it"]


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
    """A classifier need not know whose word it is."""
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
    """But not an explicit cancel, and not where its word says less than the exit."""
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
    """Accounting calls a step canceled that ended by a signal of its own, and one whose node was lost."""
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
    """It outweighs the exit, but neither success nor whoever of ours stopped the attempt."""
    observation = ExitObservation("local", **seen)
    verdict = classify_exit(observation)
    assert (verdict.exit_class, verdict.confidence) == (expected, confidence)
    assert exit_return_code(observation, verdict, oom_exit_code=99) == code


@pytest.mark.parametrize(
    ("limit", "peak", "expected"),
    [
        (None, None, "the kernel killed 2 processes of it for lack of memory"),
        (100 << 20, 100 << 20, "the kernel killed 2 processes of it at the 100m of memory it asked for"),
        (
            100 << 20,
            20 << 20,
            "the kernel killed 2 processes of it for lack of memory, though its peak of 20m was below the 100m it "
            "asked for: the machine had no more",
        ),
    ],
)
def test_whose_memory_was_short_is_told(limit: int | None, peak: int | None, expected: str) -> None:
    seen = ExitObservation("local", signal=9, oom_kills=2, memory_limit_bytes=limit, peak_memory_bytes=peak)
    assert classify_exit(seen).reason == expected


rules = st.fixed_dictionaries(
    {},
    optional={
        "exit_codes": st.lists(st.integers(1, 4), max_size=3),
        "match_all_exit_codes": st.booleans(),
        "max_retries": st.integers(0, 6),
    },
)


@given(st.lists(rules, max_size=4), st.lists(st.integers(1, 4), min_size=1, max_size=40))
def test_ladders_end(written: list[dict[str, Any]], codes: list[int]) -> None:
    """However a job fails, it never has more attempts than its most generous rule allows."""
    attempt = 1
    for code in codes:
        case = {"return_code": code, "status": "failed", "attempt_id": attempt}
        answer = api.answer_case(
            {"executor": "torc", "kind": "match", "observation": case, "policy": {"rules": written}}
        )
        if answer["action"] != "retry":
            break
        assert answer["next_attempt_id"] == attempt + 1
        attempt += 1
    assert attempt <= max([1, *map(failure_rules.attempts_allowed, written)])


numbers = st.floats(0, 1e6) | st.integers(0, 10**6) | st.none() | st.text(max_size=3)


@given(
    st.dictionaries(
        st.sampled_from(["delay_seconds", "delay_factor", "delay_jitter", "max_delay_seconds"]), numbers, max_size=4
    ),
    st.integers(1, 10_000),
    st.floats(-1, 1),
)
def test_waits_are_bounded(rule: dict[str, Any], attempt: int, spread: float) -> None:
    """Whatever a rule says, a wait is neither negative nor longer than its maximum."""
    most = rule.get("max_delay_seconds")
    wait = failure_rules.retry_delay_s(rule, attempt, spread)
    assert 0 <= wait <= (most if isinstance(most, (int, float)) else 3600)


def test_waits_grow() -> None:
    """By the factor, up to the maximum; jitter moves them to both sides."""
    rule = {"delay_seconds": 10, "delay_factor": 2, "max_delay_seconds": 60, "delay_jitter": 0.5}
    assert [failure_rules.retry_delay_s(rule, attempt, 0) for attempt in (1, 2, 3, 4)] == [10, 20, 40, 60]
    assert [failure_rules.retry_delay_s(rule, 1, spread) for spread in (-1, 1)] == [5, 15]
    assert failure_rules.retry_delay_s({}, 3, 1) == 0


def test_every_key_of_a_rule_is_explained() -> None:
    """The reference is made from these."""
    for schema in (*CORE_RULE_KEYS.values(), *MATCHER_RULE_KEYS.values()):
        assert schema["description"]


def test_the_public_face_has_them() -> None:
    """Scripts and plugins call the same functions."""
    assert api.render_exit(0, 9) == "0:9"
    assert api.parse_time_limit("1-12") == 129_600
    assert api.osmo_class_of_code(3004) is ExitClass.EVICTED
    assert api.SYSEXITS[75][0] == "EX_TEMPFAIL"
