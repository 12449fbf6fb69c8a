"""Codes of ``sysexits.h`` by their names."""

from typing import Any

import pytest
import torc_sysexits

from torc_framework.api import SYSEXITS, ExitClass, ExitObservation, StopReason


@pytest.mark.parametrize(
    ("code", "named", "reason"),
    [
        (64, ExitClass.USER_ERROR, "EX_USAGE: wrong usage"),
        (69, ExitClass.SERVICE_ERROR, "EX_UNAVAILABLE: a service is not available"),
        (71, ExitClass.INFRA_ERROR, "EX_OSERR: an error of the operating system"),
        (74, ExitClass.INFRA_ERROR, "EX_IOERR: an error of input or output"),
        (75, ExitClass.SERVICE_ERROR, "EX_TEMPFAIL: a temporary failure: try again"),
        (78, ExitClass.USER_ERROR, "EX_CONFIG: wrong configuration"),
    ],
)
def test_codes(code: int, named: ExitClass, reason: str) -> None:
    """The name of the header stands in the reason."""
    verdict = torc_sysexits.torc_classify_exit(ExitObservation("local", exit_code=code))
    assert verdict is not None
    assert (verdict.exit_class, verdict.reason, verdict.evidence) == (named, reason, ("exit_code",))


def test_every_code_of_the_header_has_a_name() -> None:
    """And no other code."""
    named = {code for code in range(256) if torc_sysexits.torc_classify_exit(ExitObservation("local", exit_code=code))}
    assert named == set(SYSEXITS) == set(range(64, 79))
    assert torc_sysexits.PASSING.keys() <= {name for name, _ in SYSEXITS.values()}


@pytest.mark.parametrize(
    ("seen", "is_ours"),
    [
        ({"scheduler_state": "FAILED"}, True),  # a word that leaves the meaning to the code
        ({"scheduler_state": "NODE_FAIL"}, False),
        ({"stop_reason": StopReason.RUNTIME_LIMIT}, False),
        ({"stop_reason": StopReason.CANCELED}, False),
        ({"launch_error": "no such folder"}, False),
        ({"lost": True}, False),
    ],
)
def test_stronger_evidence_wins(seen: dict[str, Any], is_ours: bool) -> None:
    """What others say of the ending is worth more than a code."""
    observation = ExitObservation("slurm", exit_code=75, **seen)
    assert (torc_sysexits.torc_classify_exit(observation) is not None) == is_ours
