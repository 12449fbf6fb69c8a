"""Tests of safe regular expressions: the time of a search is limited."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torc_framework.builtin.failures import _is_in_stderr
from torc_framework.spec import inspect
from torc_framework.text import safe_regex
from torc_framework.text.safe_regex import search_all

EVIL = ["^(a+)+$", "(a|aa)+$", "(.*)*=", r"(a+)\1+$", "(?=(a+)+$)b"]
"""Expressions whose search takes ages on some text, each in another way."""
TEXTS = ["a" * 5000 + "!", "x" * 5000, "a b " * 2000 + "!"]
TEXT_LISTS = st.lists(st.text("ab", max_size=12), max_size=5)
PARTS = st.sampled_from(
    ["a", "b", ".", "[ab]", r"\w", "a*", "b+", ".*", "a?", "a{2,3}", "(a|b)", "(ab)+", "^", "$", "|", "(?:a)"]
)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the limit be a second, and nothing be remembered."""
    monkeypatch.setattr(safe_regex, "LIMIT_S", 1)
    monkeypatch.setattr(safe_regex, "_refused", set())


@pytest.mark.parametrize("pattern", EVIL)
def test_a_search_ends(pattern: str) -> None:
    """With an error that says what to write, and the next time at once."""
    with pytest.raises(ValueError, match="takes too long: write it without repeats within repeats"):
        search_all(pattern, TEXTS)
    began = time.process_time()
    with pytest.raises(ValueError, match="takes too long"):
        search_all(pattern, TEXTS)
    assert time.process_time() - began < 0.5


@settings(max_examples=60, deadline=None)
@given(
    pattern=st.lists(PARTS, min_size=1, max_size=5).map("".join), texts=st.lists(st.text("ab", max_size=12), max_size=5)
)
def test_the_answer_is_pythons(pattern: str, texts: list[str]) -> None:
    """The result is the same in this process and in a child process."""
    expected = [n for n, text in enumerate(texts) if re.search(pattern, text)]
    assert search_all(pattern, texts) == expected


@pytest.mark.parametrize(("pattern", "flags"), [("(a+)+$", re.MULTILINE), ("(?i)(AA?)+$", 0), ("(ä|ö)+\n?", re.DOTALL)])
def test_a_process_of_its_own_finds_the_same(pattern: str, flags: int) -> None:
    """Flags and all letters arrive there."""
    texts = ["aa\nb", "bäö", "b", "\ud800aa", ""]
    compiled = re.compile(pattern, flags)
    assert search_all(pattern, texts, flags) == [n for n, text in enumerate(texts) if compiled.search(text)]


def test_usual_patterns_are_searched_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand names cost no further process."""
    monkeypatch.setattr(safe_regex, "_search_apart", None)
    names = [f"job_{n}_train" for n in range(100_000)]
    assert len(search_all(r"^job_\d+_train$", names)) == 100_000
    assert search_all("^job_7_", names) == [7]
    assert len(search_all("train", names)) == 100_000


def test_a_spec_with_such_a_pattern_is_refused(tmp_path: Path) -> None:
    """The finding names the field; that a name is very long is no harm."""
    path = tmp_path / "w.yaml"
    jobs = [{"name": "a" * 3000, "command": "c"}, {"name": "b", "command": "c", "depends_on_regexes": ["^(a+)+b$"]}]
    path.write_text(json.dumps({"name": "w", "jobs": jobs}))
    (finding,) = inspect(path).findings
    assert finding.path == ("jobs", 1, "depends_on_regexes", 0)
    assert "'^(a+)+b$' takes too long" in finding.message


def test_a_failure_rule_with_such_a_pattern_fits_nothing(tmp_path: Path) -> None:
    """The runner continues after an expression that took too long on a job's output."""
    log = tmp_path / "a.e"
    log.write_text("a" * 100_000 + "!\nKilled\n")
    assert not _is_in_stderr("^(a+)+$", str(log))
    assert _is_in_stderr("^Kill.*d$", str(log))
