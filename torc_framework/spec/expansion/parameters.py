"""Parsing of a parameter's text into its values, in order.

::

    1:5   0:100:10   5:1:-1      whole numbers, both ends included
    0.0:1.0:0.1                  decimal numbers, both ends included, no rounding drift
    0.0001:0.01:10               10 numbers, evenly spaced on a log scale
    [1,2,3]  [0.1,0.5]  ['a','b']  [a,b]     these values
    7   adam                     this value

In a decimal range, a step that is a whole number of at least 2 and larger than the span is a count on a log scale
(Torc, "Float Ranges"); as a step it would give only one value.
"""

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, TypeVar, overload

from attrs import frozen

MAX_VALUES: Final = 2_000_000
"""Largest number of values of a parameter, and of items of a spec."""
MAX_DIGITS: Final = 30

MAX_KEPT_VALUES: Final = 10_000
"""Largest number of values of a range that are kept in memory; those of a longer one are made at each use."""

_NUMBER: Final = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,2})?"
_RANGE: Final = re.compile(rf"\s*({_NUMBER})\s*:\s*({_NUMBER})\s*(?::\s*({_NUMBER})\s*)?")
_WHOLE: Final = re.compile(r"[-+]?\d+")
_ANY_NUMBER: Final = re.compile(_NUMBER)
_ITEM: Final = re.compile(r"""\s*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<bare>[^'",\[\]]+?))\s*(?:,|$)""")
_SPECIFIER: Final = re.compile(r"[-+ ]?0?\d{0,3}(?:\.\d{1,2})?[dxXeEfFgG]?")


_Made = TypeVar("_Made")


class MadeValues(Sequence[_Made]):
    """Values of one type, each of which is made at each use.

    Args:
        count: Number of values.
        make: Returns the value at a position from 0.
    """

    def __init__(self, count: int, make: Callable[[int], _Made]) -> None:
        self._count, self.make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, position: int) -> _Made: ...

    @overload
    def __getitem__(self, position: slice) -> list[_Made]: ...

    def __getitem__(self, position: int | slice) -> _Made | list[_Made]:
        if isinstance(position, slice):
            return [self.make(each) for each in range(self._count)[position]]
        return self.make(range(self._count)[position])


class WholeNumbers(MadeValues["ParameterValue"]):
    """The values of a range of whole numbers."""

    def __init__(self, numbers: range) -> None:
        super().__init__(len(numbers), lambda position: ParameterValue(str(numbers[position]), numbers[position]))
        self.numbers = numbers


@frozen
class ParameterValue:
    """One value of a parameter.

    Attributes:
        text: Replacement of ``{name}``.
        number: Number for format specifiers; None for a text.
    """

    text: str
    number: int | float | None = None

    def format(self, specifier: str) -> str:
        """Return the value as ``{name:specifier}``.

        Raises:
            ValueError: the specifier is not known, or cannot be applied to this value.
        """
        if not _SPECIFIER.fullmatch(specifier):
            raise ValueError(f"format {specifier!r} is not known; write for example {{i:03d}}, {{x:.4f}} or {{x:.2e}}")
        if self.number is None:
            raise ValueError(f"format {specifier!r} needs a number, and {self.text!r} is text")
        try:
            return format(self.number, specifier)
        except ValueError as error:
            raise ValueError(f"format {specifier!r} does not go with {self.text}: it is no whole number") from error


def parse_values(text: str) -> Sequence[ParameterValue]:
    """Return the values of a parameter's text: a list, or `MadeValues` of a long range, which are all of one type.

    Raises:
        ValueError: the text has no known form, or it has no value or too many.
    """
    bare = text.strip()
    if bare.startswith("[") or bare.endswith("]"):
        return _list(bare)
    unwrapped = bare[1:-1] if bare.startswith("{") and bare.endswith("}") else bare
    if match := _RANGE.fullmatch(unwrapped):
        start, stop, step = match.groups()
        return _range(start, stop, step)
    if ":" in bare:
        raise ValueError(f"{text!r} is no range: write START:END or START:END:STEP with numbers")
    if not bare or "," in bare:
        raise ValueError(f"{text!r} is no parameter: write a range such as '1:10' or a list such as '[1,2,3]'")
    return [_bare(bare)]


def _list(text: str) -> list[ParameterValue]:
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(f"{text!r} is no list: it needs '[' and ']'")
    inner = text[1:-1].strip()
    if not inner:
        raise ValueError("the list is empty: a parameter needs at least one value")
    values, position = [], 0
    while position < len(inner) or (inner.endswith(",") and position == len(inner)):
        match = _ITEM.match(inner, position)
        if match is None:
            raise ValueError(f"{text!r} is no list: cannot read {inner[position : position + 20]!r}")
        quoted = match["single"] if match["double"] is None else match["double"]
        values.append(_bare(match["bare"]) if quoted is None else ParameterValue(quoted))
        position = match.end()
    return values


def _bare(text: str) -> ParameterValue:
    if not _ANY_NUMBER.fullmatch(text) or len(text) > MAX_DIGITS:
        return ParameterValue(text)
    return ParameterValue(text, int(text) if _WHOLE.fullmatch(text) else float(text))


def _range(start: str, stop: str, step: str | None) -> Sequence[ParameterValue]:
    """Return the values of a range from its three texts."""
    texts = [start, stop] + ([step] if step else [])
    if max(map(len, texts)) > MAX_DIGITS:
        raise ValueError(f"a number of more than {MAX_DIGITS} digits")
    try:
        first, last, by = Decimal(start), Decimal(stop), Decimal(step or "1")
    except InvalidOperation as error:
        raise ValueError(f"{':'.join(texts)!r} is no range of numbers") from error
    if step and not _WHOLE.fullmatch(start + stop) and _is_log_count(first, last, step):
        return _log_spaced(start, stop, int(step))
    if not by:
        raise ValueError("the step of a range must not be 0")
    if (last - first) * by < 0:
        hint = "" if step else f"; write {start}:{stop}:-1 to count down"
        raise ValueError(f"the range {':'.join(texts)} is empty: the step leads away from the end{hint}")
    count = int((last - first) / by + Decimal("1e-10")) + 1
    if count > MAX_VALUES:
        raise ValueError(f"the range stands for {count:,} values; at most {MAX_VALUES:,} are allowed")
    if all(map(_WHOLE.fullmatch, texts)):
        numbers = range(int(first), int(first) + count * int(by), int(by))
        return WholeNumbers(numbers) if count > MAX_KEPT_VALUES else list(WholeNumbers(numbers))
    decimals = max(0, *(-int(number.as_tuple().exponent) for number in (first, by)))
    return _several(count, lambda k: _decimal(first + k * by, decimals))


def _several(count: int, make: Callable[[int], ParameterValue]) -> Sequence[ParameterValue]:
    return MadeValues(count, make) if count > MAX_KEPT_VALUES else list(map(make, range(count)))


def _decimal(number: Decimal, decimals: int) -> ParameterValue:
    text = f"{number:.{decimals}f}"
    return ParameterValue(text, float(text))


def _is_log_count(first: Decimal, last: Decimal, step: str) -> bool:
    return bool(_WHOLE.fullmatch(step)) and int(step) >= 2 and int(step) > abs(last - first) and min(first, last) > 0


def _log_spaced(start: str, stop: str, count: int) -> Sequence[ParameterValue]:
    """Return ``count`` numbers with a constant factor between neighbours; the ends are exact."""
    if count > MAX_VALUES:
        raise ValueError(f"the range stands for {count:,} values; at most {MAX_VALUES:,} are allowed")
    low, high = math.log(float(start)), math.log(float(stop))

    def make(k: int) -> ParameterValue:
        text = repr(float(f"{math.exp(low + (high - low) * k / (count - 1)):.12g}"))
        text = {0: start, count - 1: stop}.get(k, text)
        return ParameterValue(text, float(text))

    return _several(count, make)


def zip_problem(names: Sequence[str], counts: Sequence[int]) -> str | None:
    """Return why parameters cannot be zipped, or None."""
    for name, count in zip(names, counts, strict=True):
        if count != counts[0]:
            return (
                "All parameters must have the same number of values when using 'zip' mode. "
                f"Parameter '{names[0]}' has {counts[0]} values, but '{name}' has {count} values."
            )
    return None
