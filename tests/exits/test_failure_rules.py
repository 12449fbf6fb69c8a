"""The choice of a failure rule, its attempts and its delays."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework import api
from torc_framework.exits import failure_rules
from torc_framework.exits.failure_rules import choose_rule, covers_ending
from torc_framework.models.exits import ExitClass
from torc_framework.models.failures import CORE_RULE_KEYS, MATCHER_RULE_KEYS, FailureRule


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({}, None),
        ({"recovery_script": "true"}, None),
        ({"exit_codes": [7]}, True),
        ({"exit_codes": [8]}, False),
        ({"exit_codes": None}, False),
        ({"match_all_exit_codes": True}, True),
        ({"exit_classes": ["oom"]}, True),
        ({"exit_classes": ["timeout"], "match_all_exit_codes": True}, False),
        ({"exit_codes": [7], "exit_classes": ["oom"]}, True),
        ({"stderr_regex": "found"}, True),
        ({"stderr_regex": "absent", "exit_codes": [7]}, False),
    ],
)
def test_all_keys_of_a_rule_have_to_fit(rule: dict[str, Any], expected: bool | None) -> None:
    """A rule without any of the keys covers no failure by them."""
    assert covers_ending(rule, 7, ExitClass.OOM, lambda pattern: pattern == "found") is expected


def test_the_key_for_standard_error_is_ignored_without_a_log() -> None:
    """The server has no logs."""
    assert covers_ending({"stderr_regex": "absent", "exit_codes": [7]}, 7, None) is True
    assert covers_ending({"stderr_regex": "absent"}, 7, None) is None


def test_catch_all_rules_are_considered_last() -> None:
    """Among the others the written order decides; the result of the match is returned with the rule."""
    catch_all: FailureRule = {"match_all_exit_codes": True}
    first: FailureRule = {"exit_codes": [7], "max_retries": 1}
    second: FailureRule = {"exit_codes": [7], "max_retries": 2}
    rules = [catch_all, first, second]
    assert choose_rule(rules, 7, lambda rule: covers_ending(rule, 7, None)) == (first, True)
    assert choose_rule(rules, 8, lambda rule: covers_ending(rule, 8, None)) == (catch_all, True)
    assert choose_rule(rules, 7, lambda rule: "second" if rule is second else None) == (second, "second")
    assert choose_rule([first], 8, lambda rule: covers_ending(rule, 8, None)) is None


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
    """No sequence of failures gives a job more attempts than the largest ``max_retries`` of its rules."""
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
    """For any values of a rule, a delay is neither negative nor longer than its maximum."""
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
