"""Quantities: parsed exactly, and refused where Kubernetes refuses them."""

from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torc_k8s.pods.quantities import MAX_QUANTITY, bytes_quantity, parse_quantity, size_quantity, whole_quantity

SUFFIXES: dict[str, Fraction | int] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}


@given(st.decimals(0, 10**6, places=4), st.sampled_from(sorted(SUFFIXES)))
def test_a_quantity_is_its_number_times_its_suffix(number: Decimal, suffix: str) -> None:
    expected = min(Fraction(number) * SUFFIXES[suffix], Fraction(MAX_QUANTITY))
    assert Fraction(parse_quantity(f"{number}{suffix}")) == expected


@given(st.integers(0, MAX_QUANTITY))
def test_a_number_of_bytes_comes_back(size: int) -> None:
    assert whole_quantity(bytes_quantity(size)) == size


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_an_error(text: str) -> None:
    with suppress(ValueError):
        assert abs(parse_quantity(text)) <= MAX_QUANTITY


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e3", 1000), ("1E3", 1000), ("12E", 12 * 10**18), ("-1", -1), (".5", "0.5"), ("2.", 2), (7, 7)],
)
def test_spellings(text: object, number: object) -> None:
    assert parse_quantity(text) == min(Decimal(str(number)), Decimal(MAX_QUANTITY))


@pytest.mark.parametrize(
    "text", ["", "1 Gi", "1gi", "1K", "0x10", "1e", "Gi", "1e9999", "9" * 40, True, None, [], "1\n", "١"]
)
def test_what_is_no_quantity(text: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


def test_a_size_has_torcs_spelling_too() -> None:
    assert size_quantity("5g") == size_quantity("5Gi") == "5Gi"
    assert size_quantity("5m") == "5Mi"
    assert size_quantity("2G") == "2G"
    with pytest.raises(ValueError, match="above 0"):
        size_quantity("0")
