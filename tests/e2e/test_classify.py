"""``torc classify``: every case gets an answer, wrong ones too."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e


def ask(torc: Any, path: Path, document: Any) -> subprocess.CompletedProcess[str]:
    """Ask with a file."""
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    done: subprocess.CompletedProcess[str] = torc("classify", path)
    return done


def test_a_list_is_answered_in_its_order(torc: Any, tmp_path: Path) -> None:
    """One wrong case costs only its own answer, and the exit code."""
    good = {"executor": "torc-local", "kind": "classify", "observation": {"exit_code": 3}, "policy": {}}
    cases = [{"id": "a", **good}, {"id": "b", "executor": "moon"}, {"id": "c", **good}] * 700
    done = ask(torc, tmp_path / "cases.json", cases)
    answers = json.loads(done.stdout)
    assert [answer["id"] for answer in answers] == ["a", "b", "c"] * 700
    assert (answers[0]["outcome"], answers[0]["exit"]) == ("user_error", 3)
    assert "executor is 'moon'" in answers[1]["error"]
    assert done.returncode == 1


def test_single_cases_and_wrapped_ones(torc: Any, tmp_path: Path) -> None:
    """An object is one case, or holds cases; all answered is exit code 0."""
    case = {"id": 7, "executor": "local", "observation": {"signal": 9}}
    one = ask(torc, tmp_path / "one.json", case)
    assert (one.returncode, json.loads(one.stdout)["outcome"]) == (0, "signaled")
    wrapped = ask(torc, tmp_path / "wrapped.json", {"format": "x", "cases": [case]})
    assert (wrapped.returncode, [answer["id"] for answer in json.loads(wrapped.stdout)]) == (0, [7])
    assert ask(torc, tmp_path / "none.json", []).stdout == "[]\n"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "is no JSON"),
        ("", "is no JSON"),
        ("[NaN]", "NaN is no value of JSON"),
        ("[" * 100_000, "is nested too deeply"),
        ("3", "expected one case, a list of cases"),
        ('{"cases": 3}', "expected one case, a list of cases"),
    ],
)
def test_documents_that_are_none(torc: Any, tmp_path: Path, document: str, message: str) -> None:
    """One message, exit code 2, nothing on standard output."""
    done = ask(torc, tmp_path / "wrong.json", document)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there(torc: Any, tmp_path: Path) -> None:
    """The message has the name."""
    done = torc("classify", tmp_path / "gone.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "gone.json cannot be read: No such file" in done.stderr
