"""The fields of Kubernetes' objects and their types, for values that people write.

They are those of the Python client's models, which are made from Kubernetes' OpenAPI document.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from torc_framework.api import suggestion
from torc_k8s.pods.merge import LISTS
from torc_k8s.pods.quantities import parse_quantity

Path = tuple[str | int, ...]
"""Keys and positions that lead to a value."""


class FieldError(Exception):
    """A field that Kubernetes does not have, or a value of another type.

    Args:
        path: Keys and positions that lead to the value.
        message: What is wrong; it names the field.
        at_key: The error is at the path's last key, not at its value.
    """

    def __init__(self, path: Path, message: str, *, at_key: bool = False) -> None:
        super().__init__(message)
        self.path, self.at_key = path, at_key


_COLLECTION: Final = re.compile(r"([Ll]ist|[Dd]ict)[\[(](?:str, ?)?(.+)[\])]")
_QUANTITIES: Final = frozenset({"sizeLimit", "divisor"})
_QUANTITY_MAPS: Final = frozenset({"limits", "requests", "overhead"})
_SCALARS: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "str": (str, "text; put it in quotes"),
    "int": (int, "a whole number"),
    "float": ((int, float), "a number"),
    "bool": (bool, "true or false"),
    "datetime": (str, "a time such as 2026-01-02T03:04:05Z"),
}


def check_fields(value: Any, model: str, path: Path = ()) -> None:
    """Check that a value has the fields of one of the client's models, such as ``V1Pod``, and their types.

    Args:
        value: What was written; JSON values.
        model: Name of the model. One that the client does not know permits everything.
        path: Where the value stands, for the message.

    Raises:
        FieldError: it has others.
    """
    from kubernetes.aio.client import models

    known = getattr(models, model, None)
    if known is None:
        return
    _require(value, path, dict, "a mapping")
    types = {known.attribute_map[name]: type_ for name, type_ in known.openapi_types.items()}
    for key, each in value.items():
        inner = (*path, key)
        if key not in types:
            raise FieldError(inner, f"{shown(inner)}: unknown field{suggestion(key, list(types))}", at_key=True)
        _check(each, types[key], inner)


def _check(value: Any, kind: str, path: Path) -> None:
    """Raise `FieldError` for a value that is not of a type of the client's models, such as ``List[V1Container]``."""
    if value is None or kind == "object":
        return
    collection = _COLLECTION.fullmatch(kind)
    if collection and collection[1].lower() == "list":
        _require(value, path, list, "a list")
        for place, each in enumerate(value):
            _require_key(each, (*path, place))
            _check(each, collection[2], (*path, place))
    elif collection:
        _require(value, path, dict, "a mapping")
        for key, each in value.items():
            _check(each, collection[2], (*path, key))
    elif path[-1] in _QUANTITIES or (len(path) > 1 and path[-2] in _QUANTITY_MAPS):
        _check_quantity(value, path)
    elif kind in _SCALARS:
        _check_scalar(value, kind, path)
    else:
        check_fields(value, kind, path)


def _require_key(item: Any, path: Path) -> None:
    """Raise `FieldError` for an item of a list without the field by which the list is merged."""
    how = LISTS.get(str(path[-2]))
    if item is None:
        raise FieldError(path, f"{shown(path)} is empty; remove it")
    if how is not None and how.key and isinstance(item, dict) and not item.get(how.key):
        raise FieldError(path, f"{shown(path)}.{how.key} is missing; every item of {path[-2]} needs one")


def _check_scalar(value: Any, kind: str, path: Path) -> None:
    types, expected = _SCALARS[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "bool"):
        raise FieldError(path, f"{shown(path)} is {described(value)}; expected {expected}")


def _check_quantity(value: Any, path: Path) -> None:
    try:
        parse_quantity(value)
    except ValueError as error:
        raise FieldError(path, f"{shown(path)}: {error}") from None


def _require(value: Any, path: Path, type_: type, expected: str) -> None:
    if not isinstance(value, type_):
        raise FieldError(path, f"{shown(path) or 'it'} is {described(value)}; expected {expected}")


def shown(path: Path) -> str:
    """Return a path as people write it, such as ``spec.containers[0].name``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def described(value: Any) -> str:
    """Return a short description of a value for a message."""
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    return "missing" if value is None else repr(value)[:60]
