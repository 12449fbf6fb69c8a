"""Time limits in the forms of Slurm and Spur."""

from hypothesis import given
from hypothesis import strategies as st

from torc_framework.models import time_limits


@given(st.integers(0, 10**6), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_time_limits_are_exact(days: int, hours: int, minutes: int, seconds: int) -> None:
    """Both dialects agree where all fields are written; part of a minute is a minute."""
    text = f"{days}-{hours:02}:{minutes:02}:{seconds:02}"
    expected = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    for dialect in time_limits.DIALECTS:
        assert time_limits.parse_time_limit(text, "seconds", dialect) == expected
        assert time_limits.parse_time_limit(text, "minutes", dialect) == -(-expected // 60)
    assert time_limits.parse_time_limit(f"{days}d{hours}H{minutes}m{seconds}s", "seconds", "spur") == expected


@given(st.text(max_size=20))
def test_time_limits_are_refused_or_in_range(text: str) -> None:
    """Any text is a number in range, no limit, or an error."""
    for dialect in time_limits.DIALECTS:
        for unit, most in time_limits.MOST.items():
            try:
                value = time_limits.parse_time_limit(text, unit, dialect)
            except ValueError:
                continue
            assert value is None or 0 <= value <= most
