"""Second stage: check of a document against the schema, with a finding for each error.

Each item is checked by a compiled fast check, and only items that fail it by `jsonschema`, so that valid files of any
size are checked quickly and errors are explained in full.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from torc_framework.distributions import how_to_get
from torc_framework.errors import suggestion
from torc_framework.spec.checking.fast_check import compile_check
from torc_framework.spec.language.findings import Problems, SpecFinding, SpecPath
from torc_framework.spec.language.schema import VARIANTS, Schema, kinds_of, variant_of
from torc_framework.text.json_values import describe

MAX_JSON_DEPTH: Final = 100
"""Largest depth of JSON values with a free form (``data``, ``metadata``; ``executor_options`` allows less)."""
_FREE: Final = {"metadata": None, "executor_options": None, "user_data": "data", "jobs": "executor_options"}
"""Keys with values of a free form: of the workflow, and (second) of its entries."""
_ODD_ESCAPE: Final = re.compile(r"\\(?:u00|U0000|u\{|x|0|u[dD][89a-fA-F])")
_ODD_ESCAPE_OF_BYTES: Final = re.compile(_ODD_ESCAPE.pattern.encode())
_TYPE_NAMES: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}


def check(data: Any, schema: Schema, problems: Problems) -> None:
    """Add a finding for each part of ``data`` that does not fit ``schema``."""
    if not isinstance(data, dict):
        problems.add(SpecFinding(describe(data), "a mapping with at least 'name' and 'jobs'"))
        return
    lists = {key: part for key, part in schema["properties"].items() if "object" in kinds_of(part.get("items", {}))}
    without = {**schema["properties"], **{key: _without_items(part) for key, part in lists.items()}}
    _check_value(data, {**schema, "properties": without}, (), problems)
    for key, part in lists.items():
        if isinstance(items := data.get(key), list):
            _check_items(items, part["items"], key, problems)
    for path, value in _free_values(data):
        _check_json(value, path, problems)


def check_text(text: str, data: Any, problems: Problems) -> None:
    """Add findings for texts that cannot be in a file or command line: with NUL or lone surrogates."""
    if not _ODD_ESCAPE.search(text):
        return
    for path, value in _texts(data):
        if "\0" in value:
            problems.add(SpecFinding("the text has a NUL character", path=path))
        elif any("\ud800" <= character <= "\udfff" for character in value):
            problems.add(SpecFinding("the text has half of a surrogate pair, which is no character", path=path))


def may_have_odd_texts(text: bytes) -> bool:
    """Return whether `check_text` may add findings for a document."""
    return _ODD_ESCAPE_OF_BYTES.search(text) is not None


def _without_items(part: Schema) -> Schema:
    return {key: value for key, value in part.items() if key != "items"}


def _check_items(items: list[Any], schema: Schema, key: str, problems: Problems) -> None:
    gates: dict[int, Callable[[Any], bool]] = {}
    plain = {name: value for name, value in schema.items() if name != VARIANTS}
    has_variants = VARIANTS in schema
    passes = compile_check(plain)
    for position, item in enumerate(items):
        if has_variants and _has_unknown_variant(schema, item):
            _explain(item, {**plain, "additionalProperties": True}, (key, position), problems)
            continue
        chosen = variant_of(schema, item) if has_variants else schema
        if chosen is schema:
            if not passes(item):
                _explain(item, plain, (key, position), problems)
        elif not (gates.get(id(chosen)) or gates.setdefault(id(chosen), compile_check(chosen)))(item):
            _explain(item, chosen, (key, position), problems)


def _has_unknown_variant(schema: Schema, item: Any) -> bool:
    """Return whether an item names a variant that the schema lacks, so that its other keys cannot be checked."""
    by = schema[VARIANTS]["by"]
    return isinstance(item, dict) and by in item and item[by] not in schema["properties"][by]["enum"]


def _check_value(value: Any, schema: Schema, path: SpecPath, problems: Problems) -> None:
    if not compile_check(schema)(value):
        _explain(value, schema, path, problems)


def _explain(value: Any, schema: Schema, path: SpecPath, problems: Problems) -> None:
    """Add a finding for each error of ``value``, up to `MAX_KEPT` in all."""
    if problems.full:
        return
    missing: set[tuple[Any, ...]] = set()
    for error in _validator(schema).iter_errors(value):
        here = (*path, *error.absolute_path)
        if error.validator == "required":
            if here in missing:
                continue  # `jsonschema` reports one error per missing key, each with all required keys
            missing.add(here)
        for finding in _findings(error, here):
            problems.add(finding)


def _validator(schema: Schema) -> Any:
    """Return a validator for which 1.0 is not an integer, as in the fast check."""
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.validators import extend

    strict = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    formats = FormatChecker(("regex",))
    return extend(Draft202012Validator, type_checker=strict)(  # type: ignore[no-untyped-call] # `jsonschema` has no annotations here
        schema, format_checker=formats
    )


def _findings(error: Any, path: SpecPath) -> Iterator[SpecFinding]:
    value, wanted = error.instance, error.validator_value
    if error.validator == "required":
        for key in wanted:
            if key not in value:
                yield SpecFinding(f"{key!r} is missing", path=path, hint=_known(error.schema, key))
    elif error.validator == "additionalProperties" and wanted is False:
        known = list(error.schema.get("properties", {}))
        for key in value.keys() - set(known):
            hint = how_to_get("failure rule key", str(key)) if "rules" in path else ""
            hint = hint or suggestion(str(key), known).removeprefix("; ")
            yield SpecFinding(f"unknown key {key!r}", hint=hint, path=(*path, key), at_key=True)
    elif error.validator == "enum":
        members = [member for member in wanted if member is not None]
        hint = suggestion(value, members).removeprefix("; ") if isinstance(value, str) else ""
        expected = "one of " + ", ".join(map(repr, members))
        yield SpecFinding(describe(value), expected, hint if hint.startswith("did") else "", path)
    else:
        yield SpecFinding(describe(value), _expected(error.validator, wanted), _hint(error), path)


def _expected(keyword: str, wanted: Any) -> str:
    """Return a description of what a keyword of a schema requires."""
    if keyword == "type":
        kinds = [wanted] if isinstance(wanted, str) else [kind for kind in wanted if kind != "null"]
        return " or ".join(_TYPE_NAMES[kind] for kind in kinds)
    words = {
        "format": {"regex": "a regular expression"}.get(str(wanted), str(wanted)),
        "minimum": f"{wanted} or more",
        "maximum": f"{wanted} or less",
        "minLength": "text that is not empty" if wanted == 1 else f"at least {wanted} characters",
        "minItems": "a list that is not empty" if wanted == 1 else f"at least {wanted} entries",
    }
    return words.get(keyword, f"{keyword} {wanted}")


def _hint(error: Any) -> str:
    """Return advice for frequent type errors."""
    value, kinds = error.instance, kinds_of(error.schema)
    if error.validator != "type":
        return ""
    if "string" in kinds and isinstance(value, (int, float)):
        return "put it in quotes"
    if "string" in kinds and isinstance(value, list) and "parameters" in error.absolute_path:
        return 'write the list as text: "[1,2,3]"'
    if "array" in kinds and isinstance(value, str):
        return f"write [{value}] or a list of one entry" if len(value) < 40 else "write a list of one entry"
    return ""


def _known(schema: Schema, key: str) -> str:
    described = schema.get("properties", {}).get(key, {}).get("description", "")
    return f"{key}: {described}" if described else ""


def _free_values(data: dict[str, Any]) -> Iterator[tuple[SpecPath, Any]]:
    for key, inner in _FREE.items():
        value = data.get(key)
        if inner is None:
            yield (key,), value
        elif isinstance(value, list):
            for position, entry in enumerate(value):
                if isinstance(entry, dict) and inner in entry:
                    yield (key, position, inner), entry[inner]


def _check_json(value: Any, path: SpecPath, problems: Problems) -> None:
    """Add findings for values that JSON with 64-bit numbers cannot represent."""
    todo: list[tuple[SpecPath, Any]] = [(path, value)]
    while todo and not problems.full:
        here, item = todo.pop()
        if isinstance(item, (dict, list)) and len(here) - len(path) > MAX_JSON_DEPTH:
            problems.add(SpecFinding("nested too deeply", f"at most {MAX_JSON_DEPTH} levels", path=path))
            return
        if isinstance(item, dict):
            todo += [((*here, key), inner) for key, inner in item.items()]
        elif isinstance(item, list):
            todo += [((*here, position), inner) for position, inner in enumerate(item)]
        elif isinstance(item, float) and not math.isfinite(item):
            problems.add(SpecFinding(describe(item), "a number that JSON can hold", path=here))
        elif isinstance(item, int) and not -(2**63) <= item < 2**64:
            problems.add(SpecFinding("a number of more than 64 bits", "a smaller one, or text", path=here))


def _texts(data: Any) -> Iterator[tuple[SpecPath, str]]:
    """Yield the texts of a document, keys included, until `MAX_KEPT` findings are collected."""
    todo: list[tuple[SpecPath, Any]] = [((), data)]
    while todo:
        path, item = todo.pop()
        if isinstance(item, str):
            yield path, item
        elif isinstance(item, dict):
            for key, inner in item.items():
                yield (*path, key), key
                todo.append(((*path, key), inner))
        elif isinstance(item, list):
            todo += [((*path, position), inner) for position, inner in enumerate(item)]
