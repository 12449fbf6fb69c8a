"""The rank of log lines, and normal forms of lines."""

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.forensics.line_ranking import (
    MAX_LINE_LENGTH,
    LineRank,
    lines_to_show,
    most_informative,
    normalized_line,
    printable_line,
    rank_line,
)
from torc_framework.models.log_patterns import LogPattern, Severity

WORDS = st.text("abcxyz", min_size=1, max_size=6)
VARIABLE = st.one_of(
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.uuids().map(str),
    st.integers(0, 2**64).map(hex),
    st.datetimes().map(lambda moment: moment.isoformat(sep=" ")),
)
TEMPLATES = st.lists(st.one_of(WORDS, st.just(None)), min_size=1, max_size=6)


@given(TEMPLATES, st.data())
def test_lines_that_differ_in_numbers_and_ids_are_one(template: list[str | None], data: st.DataObject) -> None:
    """For every kind of number and id."""
    one, two = (" ".join(word or data.draw(VARIABLE) for word in template) for _ in range(2))
    assert normalized_line(one) == normalized_line(two)


@given(st.lists(WORDS, min_size=1, max_size=5), st.lists(WORDS, min_size=1, max_size=5), WORDS)
def test_folders_do_not_matter_and_files_do(one: list[str], two: list[str], name: str) -> None:
    """The same file in two places is one trouble; two files are two."""
    here, there = (f"cannot open /{'/'.join(folders)}/{name}.csv" for folders in (one, two))
    assert normalized_line(here) == normalized_line(there)
    assert normalized_line(here) != normalized_line(here.replace(f"{name}.csv", f"{name}q.csv"))


@given(st.text())
def test_any_text_has_a_short_printable_form_that_stays(line: str) -> None:
    """Applied twice it changes nothing; no digit and no control character is left."""
    once = normalized_line(line)
    assert normalized_line(once) == once
    assert len(once) <= MAX_LINE_LENGTH
    assert re.search(r"[\x00-\x1f\d]", once) is None
    assert len(printable_line(line)) <= MAX_LINE_LENGTH


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ValueError: bad value 17 in /scratch/run_17/case_17.csv", "ValueError: bad value # in …/case_#.csv"),
        ("2026-11-21 13:05:28,123 ERROR step 5 failed", "# ERROR step # failed"),
        ("\x1b[31mKeyError: 'a'\x1b[0m", "KeyError: 'a'"),
        (f"lost worker {uuid.UUID(int=5)} at 0x7f3a", "lost worker # at #"),
        ("loss -1.5e-7 is not 3", "loss # is not #"),
        ("either/or, http://host/a/b", "either/or, http://host/a/b"),
        ("./run.sh: line 3: foo: command not found", "…/run.sh: line #: foo: command not found"),
    ],
)
def test_samples(line: str, expected: str) -> None:
    """Lines of real logs."""
    assert normalized_line(line) == expected


def test_the_name_of_the_job_does_not_matter() -> None:
    """Only as a word of its own."""
    assert normalized_line("train_resnet failed", "train_resnet") == normalized_line("train_vgg failed", "train_vgg")
    assert normalized_line("retrain_resnet failed", "train_resnet") == "retrain_resnet failed"


def test_two_keys_are_two_troubles() -> None:
    """Quoted words are not left out."""
    assert normalized_line("KeyError: 'mass'") != normalized_line("KeyError: 'speed'")


def test_an_exception_tells_more_than_a_pattern_and_that_more_than_words() -> None:
    """A harmless pattern makes a line no worse than its words."""
    known = LogPattern("Disk full", re.compile("No space"), Severity.ERROR, "make room")
    harmless = LogPattern("Note", re.compile("note"), Severity.INFO)
    ranks = [
        rank_line(1, "Traceback (most recent call last):", known),
        rank_line(2, "note", harmless),
        rank_line(3, "No space left", known),
        rank_line(4, "package.module.CustomError: no", None),
        rank_line(5, "ok"),
    ]
    assert [line and line.rank for line in ranks] == [
        LineRank.PLAIN,
        LineRank.WORDY,
        LineRank.KNOWN,
        LineRank.EXCEPTION,
        LineRank.PLAIN,
    ]
    assert rank_line(6, " \t") is None


def test_of_equal_lines_the_last_tells_most() -> None:
    """What came before was survived; before an exception stands where it was raised."""
    lines = [
        line
        for number, text in enumerate(["AError: a", "x", "y", "BError: b", "z"], 1)
        if (line := rank_line(number, text))
    ]
    best = most_informative(lines)
    assert best is not None
    assert best.text == "BError: b"
    assert [line.text for line in lines_to_show(lines)] == ["AError: a", "x", "y", "BError: b"]
    assert [line.text for line in lines_to_show(lines[4:])] == ["z"]
    assert most_informative([]) is None
