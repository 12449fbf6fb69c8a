"""Readers of option values of plain types, which replace Typer's pydantic converters.

The import of pydantic takes longer than most commands. Typer 0.29 converts values by an object that it makes when the
first value arrives; parameters of plain types get a reader of this module instead, all others keep Typer's. The module
can be deleted when Typer reads plain types without pydantic.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_origin

import typer

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
"""For each plain type its name in error messages, and the function that reads it."""


def _choice_reader(kind: Any) -> tuple[str, Callable[[Any], Any]] | None:
    """Return name and reader of a StrEnum, whose values are read without regard to case; None for other types."""
    if not (isinstance(kind, type) and issubclass(kind, StrEnum)):
        return None
    words = {word.value.lower(): word for word in kind}
    return f"one of {', '.join(words)}", lambda text: words[str(text).lower()]


class _ValueReader(NamedTuple):
    """Replaces Typer's converter of one parameter; a named tuple, as in `torc_framework.distributions`."""

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
        if self.low is not None and not value >= self.low:  # written so that nan is refused too
            raise typer.BadParameter(f"{text} is too small; expected at least {self.low}", ctx=ctx, param=param)
        if self.high is not None and not value <= self.high:
            raise typer.BadParameter(f"{text} is too large; expected at most {self.high}", ctx=ctx, param=param)
        return value


def use_plain_readers(params: Iterable[Any]) -> None:
    """Give parameters of plain types, and of lists of them, a reader that imports nothing."""
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
