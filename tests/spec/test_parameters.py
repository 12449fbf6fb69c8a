"""Values of a parameter's text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NAMES, whole_ranges

from torc_framework.spec.expansion.parameters import MAX_VALUES, ParameterValue, parse_values


def texts(parameter: str) -> list[str]:
    return [value.text for value in parse_values(parameter)]


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ("1:5", ["1", "2", "3", "4", "5"]),
        ("0:100:25", ["0", "25", "50", "75", "100"]),
        ("0:10:4", ["0", "4", "8"]),
        ("5:1:-2", ["5", "3", "1"]),
        ("-2:2", ["-2", "-1", "0", "1", "2"]),
        ("3:3", ["3"]),
        (" 1 : 3 ", ["1", "2", "3"]),
        ("{1:3}", ["1", "2", "3"]),
        ("0.0:0.5:0.1", ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        ("0.1:0.30:0.1", ["0.1", "0.2", "0.3"]),
        ("1:2:0.5", ["1.0", "1.5", "2.0"]),
        ("1.0:0.0:-0.5", ["1.0", "0.5", "0.0"]),
        ("1e-4:3e-4:1e-4", ["0.0001", "0.0002", "0.0003"]),
        ("0.0:2.0", ["0.0", "1.0", "2.0"]),
        ("[16,32,64]", ["16", "32", "64"]),
        ("[ 16, 32 ]", ["16", "32"]),
        ("[0.0001,1e-3,0.010]", ["0.0001", "1e-3", "0.010"]),
        ("['adam','sgd']", ["adam", "sgd"]),
        ("[\"a, b\", 'c]']", ["a, b", "c]"]),
        ("[adam, sgd]", ["adam", "sgd"]),
        ("['']", [""]),
        ("7", ["7"]),
        ("adam", ["adam"]),
    ],
)
def test_formats(parameter: str, expected: list[str]) -> None:
    """Both ends of a range are included; a listed value keeps its spelling."""
    assert texts(parameter) == expected


def test_a_count_of_decimals_is_a_log_scale() -> None:
    """Ten values from 0.0001 to 0.01, each the same factor from the one before, the ends as written."""
    values = parse_values("0.0001:0.01:10")
    numbers = [value.number for value in values]
    assert len(values) == 10
    assert (values[0].text, values[-1].text) == ("0.0001", "0.01")
    ratios = [(later or 0) / (earlier or 0) for earlier, later in pairwise(numbers)]
    assert max(ratios) == pytest.approx(min(ratios))
    assert texts("1.0:0.01:3") == ["1.0", "0.1", "0.01"]


@pytest.mark.parametrize("parameter", ["0.0:1.0:5", "-1.0:1.0:5"])
def test_no_log_scale_through_zero(parameter: str) -> None:
    """A step beyond the end gives the first value alone."""
    assert len(texts(parameter)) == 1


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("", "is no parameter"),
        ("1,2,3", r"list such as '\[1,2,3\]'"),
        ("a:b", "is no range"),
        ("1:2:3:4", "is no range"),
        ("1:x", "is no range"),
        ("1:5:0", "must not be 0"),
        ("5:1", "write 5:1:-1"),
        ("1:5:-1", "leads away"),
        ("[]", "is empty"),
        ("[1,]", "cannot read"),
        ("[,1]", "cannot read"),
        ("[1", "it needs"),
        ("['a' 'b']", "cannot read"),
        ("[[1]]", "cannot read"),
        ("0:100000000000", f"at most {MAX_VALUES:,}"),
        ("0.1:0.2:0.000000000001", "at most"),
        ("0.1:0.2:99999999", "at most"),
        ("1:" + "9" * 40, "more than 30 digits"),
    ],
)
def test_what_is_no_parameter(parameter: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_values(parameter)


@given(whole_ranges())
def test_whole_ranges_hold_exactly_their_numbers(case: tuple[str, list[int]]) -> None:
    text, values = case
    assert [value.number for value in parse_values(text)] == values
    assert texts(text) == [str(value) for value in values]


@given(st.integers(-500, 500), st.integers(1, 200), st.integers(1, 60), st.integers(1, 3))
def test_decimal_ranges_have_no_rounding_drift(first: int, step: int, count: int, decimals: int) -> None:
    """Every value is the decimal that a person would write."""
    scale = 10**decimals

    def spelled(number: int) -> str:
        sign, rest = "-" if number < 0 else "", abs(number)
        return f"{sign}{rest // scale}.{rest % scale:0{decimals}d}"

    numbers = [first + k * step for k in range(count)]
    text = f"{spelled(first)}:{spelled(numbers[-1])}:{spelled(step)}"
    assert texts(text) == [spelled(number) if number else f"0.{'0' * decimals}" for number in numbers]


@given(st.lists(NAMES, min_size=1, max_size=20))
def test_lists_keep_their_entries(entries: list[str]) -> None:
    """Quoted either way, or bare."""
    for quote in ("'", '"', ""):
        assert texts("[" + ",".join(quote + entry + quote for entry in entries) + "]") == entries


@given(st.text(max_size=30))
def test_any_text_is_values_or_a_clear_no(text: str) -> None:
    """Nothing but `ValueError` is ever raised, and there is always at least one value."""
    try:
        assert parse_values(text)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    ("value", "specifier", "expected"),
    [
        (ParameterValue("5", 5), "03d", "005"),
        (ParameterValue("100", 100), "02d", "100"),
        (ParameterValue("0.001", 0.001), ".4f", "0.0010"),
        (ParameterValue("0.001", 0.001), ".2e", "1.00e-03"),
        (ParameterValue("5", 5), ".1f", "5.0"),
    ],
)
def test_format_specifiers(value: ParameterValue, specifier: str, expected: str) -> None:
    assert value.format(specifier) == expected


@pytest.mark.parametrize(
    ("value", "specifier", "message"),
    [
        (ParameterValue("a"), "03d", "'a' is text"),
        (ParameterValue("0.5", 0.5), "03d", "no whole number"),
        (ParameterValue("5", 5), "99999d", "is not known"),
        (ParameterValue("5", 5), "%Y", "is not known"),
    ],
)
def test_specifiers_that_do_not_go(value: ParameterValue, specifier: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        value.format(specifier)
