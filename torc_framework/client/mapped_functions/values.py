"""Conversion of Python values to JSON and back, for the arguments and results of mapped functions in the database.

Pydantic models, attrs classes, dataclasses, enums, dates, sets and similar values become plain JSON values. They become
instances again where the function's annotation names a class; otherwise the function gets the plain values.
"""

import dataclasses
import math
from collections.abc import Callable
from enum import Enum
from typing import Any, get_args, get_type_hints

import attrs
import msgspec

from torc_framework.errors import UserError


def to_json_values(value: Any, what: str) -> Any:
    """Return a value as JSON values.

    Args:
        value: Any value.
        what: The value's name in messages.

    Raises:
        UserError: the value cannot be written as JSON.
    """
    try:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_dump)
        msgspec.json.encode(plain)
        _require_finite(plain)
    except (TypeError, ValueError, OverflowError, NotImplementedError, RecursionError) as error:
        raise UserError(
            f"{what} cannot be stored as JSON: {error}; use numbers, texts, lists, dictionaries, dataclasses, "
            "attrs classes or pydantic models"
        ) from error
    return plain


def _dump(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    if hasattr(value, "tolist"):  # arrays and scalars of numpy, without importing it
        return value.tolist()
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def _require_finite(plain: Any) -> None:
    if isinstance(plain, dict):
        plain = plain.values()
    elif not isinstance(plain, list | tuple):
        if isinstance(plain, float) and not math.isfinite(plain):
            raise ValueError(f"{plain} is not a number in JSON")
        return
    for item in plain:
        _require_finite(item)


def from_json_values(plain: Any, annotation: Any, what: str) -> Any:
    """Return JSON values as an instance of an annotation; unchanged if the annotation names no class with fields.

    Raises:
        UserError: the values do not fit the annotation.
    """
    if not _names_class(annotation):
        return plain
    try:
        return msgspec.convert(plain, annotation, str_keys=True, dec_hook=_load)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise UserError(f"{what} does not fit {getattr(annotation, '__name__', annotation)}: {error}") from error


def _load(kind: type[Any], plain: Any) -> Any:
    if hasattr(kind, "model_validate"):
        return kind.model_validate(plain)
    if hasattr(kind, "__fspath__"):
        return kind(plain)
    raise TypeError(f"{kind.__name__} cannot be made from JSON")


def _names_class(annotation: Any) -> bool:
    """Return whether an annotation contains a class with fields."""
    if isinstance(annotation, type) and not get_args(annotation):
        return (
            dataclasses.is_dataclass(annotation)
            or attrs.has(annotation)
            or hasattr(annotation, "model_validate")
            or issubclass(annotation, msgspec.Struct | Enum)
        )
    return any(map(_names_class, get_args(annotation)))


def annotation_of(function: Callable[..., Any], position: int) -> Any:
    """Return the annotation of a function's positional parameter; None if there is none or it cannot be evaluated."""
    import inspect

    try:
        names = [*inspect.signature(function).parameters]
        return get_type_hints(function).get(names[position])
    except (NameError, TypeError, ValueError, IndexError):
        return None
