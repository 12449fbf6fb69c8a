"""OSMO's exit actions as a matcher, and its codes as names."""

from typing import Any

import pytest
import torc_osmo

from torc_framework.api import ExitClass, ExitObservation, ExitVerdict, Failure, RuleAction, TorcError


def failure(return_code: int) -> Failure:
    """Return a failed attempt."""
    verdict = ExitVerdict(ExitClass.USER_ERROR, "said so")
    return Failure(1, 1, "a", 1, return_code, ExitObservation("local", exit_code=return_code), verdict)


RULE = {"exit_actions": {"COMPLETE": "3,5-7", "fail": 64, "RESCHEDULE": "7-9,9-8"}}


@pytest.mark.parametrize(
    ("rule", "code", "answer"),
    [
        (RULE, 3, RuleAction.COMPLETE),
        (RULE, 7, RuleAction.COMPLETE),
        (RULE, 8, RuleAction.RETRY),
        (RULE, 64, RuleAction.FAIL),
        (RULE, 10, False),
        ({"exit_codes": [3]}, 3, None),
    ],
)
def test_actions(rule: dict[str, Any], code: int, answer: RuleAction | bool | None) -> None:
    """The first action that lists the code decides."""
    assert torc_osmo.torc_match_failure(rule, failure(code)) is answer


def test_rules_that_were_not_checked() -> None:
    """The runner is told what is wrong, and passes."""
    with pytest.raises(TorcError, match="exit action 'SKIP' of a is unknown"):
        torc_osmo.torc_match_failure({"exit_actions": {"SKIP": "1"}}, failure(1))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (ExitObservation("osmo", exit_code=2010), ExitClass.SERVICE_ERROR),
        (ExitObservation("osmo", exit_code=1001), ExitClass.PREFLIGHT),
        (ExitObservation("osmo", exit_code=9999), None),
        (ExitObservation("local", exit_code=137), None),
        (ExitObservation("local"), None),
    ],
)
def test_codes(seen: ExitObservation, expected: ExitClass | None) -> None:
    """Only codes that no process of this machine can have are read as OSMO's."""
    verdict = torc_osmo.torc_classify_exit(seen)
    assert (verdict and verdict.exit_class) == expected
