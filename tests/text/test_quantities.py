"""Sizes, durations and counts as text: one style, and what is shown reads back as what it says."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torc_framework.models.resources import duration_spelling, memory_spelling, parse_duration, parse_memory
from torc_framework.text.quantities import (
    core_time_text,
    count_text,
    duration_text,
    parse_size,
    parse_span,
    percent_text,
    relative_time_text,
    size_text,
)

MIB, GIB = 1024**2, 1024**3


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1023, "1 KiB"),
        (1024, "1 KiB"),
        (8.8 * MIB, "8.8 MiB"),
        (99.96 * MIB, "100 MiB"),
        (881 * MIB, "881 MiB"),
        (1023.7 * MIB, "1 GiB"),
        (1.5 * GIB, "1.5 GiB"),
        (240 * GIB, "240 GiB"),
        (3 * 1024**5, "3 PiB"),
    ],
)
def test_a_size_has_a_binary_unit_and_at_most_three_digits(size: float, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("size", "text"), [(1600 * MIB, "1600 MiB"), (1536 * MIB, "1.5 GiB"), (100 * GIB, "100 GiB"), (1000, "1000 B")]
)
def test_a_requested_size_is_exact(size: int, text: str) -> None:
    assert size_text(size, exact=True) == text
    assert parse_size(text) == size


@given(st.integers(0, 2**62))
@example(1023)
@example(1024**2 - 1)
def test_a_shown_size_can_be_typed_back(size: int) -> None:
    assert parse_size(size_text(size)) == pytest.approx(size, rel=0.05)
    assert size_text(parse_size(size_text(size))) == size_text(size)
    assert parse_memory(size_text(size, exact=True)) == size
    assert parse_memory(memory_spelling(size_text(size, exact=True))) >= size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0001, "1 ms"),
        (0.02, "20 ms"),
        (0.2, "0.2 s"),
        (4.1, "4.1 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (185, "3 min 05 s"),
        (3599.7, "1 h"),
        (7500, "2 h 05 min"),
        (86_390, "1 d"),
        (3 * 86_400 + 4 * 3_600, "3 d 4 h"),
        (-200, "-3 min 20 s"),
    ],
)
def test_a_duration_has_its_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_requested_duration_is_exact() -> None:
    assert duration_text(93_784, exact=True) == "1 d 2 h 03 min 04 s"


@given(st.floats(0, 10**9))
def test_a_shown_duration_can_be_typed_back(seconds: float) -> None:
    shown = duration_text(seconds)
    precision = 0.001 if seconds < 0.1 else 0.05 if seconds < 10 else 0.5 if seconds < 3600 else seconds * 0.021
    assert abs(parse_span(shown) - seconds) <= precision + 1e-9
    assert duration_text(parse_span(shown)) == shown
    assert parse_duration(shown) == math.ceil(parse_span(shown))


@given(st.integers(0, 10**10))
def test_a_requested_duration_reads_the_same(seconds: int) -> None:
    shown = duration_text(seconds, exact=True)
    assert parse_duration(shown) == seconds
    assert parse_duration(duration_spelling(shown)) == seconds


@pytest.mark.parametrize("text", ["", " ", "1h", "5", "1 h ", " 1 h", "1 h 2 d", "1 MB", "1,5 s", "1 s 2 s", "-1 s"])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_span(text)


@pytest.mark.parametrize("text", ["", "1", "8 GB", "8 gib", "1,5 GiB", "-1 GiB", "1.5", " 1 GiB", "١ GiB"])
def test_other_texts_are_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (-42, "42 s ago"),
        (-200, "3 min ago"),
        (7500, "in 2 h"),
        (-90_000, "1 d ago"),
        (-1e8, "1,157 d ago"),
    ],
)
def test_a_time_is_shown_by_its_distance(seconds: float, text: str) -> None:
    assert relative_time_text(seconds) == text


def test_counts_have_thousands_and_nouns() -> None:
    assert count_text(1234) == "1,234"
    assert (count_text(1, "job"), count_text(2, "job"), count_text(0, "entry", "entries")) == (
        "1 job",
        "2 jobs",
        "0 entries",
    )


@pytest.mark.parametrize(
    ("percent", "text"),
    [(0, "0%"), (0.01, "<0.1%"), (3.54, "3.5%"), (42.4, "42%"), (99.97, "99.9%"), (100, "100%"), (950.6, "951%")],
)
def test_a_share_below_all_is_not_shown_as_all(percent: float, text: str) -> None:
    assert percent_text(percent) == text


@pytest.mark.parametrize(
    ("core_seconds", "text"),
    [
        (0.0026, "<0.1 core-seconds"),
        (25, "25 core-seconds"),
        (90, "1.5 core-minutes"),
        (3600, "1 core-hour"),
        (4_444_444, "1,235 core-hours"),
    ],
)
def test_cpu_time_has_the_unit_that_gives_a_readable_number(core_seconds: float, text: str) -> None:
    assert core_time_text(core_seconds) == text
