"""A fast yes-or-no check against a JSON schema.

It knows the few keywords that the schema of workflow files uses and is several times as fast as
`jsonschema`, whose part is to explain a no. A keyword that it does not know makes it say no, so that
a yes can be relied on.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from torc_framework.spec.schema import kinds_of

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
_SILENT: Final = {"description", "title", "default", "examples"}
_KNOWN: Final = {
    *_SILENT,
    *("type", "enum", "properties", "required", "additionalProperties", "items"),
    *("minLength", "minItems", "minimum", "maximum", "minProperties"),
}


def compile_gate(schema: Mapping[str, Any]) -> Test:
    """Return a function that says whether a value surely fits ``schema``."""
    if not schema.keys() <= _KNOWN:
        return _never
    if not schema.keys() - _SILENT:
        return _always
    if "enum" in schema:
        return _one_of(schema["enum"])
    tests: dict[type, Test] = {kind: _test_of(name, schema) for name in kinds_of(schema) for kind in _TYPES[name]}

    def test(value: Any) -> bool:
        found = tests.get(type(value))
        return found is not None and found(value)

    return test


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
    tests = {key: compile_gate(value) for key, value in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))
    extra = schema.get("additionalProperties", True)
    other = {True: _always, False: _never}[extra] if isinstance(extra, bool) else compile_gate(extra)
    fewest = schema.get("minProperties", 0)

    def test(value: dict[str, Any]) -> bool:
        for key, item in value.items():
            if not tests.get(key, other)(item):
                return False
        return required <= value.keys() and len(value) >= fewest

    return test


def _array(schema: Mapping[str, Any]) -> Test:
    item_test = compile_gate(schema.get("items", {}))
    fewest = schema.get("minItems", 0)

    def test(value: list[Any]) -> bool:
        return len(value) >= fewest and all(map(item_test, value))

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
