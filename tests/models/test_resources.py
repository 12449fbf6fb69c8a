"""Sizes and durations: every spelling of the manual, and nothing else."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torc_framework.models.resources import (
    MAX_BYTES,
    Resources,
    format_duration,
    format_memory,
    parse_duration,
    parse_memory,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1m", 1024**2), ("512k", 512 * 1024), ("16G", 16 * 1024**3), ("2t", 2 * 1024**4), ("0", 0), ("4096", 4096)],
)
def test_memory_sizes_of_the_manual(text: str, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "g", "1.5g", "1gb", "-1g", " 1g", "1g\n", "1 g", "١g", "9999999999t"])
def test_anything_else_is_no_memory_size(text: str) -> None:
    with pytest.raises(ValueError, match=r"memory size"):
        parse_memory(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT30M", 1800),
        ("PT2H", 7200),
        ("P1D", 86400),
        ("P1DT12H", 129600),
        ("P0DT1M", 60),
        ("P0DT00H04M00S", 240),
        ("P2W", 1209600),
        ("PT1.9S", 1),
        ("P1Y", 31_557_600),
        ("P1M", 2_629_800),
        ("PT0S", 0),
    ],
)
def test_durations_of_the_contract(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1h", "04:00:00", "-PT1H", "pt1h", "PT1H1H", "PT1", "P1H"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**10))
def test_a_formatted_duration_reads_the_same(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.integers(min_value=0, max_value=MAX_BYTES // 2))
@example(2**60 + 1)
@example(2**62 + 1)
def test_a_formatted_size_is_never_smaller_and_hardly_larger(size: int) -> None:
    again = parse_memory(format_memory(size))
    assert size <= again <= size + size / 1024 + 1


@pytest.mark.parametrize("parse", [parse_memory, parse_duration])
@given(text=st.text(max_size=12))
def test_any_other_text_is_refused_by_name(parse: Callable[[str], int], text: str) -> None:
    try:
        size = parse(text)
    except ValueError as error:
        message = str(error)
    else:
        message = f"{text!r}: {size}"
        assert size >= 0
    assert repr(text) in message


def test_a_request_fits_only_where_every_amount_does() -> None:
    offer = Resources(num_cpus=4, memory_bytes=8, num_gpus=1, num_nodes=1, runtime_s=100)
    assert Resources(4, 8, 1, 1, 100).fits(offer)
    assert not Resources(5, 8, 0, 1, 1).fits(offer)
    assert not Resources(1, 9, 0, 1, 1).fits(offer)
    assert not Resources(1, 1, 2, 1, 1).fits(offer)
    assert not Resources(1, 1, 0, 2, 1).fits(offer)
    assert not Resources(1, 1, 0, 1, 101).fits(offer)
    assert Resources(1, 1, 0, 1, None).fits(Resources(1, 1, 0, 1, None))
