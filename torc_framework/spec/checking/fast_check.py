"""Fast check against a JSON schema, without explanations.

It supports the keywords of the schema of workflow files and is several times as fast as `jsonschema`, which is used
only to explain failures. A schema with another keyword fails the check, so that a passed check is reliable.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from torc_framework.spec.language.schema import FREE_KEYWORD, kinds_of
from torc_framework.spec.language.spellings import FOREIGN_KEYWORD, SPELLINGS_KEYWORD

Test = Callable[[Any], bool]

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_SILENT: Final = {"description", "title", "default", "examples", SPELLINGS_KEYWORD, FOREIGN_KEYWORD, FREE_KEYWORD}
_KNOWN: Final = {
    *_SILENT,
    *("type", "enum", "properties", "required", "additionalProperties", "items"),
    *("minLength", "minItems", "minimum", "maximum", "minProperties"),
}


def compile_check(schema: Mapping[str, Any]) -> Test:
    """Return a function that returns whether a value certainly fits ``schema``."""
    tests, other = _tests_by_type(schema)

    def test(value: Any) -> bool:
        return bool(tests.get(type(value), other)(value))

    return test


_ByType = tuple[Mapping[type, Test], Test]
"""A test for each type of value, and one for values of all other types."""


def _tests_by_type(schema: Mapping[str, Any]) -> _ByType:
    if not schema.keys() <= _KNOWN:
        return {}, _never
    if not schema.keys() - _SILENT:
        return {}, _always
    if "enum" in schema:
        return {}, _one_of(schema["enum"])
    tests = {kind: _test_of(name, schema) for name in kinds_of(schema) for kind in _TYPES[name]}
    return tests, _never


def _test_of(name: str, schema: Mapping[str, Any]) -> Test:
    """Return the test of a value that is known to be of type ``name``."""
    if name == "object":
        return _object(schema)
    if name == "array":
        return _array(schema)
    if name == "string" and schema.get("minLength", 0) == 1:
        return bool
    if name == "string":
        return _at_least(schema.get("minLength", 0))
    if name in ("integer", "number"):
        return _between(schema.get("minimum"), schema.get("maximum"))
    return _always


def _object(schema: Mapping[str, Any]) -> Test:
    members = {key: _tests_by_type(value) for key, value in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))
    extra = schema.get("additionalProperties", True)
    others = _tests_by_type(extra) if isinstance(extra, dict) else ({}, _always if extra else _never)
    fewest: int = schema.get("minProperties", 0)

    def test(value: Mapping[str, Any]) -> bool:
        for (
            key,
            item,
        ) in value.items():  # dispatch by type without a further call: most of the time is spent in this loop
            tests, other = members.get(key, others)
            if not tests.get(type(item), other)(item):
                return False
        return len(value) >= fewest and required.issubset(value)

    return test


def _array(schema: Mapping[str, Any]) -> Test:
    tests, other = _tests_by_type(schema.get("items", {}))
    fewest: int = schema.get("minItems", 0)

    def test(value: list[Any]) -> bool:
        for item in value:
            if not tests.get(type(item), other)(item):
                return False
        return len(value) >= fewest

    return test


def _one_of(members: list[Any]) -> Test:
    known = {(type(member), member) for member in members if isinstance(member, (str, int, float, type(None)))}

    def test(value: Any) -> bool:
        return isinstance(value, (str, int, float, type(None))) and (type(value), value) in known

    return test


def _at_least(length: int) -> Test:
    return (lambda value: len(value) >= length) if length else _always


def _between(low: float | None, high: float | None) -> Test:
    if low is None and high is None:
        return _always
    least, most = float("-inf") if low is None else low, float("inf") if high is None else high
    return lambda value: bool(least <= value <= most)


def _always(value: Any) -> bool:
    return True


def _never(value: Any) -> bool:
    return False
