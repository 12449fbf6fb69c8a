"""The diagnosis of failed attempts that ran out of memory."""

from typing import Any

import pytest

from torc_framework.exits.memory_shortage import MemoryEvidence, diagnose_memory

KILLED = {"return_code": 137}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, None),
        ({"exit_class": "oom", "oom_kills": 0}, MemoryEvidence.EXIT_CLASS),
        ({"oom_kills": 2, "exit_class": "user_error"}, MemoryEvidence.OOM_KILLS),
        ({"oom_kills": 0, "peak_bytes": 2, "limit_bytes": 1, **KILLED}, None),
        ({"peak_bytes": 2, "limit_bytes": 1, **KILLED}, MemoryEvidence.MEMORY_EXCEEDED),
        ({"peak_bytes": 1, "limit_bytes": 1}, None),
        ({"peak_bytes": 2}, None),
        (KILLED, MemoryEvidence.SIGKILL),
        ({**KILLED, "was_stopped": True}, None),
        ({**KILLED, "runtime_s": 79.9, "runtime_limit_s": 100}, MemoryEvidence.SIGKILL),
        ({**KILLED, "runtime_s": 80, "runtime_limit_s": 100}, None),
        ({**KILLED, "runtime_limit_s": 100}, MemoryEvidence.SIGKILL),
        ({"return_code": 143}, None),
    ],
)
def test_the_strongest_evidence_is_returned(facts: dict[str, Any], expected: MemoryEvidence | None) -> None:
    """The kernel's count has precedence over use and return code, also if it is 0."""
    assert diagnose_memory(**facts) is expected
