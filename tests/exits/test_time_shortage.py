"""The diagnosis of failed attempts that ran out of run time."""

from typing import Any

import pytest

from torc_framework.exits.time_shortage import TimeEvidence, diagnose_time

NEAR = {"runtime_s": 90.1, "runtime_limit_s": 100}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, None),
        ({"stop_reason": "runtime_limit", "return_code": 152}, TimeEvidence.STOPPED),
        ({"exit_class": "timeout", "return_code": 152, **NEAR}, TimeEvidence.EXIT_CLASS),
        ({"return_code": 152, **NEAR}, TimeEvidence.RETURN_CODE),
        ({"return_code": 1, **NEAR}, TimeEvidence.NEAR_RUNTIME),
        ({"return_code": 1, "runtime_s": 90, "runtime_limit_s": 100}, None),
        ({"return_code": 1, "runtime_s": 90.1}, None),
        ({"return_code": 1, "runtime_s": 90.1, "runtime_limit_s": 0}, None),
        ({"return_code": 1, "runtime_limit_s": 100}, None),
        ({"return_code": 152, "stop_reason": "shutdown"}, None),
        ({"exit_class": "timeout", "stop_reason": "memory_limit"}, None),
        ({"return_code": 152, "stop_reason": "shutdown", **NEAR}, TimeEvidence.NEAR_RUNTIME),
    ],
)
def test_the_strongest_evidence_is_returned(facts: dict[str, Any], expected: TimeEvidence | None) -> None:
    """A stop for another reason makes class and return code meaningless."""
    assert diagnose_time(**facts) is expected
