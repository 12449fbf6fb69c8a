"""Tests of the filter language: what texts mean, and how wrong ones are refused."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.job_filters import (
    FILTER_FIELDS,
    FilterError,
    FilterTerm,
    LabelBegin,
    Presence,
    TextPattern,
    TimeSpan,
    ValueKind,
    filter_text,
    parse_filter,
    quoted_value,
)
from torc_framework.models.statuses import JobStatus

NOW_S = datetime(2026, 7, 1, 12, 0, tzinfo=UTC).timestamp()
PAGE = Path(__file__).parents[2] / "docs/reference/workflow-views.md"


def only(text: str) -> FilterTerm:
    """Return the single term of a filter."""
    (term,) = parse_filter(text, NOW_S)
    return term


def values(text: str) -> tuple[Any, ...]:
    """Return the values of the single term of a filter."""
    return only(text).values


@pytest.mark.parametrize("text", ["", "  ", "\t\n"])
def test_an_empty_filter_has_no_terms(text: str) -> None:
    assert parse_filter(text) == []


def test_all_kinds_of_terms() -> None:
    found = parse_filter("status:failed,canceled group:train_# exit:137 node:n0* peak_mem>48g attempt>1 -text", NOW_S)
    assert found == [
        FilterTerm("status", "=", (JobStatus.FAILED, JobStatus.CANCELED)),
        FilterTerm("group", "=", (TextPattern(("train_#",)),)),
        FilterTerm("exit", "=", (137,)),
        FilterTerm("node", "=", (TextPattern(("n0", "")),)),
        FilterTerm("peak_mem", ">", (48 * 1024**3,)),
        FilterTerm("attempt", ">", (1,)),
        FilterTerm("name", "=", (TextPattern(("", "text", "")),), is_negated=True),
    ]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("exit=1", "exit:1"),
        ("exit:>1", "exit>1"),
        ("exit:!=1", "-exit:1"),
        ("-exit!=1", "exit:1"),
        ("EXIT:1", "exit:1"),
        ('name:"a"', "name:a"),
        ("signal:9", "signal:SIGKILL"),
        ("signal:kill", "signal:SIGKILL"),
        ("memory>1.5g", "memory>1536m"),
        ("runtime>90m", "runtime>PT1H30M"),
        ("seconds>1h30m", "seconds>5400"),
        ("cpu>50%", "cpu>50"),
        ("interrupted:yes", "interrupted:true"),
    ],
)
def test_spellings_of_the_same_filter(text: str, same: str) -> None:
    assert parse_filter(text, NOW_S) == parse_filter(same, NOW_S)


def test_words_are_parts_of_the_name_and_patterns_are_whole_names() -> None:
    assert values("a,b") == (TextPattern(("", "a,b", "")),)
    assert values("tr*n") == (TextPattern(("tr", "n")),)
    assert values('"a b"') == (TextPattern(("", "a b", "")),)
    assert values('"status:failed"') == (TextPattern(("", "status:failed", "")),)


def test_quotes_and_backslashes() -> None:
    assert values(r'reason:"a \"b\" \\ c*d \*"') == (TextPattern(('a "b" \\ c', "d *")),)
    assert values('reason:"none"') == (TextPattern(("none",)),)
    assert values("reason:none") == (Presence.NONE,)
    assert values("reason:any,x") == (Presence.ANY, TextPattern(("x",)))


def test_times_are_spans() -> None:
    day, minute = 86_400, 60
    start = datetime(2026, 6, 30, tzinfo=UTC).timestamp()
    assert values("ended:2026-06-30") == (TimeSpan(start, start + day),)
    assert values("ended:2026-06-30T12:30") == (TimeSpan(start + 45_000, start + 45_000 + minute),)
    assert values("ended:2026-06-30T12:30:05Z") == (TimeSpan(start + 45_005, start + 45_006),)
    assert values("ended:2026-06-30T12:30+02:00") == (TimeSpan(start + 45_000 - 7200, start + 45_060 - 7200),)
    assert values("started>11:30") == (TimeSpan(NOW_S - 1800, NOW_S - 1740),)
    assert values("ended>2h") == (TimeSpan(NOW_S - 7200, NOW_S - 7200),)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("status:faild", 8, "did you mean 'failed'"),
        ("ok statis:failed", 4, "did you mean 'status'"),
        ("exit:", 6, "a value is missing"),
        ("exit:1,", 8, "a value is missing"),
        ("exit:one", 6, "no whole number"),
        ("exit:99999999999999999999", 6, "no whole number"),
        ("exit>1,2", 7, "takes a single value"),
        ("status>failed", 1, "has no order"),
        ("peak_mem>48x", 10, "is no size"),
        ("seconds>soon", 9, "is no duration"),
        ("ended>soon", 7, "is no time"),
        ("ended>2026-13-01", 7, "is no time"),
        ("ended:2h", 7, "write ended>2h"),
        ("signal:SIGNONE", 8, "no signal"),
        ("interrupted:maybe", 13, "neither yes nor no"),
        ('"open', 1, "not closed"),
        ('a"b', 2, "a quote stands at the begin"),
        ('"a"b', 4, "a blank has to follow"),
        ("a - b", 4, "needs a term"),
        ("http://x", 1, "no field"),
        ("a " * 51, 101, "at most 50 terms"),
        ("id:" + ",".join("1" * 201), 404, "at most 200 values"),
        ("x" * 4001, 4001, "longer than 4000"),
    ],
)
def test_a_wrong_filter_is_refused_with_the_position_of_the_error(text: str, position: int, message: str) -> None:
    with pytest.raises(FilterError, match=re.escape(f"filter, position {position}: ")) as caught:
        parse_filter(text, NOW_S)
    assert message in str(caught.value)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a", "A", True),
        ("a", "ab", False),
        ("a*", "ab", True),
        ("*b", "ab", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("*x*y*", "axbyc", True),
        ("*x*y*", "aybxc", False),
        ("*", "", True),
        ("a*b*c", "abbc", True),
    ],
)
def test_patterns(pattern: str, text: str, expected: bool) -> None:
    assert TextPattern(tuple(pattern.split("*"))).matches(text) is expected


def test_groups_are_labels_or_their_begins() -> None:
    assert values("group:train") == (LabelBegin("train"),)
    assert values('group:"train"') == (TextPattern(("train",)),)
    assert values("group:train_#,t*") == (TextPattern(("train_#",)), TextPattern(("t", "")))
    found = [
        label
        for label in ("train", "train_lr#", "Train#", "training_#", "retrain")
        if LabelBegin("train").matches(label)
    ]
    assert found == ["train", "train_lr#", "Train#"]


@given(st.lists(st.text("aAb", max_size=3), min_size=1, max_size=5), st.text("aAb", max_size=8))
def test_patterns_agree_with_regular_expressions(parts: list[str], text: str) -> None:
    expression = ".*".join(map(re.escape, parts))
    assert TextPattern(tuple(parts)).matches(text) is bool(re.fullmatch(expression, text, re.IGNORECASE))


@given(st.text())
def test_any_text_is_read_or_refused_with_a_position(text: str) -> None:
    position, terms = 1, []
    try:
        terms = parse_filter(text, NOW_S)
    except FilterError as error:
        position = error.position
    assert 1 <= position <= len(text) + 1
    assert all(term.field in FILTER_FIELDS and term.values for term in terms)


WRITTEN = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.sampled_from(sorted(FILTER_FIELDS)), WRITTEN)
def test_a_text_that_is_written_is_read_again(field: str, text: str) -> None:
    if FILTER_FIELDS[field].kind is ValueKind.TEXT:
        assert values(filter_text([(field, quoted_value(text))])) == (TextPattern((text,)),)


@given(WRITTEN)
def test_a_pattern_that_is_written_is_read_again(text: str) -> None:
    written = filter_text([("reason", quoted_value(text, keeps_wildcards=True))])
    assert values(written) == (TextPattern(tuple(text.split("*"))),)


def test_every_field_is_described_on_the_page() -> None:
    described = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"(?m)^\| (`[^|]*) \|", PAGE.read_text()))))
    assert set(FILTER_FIELDS) <= described
