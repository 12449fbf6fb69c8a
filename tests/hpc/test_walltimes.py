"""Walltimes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.hpc.walltimes import clock_text, parse_walltime
from torc_framework.models.resources import format_duration
from torc_framework.text.quantities import exact_duration_text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h", 7_200),
        ("30m", 1_800),
        ("3600s", 3_600),
        ("2d", 172_800),
        ("1h30m", 5_400),
        ("2H", 7_200),
        ("04:00:00", 14_400),
        ("4:00:00", 14_400),
        ("2-00:00:00", 172_800),
        ("1-12:30", 131_400),
        ("PT2H30M", 9_000),
        ("2 h", 7_200),
        ("1 d 12 h 05 min", 129_900),
        ("P1DT12H", 129_600),
    ],
)
def test_spellings(text: str, seconds: int) -> None:
    assert parse_walltime(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "2:00", "1:60:00", "1:00:60", "-1h", "0s", "00:00:00", "PT", "1.5h", "x"])
def test_refused(text: str) -> None:
    """A bare number and two fields could mean several things."""
    with pytest.raises(ValueError, match="is not a walltime: write for example '2h'"):
        parse_walltime(text)


@given(st.integers(1, 10**8))
def test_what_is_shown_can_be_typed(seconds: int) -> None:
    for spelling in (exact_duration_text, clock_text, format_duration):
        assert parse_walltime(spelling(seconds)) == seconds


def test_hours_stay_hours() -> None:
    assert clock_text(172_800) == "48:00:00"
