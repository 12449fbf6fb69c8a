"""Endings of all kinds with rules of all kinds, in runner and store: which jobs get another attempt, and when."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torc_framework.executors import AttemptKey, RunnerContext
from torc_framework.exits.failure_rules import retry_delay_s
from torc_framework.models.exits import ExitObservation, StopReason
from torc_framework.models.failures import SEPARATE_BUDGET_CLASSES
from torc_framework.plugins.manager import PluginManager
from torc_framework.runner.attempts.ending_classifier import LOST_ATTEMPTS, EndingClassifier
from torc_framework.runner.attempts.held_jobs import AttemptFactory, HeldJob
from torc_framework.store.exchange import claims
from torc_framework.store.records.events import utc_text

CONTEXT = RunnerContext(1, 1, "/tmp/none", "/tmp", "http://127.0.0.1:1/torc-service/v1")
PLUGINS = PluginManager.load()
ENDINGS: dict[str, tuple[dict[str, Any], str, int]] = {
    "code 1": ({"exit_code": 1}, "user_error", 1),
    "code 7": ({"exit_code": 7}, "user_error", 7),
    "segfault": ({"signal": 11}, "signaled", 139),
    "memory": ({"signal": 9, "stop_reason": StopReason.MEMORY_LIMIT}, "oom", 137),
    "time": ({"signal": 9, "stop_reason": StopReason.RUNTIME_LIMIT}, "timeout", 152),
    "preempted": ({"signal": 15, "scheduler_state": "PREEMPTED"}, "preempted", 143),
    "node": ({"signal": 9, "scheduler_state": "NODE_FAIL"}, "node_failure", 137),
    "evicted": ({"scheduler_state": "Evicted"}, "evicted", -128),
    "lost": ({"lost": True}, "orphaned", -128),
}
"""What is seen, what it is called, and the number for it."""
LATER = "9999-01-01T00:00:00.000Z"
"""A time at which all waits are over."""
KEYS = st.fixed_dictionaries(
    {"max_retries": st.integers(0, 4)},
    optional={
        "exit_codes": st.lists(st.sampled_from([1, 7, 137, 139, 143, 152]), max_size=2),
        "match_all_exit_codes": st.booleans(),
        "exit_classes": st.lists(st.sampled_from([each[1] for each in ENDINGS.values()]), max_size=3),
        "delay_seconds": st.sampled_from([0, 0.5, 30]),
        "delay_factor": st.sampled_from([1, 1.5, 10]),
        "delay_jitter": st.sampled_from([0, 0.2, 1]),
        "max_delay_seconds": st.sampled_from([0, 20, 900]),
    },
)


def limit_of(rules: list[dict[str, Any]], exit_class: str, code: int) -> int | None:
    """Return the number of attempts that an ending allows, read from the guide for users; None if there is no other
    attempt.
    """
    if exit_class == "orphaned":
        return LOST_ATTEMPTS
    late: list[dict[str, Any]] = []
    for rule in [*rules, *late]:
        names_code = code in rule.get("exit_codes", ())
        if rule.get("match_all_exit_codes") and not names_code:
            late.append(rule)
    for rule in [*(rule for rule in rules if all(rule is not other for other in late)), *late]:
        fits = []
        if {"exit_codes", "match_all_exit_codes"} & rule.keys():
            fits.append(code in rule.get("exit_codes", ()) or bool(rule.get("match_all_exit_codes")))
        if "exit_classes" in rule:
            fits.append(exit_class in rule["exit_classes"])
        if fits and all(fits):
            return int(rule["max_retries"])
    return LOST_ATTEMPTS if exit_class in SEPARATE_BUDGET_CLASSES else None


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rules=st.lists(KEYS, max_size=4), endings=st.lists(st.sampled_from(sorted(ENDINGS)), min_size=1, max_size=15))
def test_no_sequence_of_endings_overdraws_a_budget(
    bench: Any, monkeypatch: pytest.MonkeyPatch, rules: list[dict[str, Any]], endings: list[str]
) -> None:
    """The job runs again exactly as often as its rules allow; separate classes have budgets of their own."""
    monkeypatch.setattr(claims, "utc_text", lambda moment=None: LATER if moment is None else utc_text(moment))
    bench.plan(1)
    classifier = EndingClassifier(PLUGINS, AttemptFactory(CONTEXT), bench.workflow_id, use_pending_failed=False)
    spent: Counter[str] = Counter()
    for name in endings:
        fields, exit_class, code = ENDINGS[name]
        (claimed,) = bench.claim()
        claimed.failure_rules = json.dumps(rules)
        held = HeldJob(claimed, "local", AttemptKey(claimed.id, claimed.attempt_id))
        held.stop_reason = fields.get("stop_reason")
        report = classifier.classify(held, ExitObservation("local", **fields)).report
        assert (report.exit_class, report.return_code) == (exit_class, code)
        budget = exit_class if exit_class in SEPARATE_BUDGET_CLASSES else "own"
        spent[budget] += 1
        limit = limit_of(rules, exit_class, code)
        assert (report.retry and report.retry.max_attempts) == limit
        bench.exchange(ended=[report])
        runs_again = limit is not None and spent[budget] < limit
        assert (bench.statuses() == ["ready"]) == runs_again, (spent, limit)
        if not runs_again:
            break
    most = max([rule["max_retries"] for rule in rules], default=1)
    assert spent["own"] <= max(most, 1)
    assert all(spent[name] <= max(most, LOST_ATTEMPTS) for name in SEPARATE_BUDGET_CLASSES)
    assert len(bench.results()) == spent.total()


@settings(deadline=None)
@given(
    st.floats(0.001, 1e5),
    st.floats(1, 100),
    st.floats(0.001, 1e6),
    st.floats(0, 1),
    st.lists(st.floats(-1, 1), min_size=2, max_size=30),
)
def test_waits_climb_from_the_first_to_the_longest(
    first: float, factor: float, most: float, jitter: float, spreads: list[float]
) -> None:
    """Without jitter no delay is shorter than the one before; with jitter each differs by at most its part."""
    rule = {"delay_seconds": first, "delay_factor": factor, "max_delay_seconds": most}
    plain = [retry_delay_s(rule, attempt, spread) for attempt, spread in enumerate(spreads, 1)]
    assert plain == sorted(plain)
    assert all(min(first, most) <= wait <= most for wait in plain)
    moved = [retry_delay_s(rule | {"delay_jitter": jitter}, n, spread) for n, spread in enumerate(spreads, 1)]
    for wait, middle in zip(moved, plain, strict=True):
        assert middle * (1 - jitter) * 0.999 <= wait <= min(middle * (1 + jitter) * 1.001, most)
