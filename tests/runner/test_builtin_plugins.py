"""The built-in matcher and action type."""

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from torc_framework.api import ActionContext, ExitClass, ExitObservation, ExitVerdict, Failure, TorcError
from torc_framework.builtin.actions import torc_action_types
from torc_framework.builtin.failures import torc_failure_rule_keys, torc_match_failure


def failure(return_code: int) -> Failure:
    """Return a failed attempt."""
    verdict = ExitVerdict(ExitClass.USER_ERROR, "said so")
    return Failure(1, 1, "a", 1, return_code, ExitObservation("local", exit_code=return_code), verdict)


@pytest.mark.parametrize(
    ("rule", "code", "answer"),
    [
        ({"exit_codes": [1, 2]}, 2, True),
        ({"exit_codes": [1, 2]}, 3, False),
        ({"exit_codes": []}, 3, False),
        ({"match_all_exit_codes": True}, 3, True),
        ({"match_all_exit_codes": False}, 3, False),
        ({"exit_codes": [1], "match_all_exit_codes": True}, 3, True),
        ({"exit_codes": [152]}, 152, True),
        ({"max_retries": 3}, 3, None),
        ({"someone_elses": 3}, 3, None),
    ],
)
def test_rules_by_code(rule: dict[str, Any], code: int, answer: bool | None) -> None:
    """No opinion on rules that carry none of its keys."""
    assert torc_match_failure(rule, failure(code)) is answer


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        ({"exit_classes": ["user_error", "oom"]}, True),
        ({"exit_classes": ["oom"]}, False),
        ({"exit_classes": ["user_error"], "exit_codes": [3]}, True),
        ({"exit_classes": ["user_error"], "exit_codes": [4]}, False),
        ({"stderr_regex": "^retry me"}, True),
        ({"stderr_regex": "never said"}, False),
        ({"stderr_regex": "("}, False),
        ({"stderr_regex": "^retry me", "match_all_exit_codes": True}, True),
    ],
)
def test_rules_by_class_and_log(rule: dict[str, Any], answer: bool, tmp_path: Path) -> None:
    """All keys of a rule must fit; a pattern that is none fits nothing."""
    log = tmp_path / "a.e"
    log.write_bytes(b"\xff\n" * 200_000 + b"retry me\n")
    assert torc_match_failure(rule, evolve(failure(3), stderr_path=str(log))) is answer
    assert torc_match_failure({"stderr_regex": "x"}, evolve(failure(3), stderr_path=str(tmp_path / "gone"))) is False


def test_rule_keys_are_declared() -> None:
    """The spec's check accepts exactly these."""
    assert set(torc_failure_rule_keys()) == {"exit_codes", "match_all_exit_codes", "exit_classes", "stderr_regex"}


def test_run_commands(tmp_path: Path) -> None:
    """In order, in the output directory, with the action's environment; the first failure ends it."""
    action = next(offered for offered in torc_action_types() if offered.name == "run_commands")
    context = ActionContext(1, "http://127.0.0.1:1", str(tmp_path), {"WHO": "me"})
    action.execute({"commands": ["echo $WHO > a", "cat a a > b"]}, context)
    assert (tmp_path / "b").read_text() == "me\nme\n"
    with pytest.raises(TorcError, match="exit code 3: 'exit 3'"):
        action.execute({"commands": ["touch c", "exit 3", "touch d"]}, context)
    assert (tmp_path / "c").exists()
    assert not (tmp_path / "d").exists()
    with pytest.raises(TorcError, match="ended by SIGKILL"):
        action.execute({"commands": ["kill -9 $$"]}, context)
    with pytest.raises(TorcError, match="could not be started"):
        action.execute({"commands": ["true"]}, ActionContext(1, "http://127.0.0.1:1", str(tmp_path / "gone")))
