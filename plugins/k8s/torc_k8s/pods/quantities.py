"""Quantities of Kubernetes, such as ``500m`` CPUs and ``2Gi`` of memory.

Source: Kubernetes API reference, "Quantity": a decimal number and a suffix of powers of 10 or 1024, or an exponent.
"""

import re
from decimal import Decimal, localcontext
from typing import Any, Final

_QUANTITY: Final = re.compile(
    r"([+-]?)([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})"
    r"(?:([EPTGMk]|[EPTGMK]i|[munE])?|[eE]([+-]?[0-9]{1,3}))"
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
MAX_QUANTITY: Final = 2**63 - 1
"""Kubernetes stores larger quantities as this number."""


def parse_quantity(value: Any) -> Decimal:
    """Return the number that a quantity stands for: 0.5 for ``500m``, 1024 for ``1Ki``, at most 2**63 - 1.

    Raises:
        ValueError: the value is no quantity.
    """
    text = str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{str(value)[:60]!r} is not a quantity: write for example 2, 500m, 512Mi or 10Gi")
    sign, digits, suffix, exponent = match.groups()
    suffix = suffix or ""
    with localcontext() as context:
        context.prec = 100
        number = Decimal(digits)
        if suffix in _BINARY:
            number *= Decimal(1024) ** _BINARY[suffix]
        else:
            number *= Decimal(10) ** (int(exponent) if exponent else _DECIMAL[suffix])
        number = min(number, Decimal(MAX_QUANTITY))
    return -number if sign == "-" else number


def whole_quantity(value: Any) -> int:
    """Return the whole number, such as bytes, that a quantity stands for, rounded up.

    Raises:
        ValueError: the value is no quantity.
    """
    number = parse_quantity(value)
    return int(number.to_integral_value(rounding="ROUND_CEILING"))


def bytes_quantity(size_bytes: int) -> str:
    """Return the exact quantity for a number of bytes: ``2Gi`` for 2 GiB."""
    for suffix, power in reversed(_BINARY.items()):
        if size_bytes and size_bytes % 1024**power == 0:
            return f"{size_bytes // 1024**power}{suffix}"
    return str(size_bytes)


def size_quantity(text: str) -> str:
    """Return the quantity for a size in Kubernetes' spelling (``5Gi``) or torc's (``5g``); both of these are 5 GiB.

    The suffixes k, m, g and t are torc's, powers of 1024 and lower-case; all others are Kubernetes'.

    Raises:
        ValueError: the text is no size.
    """
    from torc_framework.api import parse_memory

    if re.fullmatch(r"[0-9]+[kmgt]", text):
        return bytes_quantity(parse_memory(text))
    if parse_quantity(text) <= 0:
        raise ValueError(f"{text!r} is not a size above 0: write for example 512Mi or 10Gi")
    return text
