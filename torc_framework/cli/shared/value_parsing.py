"""Reads the values of options without pydantic, whose import alone costs more than most of our commands.

Typer (0.29) converts values by an object that it makes when the first value arrives. Parameters
of plain types get a light one of ours here; all others are left to Typer. It can go when Typer
reads plain types by itself.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import typer
from attrs import frozen

_TRUTH_VALUES: Final = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


def _read_truth(value: Any) -> bool:
    return value if isinstance(value, bool) else _TRUTH_VALUES[str(value).strip().lower()]


_PLAIN_READERS: Final[Mapping[Any, tuple[str, Callable[[Any], Any]]]] = {
    str: ("a text", str),
    int: ("a whole number", int),
    float: ("a number", float),
    bool: ("true or false", _read_truth),
    Path: ("a path", Path),
}
"""How each plain type is called and read."""


def _choice_reader(kind: Any) -> tuple[str, Callable[[Any], Any]] | None:
    """Return how one of some words is called and read, in letters of any size; None if a type is no such choice."""
    if not (isinstance(kind, type) and issubclass(kind, StrEnum)):
        return None
    words = {word.value.lower(): word for word in kind}
    return f"one of {', '.join(words)}", lambda text: words[str(text).lower()]


@frozen
class _ValueReader:
    """Stands in for Typer's own converter of one parameter."""

    called: str
    reader: Callable[[Any], Any]
    low: float | None
    high: float | None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value, or the values of a parameter that takes several."""
        many = param.multiple or param.nargs == -1
        if value is None:
            return () if many else None
        return [self._read(item, param, ctx) for item in value] if many else self._read(value, param, ctx)

    def _read(self, text: Any, param: Any, ctx: Any) -> Any:
        try:
            value = self.reader(text)
        except (KeyError, ValueError):
            raise typer.BadParameter(f"{text!r} is not {self.called}", ctx=ctx, param=param) from None
        if self.low is not None and not value >= self.low:  # also refuses nan
            raise typer.BadParameter(f"{text} is too small; expected at least {self.low}", ctx=ctx, param=param)
        if self.high is not None and not value <= self.high:
            raise typer.BadParameter(f"{text} is too large; expected at most {self.high}", ctx=ctx, param=param)
        return value


def use_plain_readers(params: Iterable[Any]) -> None:
    """Give parameters of plain types, and of lists of them, a converter that imports nothing."""
    for param in params:
        descriptor = getattr(param, "type_descriptor", None)
        if descriptor is None:
            continue
        kind = descriptor.annotation
        if get_origin(kind) is list:
            (kind,) = get_args(kind)
        info = descriptor.parameter_info
        found = _PLAIN_READERS.get(kind) or _choice_reader(kind)
        if found is not None and not getattr(info, "parser", None):
            param._runtime_param = _ValueReader(*found, info.min, info.max)
